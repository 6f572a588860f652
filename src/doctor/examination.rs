//! The examination: every check, in the order of the report.

use std::path::Path;

use super::finding::DoctorReport;
use super::{adapter_checks, machine_checks, state_checks, window_checks, workspace_checks};

/// Runs every check. A check that fails is a finding too, so there is no error.
pub async fn examine_workspace(workspace: &Path) -> DoctorReport {
    let (mut findings, window) = workspace_checks::check_workspace(workspace);
    findings.extend(window_checks::check_running(workspace).await);
    findings.extend(machine_checks::check_tools(window.as_ref()).await);
    findings.extend(adapter_checks::check_adapters(workspace));
    findings.extend(machine_checks::check_folders(workspace));
    findings.extend(state_checks::check_states());
    DoctorReport { findings }
}
