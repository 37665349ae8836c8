//! What a call gave, for programs.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

/// Version of the form.
const FORMAT_VERSION: &str = "1.0";

/// One call that succeeded. One that did not is an error, as of every command: `format_version`, `error` with `message`,
/// `causes` and `hints`, and `exit_code`.
#[derive(Debug, Serialize, JsonSchema)]
struct CallReport<'a> {
    /// Version of this form: an unknown major version is not for this reader, unknown fields are to be ignored.
    format_version: &'static str,
    /// The project's name.
    project: &'a str,
    /// `agent/capability`.
    instance: &'a str,
    /// The tool that was called.
    tool: &'a str,
    /// The session that it was called in.
    session: &'a str,
    /// What it gave, credential values removed.
    result: &'a Value,
    /// Whether the tool's author says that the conversation's turn ends here.
    terminal_on_success: bool,
    /// What the command ended with.
    exit_code: u8,
}

/// A call that succeeded.
#[derive(Debug, Clone, Copy)]
pub struct Called<'a> {
    /// The project's name.
    pub project: &'a str,
    /// Whose tool.
    pub instance: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The session that it was called in.
    pub session: &'a str,
    /// What it gave, credential values removed.
    pub result: &'a Value,
    /// Whether the turn ends here.
    pub terminal_on_success: bool,
}

/// A call as data; schemas/invoke.schema.json describes it.
pub fn call_json(called: Called<'_>) -> Value {
    let Called {
        project,
        instance,
        tool,
        session,
        result,
        terminal_on_success,
    } = called;
    let report = CallReport {
        format_version: FORMAT_VERSION,
        project,
        instance,
        tool,
        session,
        result,
        terminal_on_success,
        exit_code: 0,
    };
    // Texts, flags and JSON under fixed names have a JSON form.
    serde_json::to_value(report).unwrap_or_default()
}

/// The JSON Schema (draft-07) of [`call_json`].
pub(crate) fn json_schema() -> Value {
    let mut settings = SchemaSettings::draft07().for_serialize();
    settings.inline_subschemas = true;
    settings
        .into_generator()
        .into_root_schema_for::<CallReport<'_>>()
        .to_value()
}
