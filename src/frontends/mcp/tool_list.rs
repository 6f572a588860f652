//! The list of MCP tools, which is written before: see `tool_schemas`. A `tools/list` is answered with its text: parsing it into
//! tools, and writing them again, would take most of a millisecond.

use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, ServerResult};
use rmcp::service::TxJsonRpcMessage;
use serde_json::value::RawValue;

use super::tool_names::offered_operations;
use super::tool_search::listed_tools;
use crate::api::OperationGroup;

/// The tools of all offered operations, in their order.
const TEXT: &str = include_str!("tool_list.json");
/// How an answer ends whose list of tools is empty: that is its last field.
const EMPTY_LIST: &[u8] = b"[]}}";

/// Whether a message is the answer to a `tools/list`. It is made without the tools.
pub fn lists_tools(message: &TxJsonRpcMessage<RoleServer>) -> bool {
    matches!(message, JsonRpcMessage::Response(response) if matches!(response.result, ServerResult::ListToolsResult(_)))
}

/// Which tools are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolSet {
    /// Those of one part of the API; `None`: all.
    pub group: Option<OperationGroup>,
    /// Only a few are listed; one of these finds the others.
    pub by_search: bool,
}

/// As the command line names a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ToolChoice {
    Window,
    Debug,
    /// A few, one of which finds the others: they take little of a model's context
    Search,
}

impl From<Option<ToolChoice>> for ToolSet {
    fn from(choice: Option<ToolChoice>) -> ToolSet {
        match choice {
            None => ToolSet::default(),
            Some(ToolChoice::Window) => ToolSet { group: Some(OperationGroup::Window), by_search: false },
            Some(ToolChoice::Debug) => ToolSet { group: Some(OperationGroup::Debug), by_search: false },
            Some(ToolChoice::Search) => ToolSet { group: None, by_search: true },
        }
    }
}

/// Puts the tools of this set into such an answer, as it is sent.
pub fn insert_tools(answer: &mut Vec<u8>, set: ToolSet) {
    if answer.ends_with(EMPTY_LIST) {
        answer.truncate(answer.len() - EMPTY_LIST.len());
        answer.extend_from_slice(tools_text(set).as_bytes());
        answer.extend_from_slice(b"}}");
    }
}

/// The tools of this set that are listed, as a list in JSON.
pub fn tools_text(set: ToolSet) -> String {
    let tools = offered_tools(set.group);
    if set.by_search {
        return listed_tools(&tools);
    }
    let texts: Vec<&str> = tools.iter().map(|tool| tool.get()).collect();
    format!("[{}]", texts.join(","))
}

/// The tools of one part of the API, or all.
pub fn offered_tools(group: Option<OperationGroup>) -> Vec<&'static RawValue> {
    let tools: Vec<&RawValue> = serde_json::from_str(TEXT).unwrap_or_default();
    let offered = offered_operations().zip(tools);
    offered.filter(|(operation, _)| operation.group.is_offered_with(group)).map(|(_, tool)| tool).collect()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ListToolsResult, RequestId};
    use serde_json::{Value, json};

    use super::*;

    fn answer(group: OperationGroup) -> Value {
        let result = ServerResult::ListToolsResult(ListToolsResult::default());
        let message = TxJsonRpcMessage::<RoleServer>::response(result, RequestId::Number(7));
        assert!(lists_tools(&message));
        let mut line = serde_json::to_vec(&message).unwrap();
        insert_tools(&mut line, ToolSet { group: Some(group), by_search: false });
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn an_answer_is_rmcps_with_the_tools_of_its_part() {
        let mut answer = answer(OperationGroup::Window);
        let tools = answer["result"]["tools"].take();
        let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"window_start") && !names.contains(&"debug_launch"), "{names:?}");
        let expect = serde_json::to_value(ListToolsResult::default()).unwrap();
        answer["result"]["tools"] = json!([]);
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 7, "result": expect}));
    }
}
