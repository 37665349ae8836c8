//! Scenarios from bug reports of other projects, each test named by the scenario's id. Files only; what needs an engine
//! or a gateway is tested there.

mod images_and_limits;
mod network;
mod project;
mod schemas;
mod yaml;

use selu_compiler::check::Checked;
use selu_compiler::model::{Capability, ToolSource};
use serde_json::Value;

use crate::fixture::{Fixture, manifest};

/// A manifest that needs more.
const HEAD: &str = "id: weather\nimage: example.com/weather:1\n";

/// The lone capability of a compile without errors.
fn capability(checked: &Checked) -> &Capability {
    let project = checked.project.as_ref().unwrap();
    project.instances().next().unwrap().2
}

/// The schema of the first tool.
fn schema(fixture: &Fixture) -> Value {
    let checked = fixture.check();
    let ToolSource::Static(tools) = &capability(&checked).tools else {
        panic!("the tools are static");
    };
    tools[0].input_schema.value()
}

/// A manifest with one tool whose schema is this YAML, from line 7 on.
fn with_schema(yaml: &str) -> Fixture {
    let yaml: String = yaml.lines().map(|line| format!("      {line}\n")).collect();
    manifest(&format!(
        "{HEAD}tools:\n  - name: forecast\n    description: Tells it\n    input_schema:\n{yaml}"
    ))
}

/// What is found in it: `line:column severity name`.
fn check_schema(yaml: &str) -> Vec<String> {
    with_schema(yaml)
        .lines()
        .into_iter()
        .map(|line| line.replace("manifest.yaml:", ""))
        .collect()
}
