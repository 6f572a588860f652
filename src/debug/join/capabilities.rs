//! What a joined editor is told that it may request: what the adapter supports and this server forwards, and what the server
//! does itself.

use serde_json::Value;
use tether_dap::types::{DapCapabilities, ExceptionBreakpointsFilter};

/// What is forwarded, where the adapter supports it.
const FORWARDED: [&str; 11] = [
    "supportsConditionalBreakpoints",
    "supportsLogPoints",
    "supportsFunctionBreakpoints",
    "supportsExceptionFilterOptions",
    "supportsEvaluateForHovers",
    "supportsSetVariable",
    "supportsSetExpression",
    "supportsCompletionsRequest",
    "supportsExceptionInfoRequest",
    "supportsDelayedStackTraceLoading",
    "supportsClipboardContext",
];
/// What every joined editor can do: it ends the program only by these, and leaves by everything else. Hits are counted here where the
/// adapter does not count them.
const OWN: [&str; 4] = [
    "supportsConfigurationDoneRequest",
    "supportsHitConditionalBreakpoints",
    "supportsTerminateRequest",
    "supportTerminateDebuggee",
];

/// For an editor that joins a session with this adapter. What is not supported is said, too: an editor may have been told
/// otherwise before its session was known.
pub fn joined_capabilities(adapter: &DapCapabilities) -> DapCapabilities {
    let mut joined = own_capabilities();
    joined.exception_breakpoint_filters.clone_from(&adapter.exception_breakpoint_filters);
    joined.others.extend(FORWARDED.map(|name| (name.to_owned(), Value::Bool(adapter.can(name)))));
    let characters = adapter.others.get("completionTriggerCharacters");
    joined.others.extend(characters.map(|it| ("completionTriggerCharacters".to_owned(), it.clone())));
    joined
}

/// For an editor whose session is not known yet: whatever an adapter may support. What its adapter does not support is
/// reported of each breakpoint.
pub fn expected_capabilities() -> DapCapabilities {
    let mut expected = own_capabilities();
    expected.others.extend(FORWARDED.map(|name| (name.to_owned(), Value::Bool(true))));
    let filter = |filter: &str, label: &str, default| ExceptionBreakpointsFilter {
        filter: filter.to_owned(),
        label: label.to_owned(),
        default,
    };
    expected.exception_breakpoint_filters =
        vec![filter("caught", "Caught Exceptions", false), filter("uncaught", "Uncaught Exceptions", true)];
    expected
}

fn own_capabilities() -> DapCapabilities {
    let others = OWN.map(|name| (name.to_owned(), Value::Bool(true)));
    DapCapabilities { others: others.into_iter().collect(), ..DapCapabilities::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_forwarded_and_supported_is_offered() {
        let adapter: DapCapabilities = serde_json::from_value(serde_json::json!({
            "supportsSetVariable": true, "supportsReadMemoryRequest": true, "supportsDataBreakpoints": true,
            "completionTriggerCharacters": ["."], "exceptionBreakpointFilters": [{"filter": "raised", "label": "Raised"}],
        }))
        .unwrap();
        let joined = joined_capabilities(&adapter);
        assert!(joined.can("supportsSetVariable") && joined.can("supportsConfigurationDoneRequest"));
        assert!(!joined.can("supportsReadMemoryRequest") && !joined.can("supportsDataBreakpoints"));
        assert_eq!(joined.others.get("supportsLogPoints"), Some(&Value::Bool(false)));
        assert_eq!(joined.exception_breakpoint_filters[0].filter, "raised");
        assert_eq!(joined.others["completionTriggerCharacters"], serde_json::json!(["."]));
        assert!(expected_capabilities().can("supportsLogPoints"));
    }
}
