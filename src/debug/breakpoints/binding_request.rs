//! One request with breakpoints, whose response lists them in the order of the request.

use crate::dap::DapClient;
use crate::dap::types::{DapBreakpoint, DapRequest, SetBreakpointsResponse};
use crate::debug::session::target_handle::TargetHandle;

/// Sends a request with breakpoints, in this order, and records how the target has bound those that each stands for.
pub async fn request_bindings<R: DapRequest<Response = SetBreakpointsResponse>>(
    client: &DapClient,
    target: &TargetHandle,
    ids: &[Vec<u32>],
    request: &R,
) {
    target.shared.with_state(|state| state.bindings.begin_request(target.id));
    match client.request(request, target.shared.request_timeout).await {
        Ok(it) => {
            let bound = ids.iter().zip(&it.breakpoints);
            let (ids, bound): (Vec<u32>, Vec<DapBreakpoint>) =
                bound.flat_map(|(ids, bound)| ids.iter().map(|id| (*id, bound.clone()))).unzip();
            target.change_bindings(|state| state.bindings.record_response(target.id, &ids, &bound));
        }
        Err(error) => target.record_refusal(&ids.concat(), &error.to_string()),
    }
}
