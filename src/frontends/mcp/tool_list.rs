//! The list of MCP tools, which is written before: see `tool_schemas`. Reading it is all that a `tools/list` costs.

use rmcp::model::Tool;

use super::tool_names::offered_operations;
use crate::api::OperationGroup;

/// The tools of all offered operations, in their order.
const TEXT: &str = include_str!("tool_list.json");

/// The tools of one part of the API, or all.
pub fn list_tools(group: Option<OperationGroup>) -> Vec<Tool> {
    let tools: Vec<Tool> = serde_json::from_str(TEXT).unwrap_or_default();
    let offered = offered_operations().zip(tools);
    offered.filter(|(operation, _)| operation.group.is_offered_with(group)).map(|(_, tool)| tool).collect()
}
