//! `tools/list`, every page, as a discovery array (section 5 of the format).

use std::collections::{BTreeSet, HashSet};

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use selu_compiler::check::discovered::TOOLS_MAX;
use selu_compiler::diag::{kind_of, shown};
use selu_proto::MAX_MESSAGE_BYTES;
use serde_json::{Map, Value, json};

use super::error::CallError;
use super::policy::Policies;
use super::pool::Lease;

const METHOD: &str = "tools/list";

/// Pages at most. With the most tools that discovery takes, even a page for each is fewer.
const PAGES: usize = TOOLS_MAX + 1;

/// Asks for all pages and gives what discovery takes.
pub(super) async fn list(lease: &Lease, policies: &Policies) -> Result<Value, CallError> {
    let mut tools = Vec::new();
    let mut cursors = HashSet::new();
    let mut cursor = None;
    let mut bytes = 0;
    for _ in 0..PAGES {
        let params =
            cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest {
            params,
            ..ListToolsRequest::default()
        };
        let page = lease
            .request(METHOD, ClientRequest::ListToolsRequest(request))
            .await?;
        let (found, next) = read_page(page)?;
        for tool in found {
            let item = item(tool, policies)?;
            bytes += item.to_string().len();
            tools.push(item);
        }
        if tools.len() > TOOLS_MAX || bytes > MAX_MESSAGE_BYTES {
            return Err(list_problem(format!(
                "the MCP server lists more than {TOOLS_MAX} tools, or more than {MAX_MESSAGE_BYTES} bytes of them"
            )));
        }
        match next {
            None => {
                all_known(policies, &tools)?;
                return Ok(Value::Array(tools));
            }
            Some(next) => {
                if !cursors.insert(next.clone()) {
                    return Err(list_problem(format!(
                        "the MCP server's list of tools does not end: its cursor `{}` came twice",
                        shown(&next)
                    )));
                }
                cursor = Some(next);
            }
        }
    }
    Err(list_problem(format!(
        "the MCP server's list of tools does not end: it has more than {PAGES} pages"
    )))
}

fn list_problem(problem: String) -> CallError {
    CallError::Unusable { problem }
}

fn wrong(reason: impl Into<String>) -> CallError {
    CallError::Answer {
        method: METHOD,
        reason: reason.into(),
    }
}

/// The tools of a page, and where the next one begins. Some servers end their list with an empty cursor.
fn read_page(page: Value) -> Result<(Vec<Value>, Option<String>), CallError> {
    let Value::Object(mut page) = page else {
        return Err(wrong(format!("it is {}", kind_of(&page))));
    };
    let tools = match page.remove("tools") {
        Some(Value::Array(tools)) => tools,
        Some(other) => return Err(wrong(format!("`tools` is {}", kind_of(&other)))),
        None => return Err(wrong("it has no `tools`")),
    };
    match page.remove("nextCursor") {
        None | Some(Value::Null) => Ok((tools, None)),
        Some(Value::String(next)) if next.is_empty() => Ok((tools, None)),
        Some(Value::String(next)) => Ok((tools, Some(next))),
        Some(other) => Err(wrong(format!("`nextCursor` is {}", kind_of(&other)))),
    }
}

/// One tool as discovery takes it. Whether its schema is one is discovery's affair; that it is there is ours.
fn item(tool: Value, policies: &Policies) -> Result<Value, CallError> {
    let Value::Object(mut tool) = tool else {
        return Err(wrong(format!("a tool is {}", kind_of(&tool))));
    };
    let name = match tool.remove("name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        _ => return Err(wrong("a tool has no name")),
    };
    let schema = match tool.remove("inputSchema") {
        Some(schema @ Value::Object(_)) => schema,
        Some(other) => {
            return Err(wrong(format!(
                "the `inputSchema` of {} is {}, it must be an object",
                shown(&name),
                kind_of(&other)
            )));
        }
        None => {
            return Err(wrong(format!(
                "the tool {} has no `inputSchema`",
                shown(&name)
            )));
        }
    };
    let description = description(&name, &tool);
    let policy = policies.recommend(&name, tool.get("annotations"));
    Ok(json!({
        "name": name,
        "description": description,
        "input_schema": schema,
        "recommended_policy": policy.to_string(),
    }))
}

