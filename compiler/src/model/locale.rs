//! `i18n/LOCALE.yaml` as written; see [`super::capability`] on optional fields.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// Entries by name.
type Table<T> = Option<BTreeMap<String, Option<T>>>;

/// The labels of an agent in one language.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(title = "i18n/<locale>.yaml")]
pub struct RawLocale {
    /// The agent itself.
    pub agent: Option<RawAgentText>,
    /// Install steps by id.
    pub install_steps: Table<RawStepText>,
    /// What the agent does by itself.
    pub automation: Option<RawAutomationText>,
    /// Capabilities by id.
    pub capabilities: Table<RawCapabilityText>,
    /// What a person is asked before a tool is called.
    pub approval: Option<RawApprovalText>,
}

/// The agent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawAgentText {
    /// Its name.
    pub name: Option<String>,
    /// What it does, in a sentence.
    pub description: Option<String>,
    /// What it does, in a paragraph.
    pub long_description: Option<String>,
}

/// An install step.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawStepText {
    /// What the person sees.
    pub label: Option<String>,
    /// More about it.
    pub description: Option<String>,
}

/// What the agent does by itself.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawAutomationText {
    /// Schedules by id.
    pub schedules: Table<RawScheduleText>,
}

/// A schedule.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawScheduleText {
    /// What the person sees.
    pub label: Option<String>,
    /// What the agent is told.
    pub prompt: Option<String>,
    /// The cron expression in words.
    pub cron_description: Option<String>,
}

/// A capability.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawCapabilityText {
    /// Tools by name.
    pub tools: Table<RawToolText>,
    /// Credentials by name.
    pub credentials: Table<RawCredentialText>,
}

/// A tool.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawToolText {
    /// What the person sees.
    pub display_name: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// Arguments by name.
    pub input: Table<RawInputText>,
}

/// An argument of a tool.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawInputText {
    /// What it means.
    pub description: Option<String>,
}

/// A credential.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawCredentialText {
    /// Shown to the person who enters it.
    pub description: Option<String>,
}

/// What a person is asked before a tool is called.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawApprovalText {
    /// By the name that the model sees, `<capability>__<tool>`.
    pub tools: Table<RawApprovalToolText>,
}

/// What a person is asked about one tool.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawApprovalToolText {
    /// What the person sees.
    pub label: Option<String>,
    /// The question.
    pub message: Option<String>,
}
