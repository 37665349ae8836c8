//! agent.yaml as written; see [`super::capability`] on optional fields.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Routing;

/// An agent.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "agent.yaml")]
pub struct RawAgent {
    /// Unique in the project: lower-case letters, digits and hyphens.
    #[schemars(required, regex(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    pub id: Option<String>,
    /// For people.
    #[schemars(required, length(min = 1))]
    pub name: Option<String>,
    /// Languages of the labels and prompts.
    pub i18n: Option<RawI18n>,
    /// A model of the agent's own.
    pub model: Option<RawModel>,
    /// How its tools reach the model that talks to the user.
    #[schemars(extend("default" = "auto"))]
    pub routing: Option<Routing>,
    /// When a conversation begins and ends.
    pub session: Option<RawSession>,
    /// Shared capabilities of the project, by id. The agent's own need no mention.
    pub capabilities: Option<Vec<Option<RawCapabilityName>>>,
    /// What the agent remembers.
    pub memory: Option<RawMemory>,
    /// What a person is asked for when the agent is installed.
    pub install_steps: Option<Vec<Option<RawStep>>>,
    /// What the agent does by itself.
    pub automation: Option<RawAutomation>,
}

/// Languages.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RawI18n {
    /// Such as `en`.
    pub default_locale: Option<String>,
    /// Such as `[en, de]`.
    pub supported_locales: Option<Vec<Option<String>>>,
}

/// A model.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RawModel {
    /// Who serves it.
    pub provider: Option<String>,
    /// Its name there.
    pub model_id: Option<String>,
    /// From 0 to 2.
    #[schemars(range(min = 0.0, max = 2.0), extend("default" = 0.7))]
    pub temperature: Option<f64>,
}

/// When a conversation begins and ends.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RawSession {
    /// What begins it.
    #[schemars(extend("default" = "mention"))]
    pub trigger: Option<String>,
    /// Minutes without a message after which it ends.
    #[schemars(range(min = 1, max = 525_600), extend("default" = 30))]
    pub idle_timeout_minutes: Option<u64>,
    /// Whether threads share it.
    pub isolation: Option<RawIsolation>,
}

/// Whether threads share a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RawIsolation {
    /// One session for all threads.
    Shared,
    /// One per thread.
    PerThread,
}

/// A shared capability by name.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RawCapabilityName {
    /// Its id.
    #[schemars(required)]
    pub id: Option<String>,
}

/// What the agent remembers.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RawMemory {
    /// How memories are kept.
    pub policy: Option<String>,
    /// How many are recalled; 0 for none.
    #[schemars(range(min = 0, max = 10_000))]
    pub top_k: Option<u64>,
}

/// One step of the installation.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RawStep {
    /// Unique among the steps.
    #[schemars(required)]
    pub id: Option<String>,
    /// `input` asks for a value, `test` sends a request.
    #[serde(rename = "type")]
    #[schemars(required)]
    pub kind: Option<RawStepType>,
    /// What the person sees.
    pub label: Option<String>,
    /// More about it.
    pub description: Option<String>,
    /// The value that is offered.
    pub default: Option<String>,
    /// How the value is checked, such as `url` or `not_empty`.
    pub validation: Option<String>,
    /// The credential that the value becomes.
    pub store_as: Option<RawStoreAs>,
    /// The request of a `test` step.
    pub request: Option<RawRequest>,
    /// The earlier step, or steps, that come first.
    #[schemars(extend("x-one-or-more" = true))]
    pub depends_on: Option<Vec<Option<String>>>,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RawStepType {
    /// Asks for a value.
    Input,
    /// Sends a request.
    Test,
}

/// The credential that a value becomes.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RawStoreAs {
    /// Whose it is.
    #[schemars(required)]
    pub scope: Option<RawStoreScope>,
    /// A capability of the agent.
    #[schemars(required)]
    pub capability_id: Option<String>,
    /// A credential that its manifest declares.
    #[schemars(required)]
    pub credential_name: Option<String>,
}

/// Whose credential a value becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RawStoreScope {
    /// One value for all.
    SystemCredential,
    /// One value per user.
    UserCredential,
}

/// A request of a `test` step.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RawRequest {
    /// Such as `GET`.
    pub method: Option<String>,
    /// May hold `{{step_id}}`.
    #[schemars(required)]
    pub url: Option<String>,
    /// The HTTP status of success.
    #[schemars(range(min = 100, max = 599))]
    pub expect_status: Option<u64>,
}

/// What the agent does by itself.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RawAutomation {
    /// When.
    pub schedules: Option<Vec<Option<RawSchedule>>>,
}

/// One schedule.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RawSchedule {
    /// Unique among the schedules.
    #[schemars(required)]
    pub id: Option<String>,
    /// What the person sees.
    pub label: Option<String>,
    /// What the agent is told.
    pub prompt: Option<String>,
    /// Six fields, seconds first.
    #[schemars(required)]
    pub cron_expression: Option<String>,
    /// The expression in words.
    pub cron_description: Option<String>,
}
