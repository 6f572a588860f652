//! Sends line breakpoints by the user's own name of their file, too, to an adapter that compares paths by their text: the
//! program may have been built over the same link.
//!
//! Only those that the adapter does not find by the canonical path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tether_dap::DapClient;

use super::binding_request::{line_request, request_bindings};
use super::merge::MergedBreakpoint;
use crate::debug::session::target_handle::TargetHandle;

/// Sends the breakpoints of a file that are not bound by its canonical path. `sent` are all of it, in this target.
pub async fn send_by_name(client: &DapClient, target: &TargetHandle, file: &Path, sent: &[MergedBreakpoint<'_>]) {
    let by_name = target.shared.with_state(|state| {
        // A name that was sent before, and is not now, is sent without breakpoints.
        let mut by_name: BTreeMap<PathBuf, Vec<&MergedBreakpoint<'_>>> =
            state.bindings.take_sent_names(target.id, file).into_iter().map(|name| (name, Vec::new())).collect();
        for breakpoint in sent {
            let is_bound = breakpoint.ids.iter().any(|id| state.bindings.is_verified(target.id, *id));
            if let Some(name) = breakpoint.sent.named().filter(|_| !is_bound) {
                by_name.entry(name.to_owned()).or_default().push(breakpoint);
            }
        }
        let names = by_name.iter().filter(|(_, breakpoints)| !breakpoints.is_empty()).map(|(name, _)| name.clone());
        state.bindings.record_sent_names(target.id, file, names.collect());
        by_name
    });
    for (name, breakpoints) in by_name {
        let ids: Vec<Vec<u32>> = breakpoints.iter().map(|it| it.ids.clone()).collect();
        let request = line_request(&name, breakpoints.iter().map(|it| it.sent));
        request_bindings(client, target, &ids, &request).await;
    }
}
