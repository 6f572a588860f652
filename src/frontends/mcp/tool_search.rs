//! The set of tools that costs little of a model's context: a few that agents begin with, one that finds the others, and one that
//! calls what it has found. Does not depend on what a tool does.

use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, JsonObject};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tether_base::error::{Error, Result};

/// Tools that are listed, without the outline of their results.
const LISTED: [&str; 3] = ["window_status", "window_start", "window_snapshot"];
const SEARCH: &str = "tool_search";
const CALL: &str = "tool_call";
/// How many tools a search returns with their parameters.
const MAX_FOUND: usize = 4;

/// The tools of this set, as a list in JSON; `all`: the tools of which it is made.
pub fn listed_tools(all: &[&RawValue]) -> String {
    let tools = all.iter().filter_map(|tool| serde_json::from_str::<Value>(tool.get()).ok());
    let listed = tools.filter(|tool| LISTED.iter().any(|name| tool["name"] == *name)).map(|mut tool| {
        tool.as_object_mut().map(|fields| fields.remove("outputSchema"));
        tool
    });
    let search = json!({
        "name": SEARCH,
        "description": "Find tools by words of what they do, such as `breakpoint` or `click`: with their parameters. Without words: all names.",
        "inputSchema": {"type": "object", "properties": {"query": {"type": "string", "description": "Words."}}},
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    });
    let call = json!({
        "name": CALL,
        "description": "Call a tool that `tool_search` has found.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Name of the tool."},
                "arguments": {"type": "string", "description": "Its arguments: the text of a JSON object."},
            },
            "required": ["name"],
        },
        "annotations": {},
    });
    Value::Array(listed.chain([search, call]).collect()).to_string()
}

/// A call of this set: a search, with its result, or the call of a tool.
pub enum SearchCall {
    Found(CallToolResult),
    Tool(CallToolRequestParams),
}

/// Reads a call. Errors: its parameters cannot be read.
pub fn read_call(mut request: CallToolRequestParams, all: &[&RawValue]) -> Result<SearchCall> {
    let arguments = request.arguments.clone().unwrap_or_default();
    match &*request.name {
        SEARCH => {
            let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
            Ok(SearchCall::Found(CallToolResult::success(vec![ContentBlock::text(find_tools(query, all))])))
        }
        CALL => {
            let missing = || Error::usage("no tool to call was named").hint("`tool_search` finds their names");
            let name = arguments.get("name").and_then(Value::as_str).ok_or_else(missing)?;
            request.arguments = Some(read_arguments(arguments.get("arguments"))?);
            request.name = name.to_owned().into();
            Ok(SearchCall::Tool(request))
        }
        _ => Ok(SearchCall::Tool(request)),
    }
}

fn read_arguments(given: Option<&Value>) -> Result<JsonObject> {
    let parsed = match given {
        None | Some(Value::Null) => return Ok(JsonObject::new()),
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        Some(value) => value.clone(),
    };
    match parsed {
        Value::Object(fields) => Ok(fields),
        _ => Err(Error::usage("cannot read `arguments`").because("they are not the text of a JSON object")),
    }
}

/// The tools that have most of the words, the best ones first, one on each line with its parameters.
fn find_tools(query: &str, all: &[&RawValue]) -> String {
    let words: Vec<String> = query.split(|it: char| !it.is_alphanumeric()).map(str::to_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| word.len() > 1).collect();
    let tools = all.iter().filter_map(|tool| serde_json::from_str::<Value>(tool.get()).ok());
    let tools: Vec<Value> = tools.collect();
    let names = || {
        tools.iter().filter_map(|tool| Some(format!("{}: {}", tool["name"].as_str()?, tool["description"].as_str()?)))
    };
    if words.is_empty() {
        return names().collect::<Vec<_>>().join("\n");
    }
    let mut scored: Vec<(usize, &Value)> = tools.iter().map(|tool| (score(tool, &words), tool)).collect();
    scored.retain(|(score, _)| *score > 0);
    // Stable: equals stay in the order of the list.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    if scored.is_empty() {
        return format!("no tool has these words; there are:\n{}", names().collect::<Vec<_>>().join("\n"));
    }
    let found = scored.into_iter().take(MAX_FOUND).map(|(_, tool)| {
        json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]})
            .to_string()
    });
    found.collect::<Vec<_>>().join("\n")
}

fn score(tool: &Value, words: &[&str]) -> usize {
    let has = |text: &Value, word: &str| text.as_str().is_some_and(|text| text.to_lowercase().contains(word));
    let parameters = tool["inputSchema"].to_string().to_lowercase();
    let of_word = |word: &&str| {
        let (name, description) = (has(&tool["name"], word), has(&tool["description"], word));
        4 * usize::from(name) + 2 * usize::from(description) + usize::from(parameters.contains(*word))
    };
    words.iter().map(of_word).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontends::mcp::tool_list::offered_tools;

    fn call(name: &'static str, arguments: Value) -> Result<SearchCall> {
        let request = CallToolRequestParams::new(name).with_arguments(arguments.as_object().unwrap().clone());
        read_call(request, &offered_tools(None))
    }

    #[test]
    fn the_list_costs_three_kilobytes_at_most() {
        let text = listed_tools(&offered_tools(None));
        let tools: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(tools.as_array().unwrap().len(), LISTED.len() + 2);
        assert!(text.len() <= 3 << 10, "{}", text.len());
    }

    #[test]
    fn every_tool_is_found_by_its_name_and_by_what_it_does() {
        let tools = offered_tools(None);
        for tool in &tools {
            let tool: Value = serde_json::from_str(tool.get()).unwrap();
            let name = tool["name"].as_str().unwrap();
            assert!(find_tools(name, &tools).contains(&format!("\"name\":\"{name}\"")), "{name}");
        }
        let first = |query: &str| {
            let found: Value = serde_json::from_str(find_tools(query, &tools).lines().next().unwrap()).unwrap();
            found["name"].as_str().unwrap().to_owned()
        };
        for (query, name) in [
            ("set a breakpoint", "breakpoint_set"),
            ("click a button", "window_input"),
            ("screenshot", "window_screenshot"),
        ] {
            assert_eq!(first(query), name, "{query}");
        }
        assert_eq!(find_tools("", &tools).lines().count(), tools.len());
        assert!(find_tools("xyzzy", &tools).starts_with("no tool has these words"));
    }

    #[test]
    fn a_tool_is_called_with_the_text_of_its_arguments() {
        for arguments in [json!("{\"a\": 1}"), json!({"a": 1})] {
            let Ok(SearchCall::Tool(called)) = call(CALL, json!({"name": "debug_stack", "arguments": arguments}))
            else {
                panic!()
            };
            assert_eq!((&*called.name, json!(called.arguments)), ("debug_stack", json!({"a": 1})));
        }
        let Ok(SearchCall::Tool(called)) = call(CALL, json!({"name": "debug_stack"})) else { panic!() };
        assert_eq!(json!(called.arguments), json!({}));
        assert!(call(CALL, json!({})).is_err());
        assert!(call(CALL, json!({"name": "x", "arguments": "[1]"})).is_err());
        assert!(matches!(call(SEARCH, json!({"query": "stack"})), Ok(SearchCall::Found(_))));
        assert!(matches!(call("window_status", json!({})), Ok(SearchCall::Tool(_))));
    }
}
