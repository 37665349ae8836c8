//! Static tools, or the promise to list them live (T1–T4, M1).

use std::collections::HashMap;

use super::Check;
use crate::check::{schema, tool};
use crate::diag::codes::{manifest as codes, tools as tool_codes};
use crate::diag::{Diagnostic, Severity};
use crate::model::capability::RawToolSource;
use crate::model::tool::RawTool;
use crate::model::{Policy, Tool, ToolSource};

impl Check<'_> {
    pub(super) fn tools(
        &mut self,
        source: Option<RawToolSource>,
        discovery_tool: Option<String>,
        raw: Option<Vec<Option<RawTool>>>,
    ) -> Option<ToolSource> {
        let source = self.or("/tool_source", source, RawToolSource::Manifest);
        if let Some(name) = &discovery_tool {
            if source == Some(RawToolSource::Manifest) {
                self.push_key(
                    "/discovery_tool_name",
                    &codes::NO_EFFECT,
                    "`discovery_tool_name` has no effect without `tool_source: dynamic`",
                );
            }
            // Its full name reaches no model, so only what makes it invalid counts.
            let problems = tool::name(&self.id, name);
            let errors = problems
                .into_iter()
                .filter(|problem| problem.code.severity == Severity::Error)
                .collect();
            self.lift("/discovery_tool_name", errors);
        }
        let discovery_tool = self.or(
            "/discovery_tool_name",
            discovery_tool,
            "list_tools".to_owned(),
        );
        let raw = raw.unwrap_or_default();
        if source == Some(RawToolSource::Dynamic) && !raw.is_empty() {
            self.push_key(
                "/tools",
                &codes::DYNAMIC_WITH_TOOLS,
                format!(
                    "`tool_source: dynamic` excludes static tools, and there are {}",
                    raw.len()
                ),
            );
        }
        let mut names: HashMap<String, usize> = HashMap::new();
        let mut tools = Vec::with_capacity(raw.len());
        for (index, raw) in raw.into_iter().enumerate() {
            let Some(raw) = raw else { continue };
            if let Some(name) = &raw.name {
                // Capability ids hold no underscore, so a name that is unique here is unique for the model too (T2).
                if let Some(first) = names.get(name) {
                    let first = self.document.place(&format!("/tools/{first}/name"));
                    let finding = Diagnostic::new(
                        &codes::DUPLICATE_TOOL,
                        self.document.place(&format!("/tools/{index}/name")),
                        format!("there are two tools named `{name}`"),
                    )
                    .related(first, "the first one");
                    self.findings.push(finding);
                } else {
                    names.insert(name.clone(), index);
                }
            }
            tools.extend(self.tool(index, raw));
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        match source? {
            RawToolSource::Manifest => Some(ToolSource::Static(tools)),
            RawToolSource::Dynamic => Some(ToolSource::Dynamic {
                discovery_tool: discovery_tool?,
            }),
        }
    }

    fn tool(&mut self, index: usize, raw: RawTool) -> Option<Tool> {
        let at = |field: &str| format!("/tools/{index}/{field}");
        let name_at = at("name");
        if let Some(name) = &raw.name {
            self.lift(&name_at, tool::name(&self.id, name));
        }
        if raw
            .description
            .as_ref()
            .is_some_and(|text| text.trim().is_empty())
        {
            self.push(
                &at("description"),
                &tool_codes::DESCRIPTION_EMPTY,
                "the description is empty; the model reads it to know what the tool does",
            );
        }
        if let Some(input_schema) = &raw.input_schema {
            let problems = schema::schema(input_schema);
            if !problems.is_empty() {
                self.lift(&at("input_schema"), problems);
            }
        }
        // T1, where nothing said means block, which the plan tells apart from a block that the author wrote.
        let recommended = match (raw.recommended_policy, raw.requires_confirmation) {
            (None, Some(true)) => Some(Policy::Ask),
            (policy, _) => policy,
        };
        if let (Some(policy), Some(confirm)) = (raw.recommended_policy, raw.requires_confirmation)
            && confirm != (policy == Policy::Ask)
        {
            self.push(
                &at("requires_confirmation"),
                &codes::POLICY_DISAGREES,
                format!(
                    "`requires_confirmation: {confirm}` disagrees with `recommended_policy: {policy}`, which wins"
                ),
            );
        }
        let origin = self.document.origin(&name_at);
        Some(Tool {
            name: raw.name?,
            description: raw.description?,
            input_schema: raw.input_schema?.into(),
            recommended,
            terminal_on_success: self.or(
                &at("terminal_on_success"),
                raw.terminal_on_success,
                false,
            )?,
            origin: Some(origin),
        })
    }
}
