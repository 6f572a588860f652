//! The types of `extension/src/rpc/protocol.ts` have no field that the supervisor does not send.

use devtether::api::debug::breakpoints::BreakpointReport;
use devtether::api::debug::results::{DebugSessionStatus, StopLocation, StopReason, TargetStatus};
use devtether::api::window::{BuildReport, ChangedFile, RefreshReport, WindowExitReport, WindowStatus};
use schemars::{Schema, schema_for};

/// The names of the fields of `export interface NAME { … }`.
fn interface_fields<'t>(source: &'t str, name: &str) -> Vec<&'t str> {
    let start = format!("export interface {name} {{");
    let body = source.split_once(&start).unwrap_or_else(|| panic!("there is no {start}")).1;
    let body = body.split_once("\n}").unwrap().0;
    let field = |line: &'t str| {
        let line = line.strip_prefix("  ").filter(|line| line.starts_with(|c: char| c.is_ascii_alphabetic()))?;
        Some(line.split_once(':')?.0.trim_end_matches('?'))
    };
    body.lines().filter_map(field).collect()
}

#[test]
fn the_extension_reads_only_fields_that_the_supervisor_sends() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/extension/src/rpc/protocol.ts");
    let source = std::fs::read_to_string(file).unwrap();
    let check = |interface: &str, schema: Schema| {
        let read = interface_fields(&source, interface);
        assert!(!read.is_empty(), "{interface} has no fields");
        let sent = schema.get("properties").and_then(|it| it.as_object()).unwrap();
        let unknown: Vec<_> = read.iter().filter(|field| !sent.contains_key(**field)).collect();
        assert!(unknown.is_empty(), "{interface}: {unknown:?} is never sent; there are {:?}", sent.keys());
    };
    check("WindowStatus", schema_for!(WindowStatus));
    check("ChangedFile", schema_for!(ChangedFile));
    check("BuildReport", schema_for!(BuildReport));
    check("WindowExit", schema_for!(WindowExitReport));
    check("RefreshReport", schema_for!(RefreshReport));
    check("SessionStatus", schema_for!(DebugSessionStatus));
    check("TargetStatus", schema_for!(TargetStatus));
    check("StopReason", schema_for!(StopReason));
    check("Breakpoint", schema_for!(BreakpointReport));
    assert!(schema_for!(StopLocation).get("properties").is_some_and(|it| it.get("methodName").is_some()));
}
