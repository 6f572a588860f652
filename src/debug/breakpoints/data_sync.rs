//! Sends data breakpoints to a target. Data of a class, or another that the adapter finds by its name alone, is watched from the
//! start; any other is found in a stopped frame only.
//!
//! Does not depend on how an expression is found in a frame.

use tether_dap::DapClient;
use tether_dap::types::{DataBreakpoint, DataBreakpointInfoArguments, SetDataBreakpointsArguments};

use super::binding_request::request_bindings;
use super::spec::{BreakpointKind, BreakpointSpec};
use crate::debug::session::target_handle::TargetHandle;
use crate::vocabulary::DataAccess;

/// Finds data by its name alone. Errors: the adapter does not, and why.
pub async fn find_data_by_name(
    client: &DapClient,
    target: &TargetHandle,
    name: &str,
    access: DataAccess,
) -> Result<DataBreakpoint, String> {
    // An adapter may exit at a request that it does not support (rdbg).
    if !target.capabilities().can("supportsDataBreakpoints") {
        return Err("this adapter has no data breakpoints".to_owned());
    }
    let asked = DataBreakpointInfoArguments { name: name.to_owned(), variables_reference: None, frame_id: None };
    let info = client.request(&asked, target.shared.request_timeout).await.map_err(|cause| cause.to_string())?;
    let access_type = Some(access.name().to_owned());
    // Without `canPersist`, it may mean something else after the next launch.
    match info.data_id.filter(|_| info.can_persist) {
        Some(data_id) => Ok(DataBreakpoint { data_id, access_type, ..DataBreakpoint::default() }),
        None => Err(info.description),
    }
}

/// Finds the data of the stored breakpoints that this target has not found yet, and sends what it has found.
pub(super) async fn send_stored_data_breakpoints(client: &DapClient, target: &TargetHandle, stored: &[BreakpointSpec]) {
    let known = target.shared.with_state(|state| state.data_of(target.id));
    let mut not_found = Vec::new();
    for spec in stored.iter().filter(|spec| known.iter().all(|(id, _)| *id != spec.id)) {
        let BreakpointKind::Data { expression, access, persistent_name } = &spec.kind else { continue };
        let name = persistent_name.as_ref().unwrap_or(expression);
        match find_data_by_name(client, target, name, *access).await {
            Ok(data) => drop(target.shared.with_state(|state| state.data.insert((target.id, spec.id), data))),
            Err(_) => not_found.push(spec.id),
        }
    }
    if !target.shared.with_state(|state| state.data_of(target.id)).is_empty() {
        send_data_breakpoints(client, target).await;
    }
    target.record_refusal(&not_found, "data is found in a stopped frame only: set it again there");
}

/// Sends the data breakpoints for which the target has returned ids.
pub(super) async fn send_data_breakpoints(client: &DapClient, target: &TargetHandle) {
    let data = target.shared.with_state(|state| state.data_of(target.id));
    let (ids, breakpoints): (Vec<u32>, Vec<DataBreakpoint>) = data.into_iter().unzip();
    if !target.capabilities().can("supportsDataBreakpoints") {
        return target.record_refusal(&ids, "this adapter has no data breakpoints");
    }
    let each: Vec<Vec<u32>> = ids.iter().map(|id| vec![*id]).collect();
    request_bindings(client, target, &each, &SetDataBreakpointsArguments { breakpoints }).await;
    target.change_bindings(|state| state.bindings.explain_refused_watchpoints(target.id, &ids));
}