/// What the server says, else a sentence that names the tool (P2).
fn description(name: &str, tool: &Map<String, Value>) -> String {
    let text = |value: Option<&Value>| {
        value
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    if let Some(description) = text(tool.get("description")) {
        return description;
    }
    let annotations = tool.get("annotations");
    let title =
        text(tool.get("title")).or_else(|| text(annotations.and_then(|all| all.get("title"))));
    match title {
        Some(title) => {
            format!("{title}: the MCP server's tool {name}, which it does not describe.")
        }
        None => format!("The MCP server's tool {name}, which it does not describe."),
    }
}

/// A guard for a tool that is not there is a misspelt one.
fn all_known(policies: &Policies, tools: &[Value]) -> Result<(), CallError> {
    let names: BTreeSet<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    let unknown: Vec<&str> = policies
        .names()
        .filter(|name| !names.contains(name))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let some: Vec<String> = names.iter().take(20).map(|name| shown(name)).collect();
    Err(list_problem(format!(
        "--policy names {}, which the MCP server does not have; it has {}{}",
        unknown
            .iter()
            .map(|name| shown(name))
            .collect::<Vec<_>>()
            .join(", "),
        some.join(", "),
        if names.len() > some.len() {
            ", …"
        } else {
            ""
        }
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_handed_on_with_its_schema_as_it_is_and_without_what_discovery_does_not_know() {
        let tool = json!({
            "name": "read", "title": "Read", "description": "Reads", "outputSchema": {}, "_meta": {},
            "inputSchema": {"type": "object", "x-own": [1]}, "annotations": {"readOnlyHint": true},
        });
        assert_eq!(
            item(tool, &Policies::default()).unwrap(),
            json!({
                "name": "read", "description": "Reads", "recommended_policy": "allow",
                "input_schema": {"type": "object", "x-own": [1]},
            })
        );
    }

    #[test]
    fn a_tool_without_a_description_gets_one_that_names_it() {
        for (tool, expected) in [
            (
                json!({}),
                "The MCP server's tool t, which it does not describe.",
            ),
            (
                json!({"description": " "}),
                "The MCP server's tool t, which it does not describe.",
            ),
            (
                json!({"title": "Tea"}),
                "Tea: the MCP server's tool t, which it does not describe.",
            ),
            (
                json!({"annotations": {"title": "Tea"}}),
                "Tea: the MCP server's tool t, which it does not describe.",
            ),
        ] {
            assert_eq!(description("t", tool.as_object().unwrap()), expected);
        }
    }

    #[test]
    fn a_lying_server_is_told_which_tool_is_wrong() {
        for (tool, words) in [
            (
                json!({"name": "t", "inputSchema": "{}"}),
                "the `inputSchema` of t is a string",
            ),
            (json!({"name": "t"}), "the tool t has no `inputSchema`"),
            (json!({"inputSchema": {}}), "a tool has no name"),
            (json!("t"), "a tool is a string"),
        ] {
            let error = item(tool, &Policies::default()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        for (page, words) in [
            (json!([]), "it is an array"),
            (json!({}), "it has no `tools`"),
            (json!({"tools": {}}), "`tools` is an object"),
            (
                json!({"tools": [], "nextCursor": 7}),
                "`nextCursor` is a number",
            ),
        ] {
            let error = read_page(page).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn an_override_for_a_tool_that_is_not_there_fails_the_list() {
        let mut policies = Policies::default();
        policies.add("delte=block").unwrap();
        let error = all_known(&policies, &[json!({"name": "delete"})]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--policy names delte, which the MCP server does not have; it has delete"
        );
    }
}
