//! What is asked for: the instance, the arguments, the files.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use anyhow::Context;
use selu_compiler::check::arguments::{ArgumentProblem, Arguments};
use selu_compiler::lock::no_instance;
use selu_compiler::model::InstanceKey;
use selu_compiler::plan::Plan;
use serde_json::{Map, Value};

use crate::args::InvokeArgs;
use crate::exit::Ending;
use crate::hints::Hinted;

/// Arguments that wait for what the capability calls the files.
pub(crate) struct Request<'a> {
    schema: &'a Value,
    takes: Arguments<'a>,
    arguments: Map<String, Value>,
    /// Argument → file, open already: one that cannot be read stops everything before anything.
    pub(crate) uploads: Vec<(String, PathBuf, File)>,
    /// Pointer into the result → file that does not exist yet.
    pub(crate) downloads: Vec<(String, PathBuf)>,
}

/// `agent/capability`, or a capability's id alone where that is one instance.
pub(crate) fn instance(plan: &Plan, name: &str) -> anyhow::Result<InstanceKey> {
    let found: Vec<&InstanceKey> = plan
        .instances
        .keys()
        .filter(|key| key.as_str() == name || key.capability() == name)
        .collect();
    match found.as_slice() {
        [] => Err(no_instance(plan, name).into()),
        [key] => Ok((*key).clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|key| key.as_str()).collect();
            let message = format!("`{name}` is {}; say which", names.join(" and "));
            Err(Ending::usage(message).into())
        }
    }
}

impl<'a> Request<'a> {
    /// Reads and judges everything that the command line says, against the locked schema.
    pub(crate) fn read(args: &InvokeArgs, schema: &'a Value) -> anyhow::Result<Self> {
        let takes = Arguments::of(schema)?;
        let arguments = arguments(args, &takes);
        let arguments = arguments?.map_err(|problems| refused(&problems, schema))?;
        let mut request = Self {
            schema,
            takes,
            arguments,
            uploads: Vec::new(),
            downloads: Vec::new(),
        };
        for upload in &args.upload {
            let (key, file) = split(upload, "--upload", "KEY=FILE")?;
            let known = request.uploads.iter().any(|(other, _, _)| other == key);
            if known || request.arguments.contains_key(key) {
                return Err(Ending::usage(format!("the argument `{key}` is given twice")).into());
            }
            let opened = File::open(file).with_context(|| format!("{file} cannot be read"))?;
            let what = (key.to_owned(), PathBuf::from(file), opened);
            request.uploads.push(what);
        }
        for download in &args.download {
            let (pointer, file) = split(download, "--download", "POINTER=FILE")?;
            if !pointer.starts_with('/') {
                let message = format!(
                    "--download {download}: POINTER is a JSON pointer into the result, such as /artifact_id"
                );
                return Err(Ending::usage(message).into());
            }
            if std::path::Path::new(file).exists() {
                let hint = "name a file that does not exist; nothing is overwritten";
                return Err(Hinted::new(format!("{file} exists"), hint).into());
            }
            request.downloads.push((pointer.to_owned(), file.into()));
        }
        request.judge()?;
        Ok(request)
    }

    /// The arguments, with a stand-in for each file whose id is not known yet.
    pub(crate) fn preview(&self) -> Map<String, Value> {
        let mut arguments = self.arguments.clone();
        for (key, file, _) in &self.uploads {
            arguments.insert(key.clone(), format!("@{}", file.display()).into());
        }
        arguments
    }

    /// The arguments once every file has an id.
    pub(crate) fn complete(
        mut self,
        ids: Vec<(String, String)>,
    ) -> anyhow::Result<Map<String, Value>> {
        self.uploads.clear();
        for (key, id) in ids {
            self.arguments.insert(key, id.into());
        }
        self.judge()?;
        Ok(self.arguments)
    }

    /// What a stand-in is refused for is judged when the id is there.
    fn judge(&self) -> anyhow::Result<()> {
        let mut problems = self.takes.judge(&self.preview());
        problems.retain(|problem| {
            let waits = |key: &str| problem.pointer.strip_prefix('/') == Some(key);
            !self.uploads.iter().any(|(key, _, _)| waits(key))
                || problem.schema_pointer.ends_with("additionalProperties")
        });
        if problems.is_empty() {
            Ok(())
        } else {
            Err(refused(&problems, self.schema))
        }
    }
}

fn split<'a>(text: &'a str, option: &str, form: &str) -> anyhow::Result<(&'a str, &'a str)> {
    let parts = text.split_once('=');
    parts
        .filter(|(key, file)| !key.is_empty() && !file.is_empty())
        .ok_or_else(|| Ending::usage(format!("{option} {text}: expected {form}")).into())
}

/// Arguments, or all that is wrong with how they are written.
type Written = Result<Map<String, Value>, Vec<ArgumentProblem>>;

fn arguments(args: &InvokeArgs, takes: &Arguments<'_>) -> anyhow::Result<Written> {
    Ok(match args.args.as_deref() {
        None => takes.from_pairs(&args.pairs),
        Some("-") => {
            let mut text = Vec::new();
            let read = std::io::stdin().read_to_end(&mut text);
            read.context("the arguments cannot be read from standard input")?;
            takes.from_json(&text)
        }
        Some(source) => match source.strip_prefix('@') {
            Some(file) => {
                let text = std::fs::read(file)
                    .with_context(|| format!("the arguments cannot be read from {file}"))?;
                takes.from_json(&text)
            }
            None => takes.from_json(source.as_bytes()),
        },
    })
}

fn refused(problems: &[ArgumentProblem], schema: &Value) -> anyhow::Error {
    let lines: String = problems
        .iter()
        .map(|problem| format!("\n  {problem}"))
        .collect();
    let message = format!("the tool does not take these arguments:{lines}");
    let known = schema.get("properties").and_then(Value::as_object);
    let names: Vec<&str> = known
        .into_iter()
        .flat_map(|known| known.keys().map(String::as_str))
        .collect();
    let hint = match names.as_slice() {
        [] => "its locked schema names no arguments".to_owned(),
        names => format!("by its locked schema it takes {}", names.join(", ")),
    };
    Hinted::new(message, hint).into()
}
