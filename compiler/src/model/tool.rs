//! A static tool as written in manifest.yaml.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Policy;

/// A tool.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawTool {
    /// Unique within the capability: letters, digits, `_`, `.` and `-`.
    #[schemars(required, regex(pattern = "^[A-Za-z0-9_.-]+$"))]
    pub name: Option<String>,
    /// What the model reads to know what the tool does.
    #[schemars(required)]
    pub description: Option<String>,
    /// JSON Schema of the arguments, an object at its root.
    #[schemars(required, extend("type" = ["object", "boolean"]))]
    pub input_schema: Option<serde_json::Value>,
    /// Older form: `true` means `recommended_policy: ask`.
    #[schemars(extend("deprecated" = true))]
    pub requires_confirmation: Option<bool>,
    /// What the author recommends; without one the tool is blocked.
    pub recommended_policy: Option<Policy>,
    /// Whether the tool loop ends after a success.
    #[schemars(extend("default" = false))]
    pub terminal_on_success: Option<bool>,
}
