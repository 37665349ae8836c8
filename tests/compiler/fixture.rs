//! The one door: a directory written from data, checked as people would have it checked.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::check::{self, Checked};
use selu_compiler::diag::Severity;
use selu_compiler::diag::render;
use selu_compiler::source::{self, CapabilityFolder, RootKind, SourceFile, SourceSet};
use tempfile::TempDir;

/// A directory on disk for the time of a test.
pub(crate) struct Fixture {
    directory: TempDir,
}

impl Fixture {
    /// Writes files given by path and content.
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let fixture = Self {
            directory: TempDir::new().unwrap(),
        };
        for (path, content) in files {
            fixture.write(path, content.as_bytes());
        }
        fixture
    }

    /// Writes one more file.
    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn root(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.directory.path())
            .unwrap()
            .to_owned()
    }

    pub(crate) fn read(&self) -> SourceSet {
        source::read(&self.root())
    }

    pub(crate) fn check(&self) -> Checked {
        check::check(&self.read())
    }

    /// As people see it, without colours and without the directory's name.
    pub(crate) fn text(&self) -> String {
        let sources = self.read();
        let checked = check::check(&sources);
        render::text(&checked.diagnostics, &sources, false).replace(self.root().as_str(), "ROOT")
    }

    /// One line per finding: `file:line:column severity name`.
    pub(crate) fn lines(&self) -> Vec<String> {
        lines(&self.check())
    }
}

/// One line per finding: `file:line:column severity name`.
pub(crate) fn lines(checked: &Checked) -> Vec<String> {
    checked
        .diagnostics
        .iter()
        .map(|finding| {
            let severity = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            };
            let origin = &finding.place.origin;
            format!(
                "{}:{}:{} {severity} {}",
                origin.file, origin.line, origin.column, finding.code.name
            )
        })
        .collect()
}

/// A lone capability with this manifest.
pub(crate) fn manifest(yaml: &str) -> Fixture {
    Fixture::new([("manifest.yaml", yaml)])
}

/// A lone capability of this text, without a disk.
pub(crate) fn lone(text: &str) -> SourceSet {
    SourceSet {
        kind: Some(RootKind::Capability),
        capabilities: vec![CapabilityFolder {
            path: Utf8PathBuf::new(),
            manifest: Some(SourceFile {
                path: "manifest.yaml".into(),
                text: text.to_owned(),
            }),
            prompts: Vec::new(),
            container: None,
            builds: Vec::new(),
        }],
        ..SourceSet::default()
    }
}

/// What is found in a manifest: `line:column severity name`.
pub(crate) fn check_manifest(yaml: &str) -> Vec<String> {
    without_file(manifest(yaml).lines(), "manifest.yaml")
}

/// What is found in an agent.yaml: `line:column severity name`.
pub(crate) fn check_agent(yaml: &str) -> Vec<String> {
    without_file(Fixture::new([("agent.yaml", yaml)]).lines(), "agent.yaml")
}

/// What is found in a selu.toml of a project that has an agent `helper` with a static capability `weather`.
pub(crate) fn check_settings(toml: &str) -> Vec<String> {
    let mut files = Vec::from(PROJECT);
    files.push(("selu.toml", toml));
    without_file(Fixture::new(files).lines(), "selu.toml")
}

fn without_file(lines: Vec<String>, file: &str) -> Vec<String> {
    let prefix = format!("{file}:");
    lines
        .into_iter()
        .map(|line| line.strip_prefix(&prefix).unwrap_or(&line).to_owned())
        .collect()
}

/// A small project without findings.
pub(crate) const PROJECT: [(&str, &str); 3] = [
    ("agents/helper/agent.yaml", "id: helper\nname: Helper\n"),
    ("agents/helper/agent.md", "You help.\n"),
    ("agents/helper/capabilities/weather/manifest.yaml", WEATHER),
];

/// A manifest without findings.
pub(crate) const WEATHER: &str = "\
id: weather
image: example.com/weather:1
tools:
  - name: forecast
    description: Tells the weather
    input_schema: {type: object, properties: {city: {type: string}}}
    recommended_policy: allow
";

/// Compares a generated file of the repository with what the source says now; `UPDATE=1` writes it.
pub(crate) fn assert_fresh(path: &str, expected: &str) {
    let path = repository().join(path);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, expected).unwrap();
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{path} is out of date; run UPDATE=1 cargo test -p selu-compiler"
    );
}

/// The repository's root.
pub(crate) fn repository() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Builds the tree of a layout example: `path:` and indented content, `folder/`, `link -> target`.
pub(crate) fn tree(example: &str) -> Fixture {
    let fixture = Fixture::new([]);
    let mut files: Vec<(String, String)> = Vec::new();
    for line in example.lines() {
        if let Some(content) = line.strip_prefix("  ") {
            let (_, file) = files.last_mut().unwrap();
            file.push_str(content);
            file.push('\n');
        } else if let Some(path) = line.strip_suffix(':') {
            files.push((path.to_owned(), String::new()));
        } else if let Some(path) = line.strip_suffix('/') {
            fs::create_dir_all(fixture.root().join(path)).unwrap();
        } else if let Some((link, target)) = line.split_once(" -> ") {
            let link = fixture.root().join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, link).unwrap();
        } else {
            panic!("not a line of a tree: {line}");
        }
    }
    for (path, content) in files {
        fixture.write(&path, content.as_bytes());
    }
    fixture
}
