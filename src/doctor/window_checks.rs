//! Checks the supervisor, its window and its breakpoints, and `session.json` when no supervisor runs.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tether_base::error::{Error, ErrorKind, Result};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::finding::FindingLevel::{Ok as Good, Problem, Warning};
use super::finding::{Finding, FindingLevel, FindingTopic};
use super::orphan_launches;
use crate::api::OperationParams;
use crate::api::protocol::{ClientCapabilities, InitializeParams};
use crate::api::window::{ReportedWindowState, WindowStatus, WindowStatusParams};
use crate::debug::breakpoints::BreakpointStore;
use crate::supervisor::connect::{IfNotRunning, SupervisorPaths, connect};
use crate::supervisor::lock::{LockHolder, LockStatus, inspect_lock};
use crate::window::identity::{IdentityError, verify_window};
use crate::window::session_file::{self, SessionFileError};
use crate::workspace::workspace_dir::UnusableFile;

/// How long a supervisor may take to say how its window is.
const ANSWER: Duration = Duration::from_secs(15);
const OURS: &str = env!("CARGO_PKG_VERSION");

fn running_finding(level: FindingLevel, what: impl Into<String>) -> Finding {
    Finding::new(FindingTopic::Running, level, what)
}

/// The findings about the supervisor, the window, the session file and the orphans.
pub async fn check_running(workspace: &Path) -> Vec<Finding> {
    // A missing workspace is reported by its own check; bad folders are reported here.
    let paths = match SupervisorPaths::of_workspace(workspace) {
        Ok(paths) => paths,
        Err(error) if error.kind == ErrorKind::Usage => return Vec::new(),
        Err(error) => return vec![Finding::from_error(FindingTopic::Running, Problem, &error)],
    };
    let mut findings = vec![running_finding(Good, format!("its socket is {}", paths.socket.display()))];
    let lock = inspect_lock(&paths.workspace_lock).and_then(|lock| match lock {
        LockStatus::Free(_) => inspect_lock(&paths.lock),
        locked @ LockStatus::Locked(_) => Ok(locked),
    });
    match lock {
        Ok(LockStatus::Locked(holder)) => findings.extend(check_supervisor(&paths, holder).await),
        Ok(LockStatus::Free(reservation)) => {
            // A lock that is still held here would be reported below as that of a supervisor.
            drop(reservation);
            findings.push(running_finding(Good, "no supervisor runs; the next command starts one"));
            findings.extend(check_session_file(&paths).await);
        }
        Err(cause) => findings.push(running_finding(Problem, format!("cannot read {}: {cause}", paths.lock.display()))),
    }
    findings.extend(check_launches());
    findings.extend(BreakpointStore::inspect(&paths.state).map(|problem| running_finding(Warning, problem)));
    findings
}

async fn check_supervisor(paths: &SupervisorPaths, holder: Option<LockHolder>) -> Vec<Finding> {
    let Some(holder) = holder else {
        return vec![running_finding(Warning, "a supervisor is starting or ending").hint("ask again: `tether doctor`")];
    };
    let LockHolder { pid, version, .. } = &holder;
    // Never connected to by a newer front end: it would end for our sake.
    if version != OURS {
        let what = format!("the supervisor (process {pid}) is version {version}, and this is {OURS}");
        let hint = "the next command replaces an older one; the window stays: `tether status`";
        return vec![running_finding(Warning, what).hint(hint)];
    }
    let mut findings = vec![running_finding(Good, format!("the supervisor is process {pid}, version {version}"))];
    if tether_process::is_program_replaced(*pid) {
        findings.push(
            running_finding(Warning, format!("its program has been replaced since process {pid} started"))
                .hint("`tether shutdown` ends it, and the window stays; the next command starts the new one"),
        );
    }
    findings.push(match request_status(paths).await {
        Ok(status) => window_finding(&status),
        Err(error) => Finding::from_error(FindingTopic::Running, Problem, &error),
    });
    findings
}

/// Requests the window's status from the running supervisor; starts none.
async fn request_status(paths: &SupervisorPaths) -> Result<WindowStatus> {
    let capabilities = ClientCapabilities { keeps_supervisor: true, ..ClientCapabilities::default() };
    let (name, version) = ("tether doctor".into(), OURS.into());
    let ourselves = InitializeParams { name, version, capabilities, ..InitializeParams::default() };
    let connection = connect(paths, &ourselves, IfNotRunning::Skip).await?;
    let connection = connection.ok_or_else(|| Error::other("the supervisor has ended in this moment"))?;
    let (progress, _) = mpsc::unbounded_channel();
    let params = json!({});
    let requested = timeout(ANSWER, connection.call(WindowStatusParams::METHOD, &params, progress)).await;
    let answer: Value = requested.map_err(|_| {
        Error::new(ErrorKind::TimedOut, "the supervisor does not say how its window is")
            .hint("`tether logs` shows its log")
    })??;
    serde_json::from_value(answer).map_err(|cause| Error::other("cannot understand the supervisor").because(cause))
}

fn window_finding(status: &WindowStatus) -> Finding {
    let ports = [("CDP port", status.cdp_port), ("inspector port", status.inspector_port)];
    let ports = ports.iter().filter_map(|(name, port)| Some(format!(", {name} {}", (*port)?))).collect::<String>();
    let pid = status.pid.map(|pid| format!(" (process {pid}{ports})")).unwrap_or_default();
    let state = serde_json::to_value(status.state).ok().and_then(|state| state.as_str().map(str::to_owned));
    let usage = status.resources.as_ref().map(|usage| format!(", uses {usage}")).unwrap_or_default();
    let text = format!("the window is {}{pid}{usage}", state.unwrap_or_default());
    match status.state {
        ReportedWindowState::Exited => {
            running_finding(Warning, text).hint("`tether status` shows how it ended; `tether start` starts it")
        }
        ReportedWindowState::Unresponsive => running_finding(Warning, text).hint("`tether restart` replaces it"),
        ReportedWindowState::Unverified => running_finding(Warning, text).hint("`tether status` shows why"),
        ReportedWindowState::Stale => {
            running_finding(Good, text + "; the next operation on it rebuilds and relaunches")
        }
        _ => running_finding(Good, text),
    }
}

/// What an earlier supervisor has left in the workspace, or only in the state folder (`git clean -fdx`).
async fn check_session_file(paths: &SupervisorPaths) -> Option<Finding> {
    let roots = [&paths.workspace, &paths.state];
    let workspace = roots.into_iter().find(|root| !matches!(session_file::load_session(root), Ok(None)))?;
    let path = session_file::session_path(workspace);
    let aside = |level: FindingLevel, reason: String| {
        running_finding(level, format!("{} is stale: {reason}", path.display()))
            .hint("the next command sets it aside: `tether status`")
    };
    let session = match session_file::load_session(workspace) {
        Ok(session) => session?,
        Err(reason @ SessionFileError::File(UnusableFile::Folder(_) | UnusableFile::Foreign(_))) => {
            let hint = format!("`ls -la {}` shows it; remove what is not yours", path.parent()?.display());
            return Some(running_finding(Problem, format!("{} cannot be used: {reason}", path.display())).hint(hint));
        }
        Err(reason) => return Some(aside(Warning, reason.to_string())),
    };
    let found = format!("process {}, CDP port {}", session.electron_pid, session.cdp_port);
    Some(match verify_window(&session).await {
        Ok(_) => running_finding(Good, format!("a window runs ({found}); the next command is connected to it again")),
        Err(IdentityError::Unresponsive { cause, .. }) => {
            running_finding(Warning, format!("a window runs ({found}), but does not respond: {cause}"))
                .hint("`tether restart` replaces it")
        }
        Err(doubt @ (IdentityError::Exited(_) | IdentityError::OtherBoot)) => aside(Good, doubt.to_string()),
        Err(doubt) => aside(Warning, doubt.to_string()),
    })
}

fn check_launches() -> Vec<Finding> {
    let launches = match orphan_launches::find_launches() {
        Ok(launches) => launches,
        Err(error) => return vec![Finding::from_error(FindingTopic::Running, Warning, &error)],
    };
    let orphans: Vec<_> = launches.iter().filter(|launch| launch.is_orphan()).collect();
    let processes: usize = orphans.iter().map(|launch| launch.processes.len()).sum();
    let what = format!("left over from windows that are gone: processes {processes}, launches {}", orphans.len());
    let hint = "`tether doctor --reap` shows them, and with `--yes` ends them";
    let orphaned = (processes > 0).then(|| running_finding(Warning, what).hint(hint));
    let detached: usize = launches.iter().map(|launch| launch.detached.len()).sum();
    let what = format!("started from inside a window, build or debuggee, and detached from it: processes {detached}");
    let hint = "they are yours, and never ended: `tether doctor --reap` shows them";
    orphaned.into_iter().chain((detached > 0).then(|| running_finding(Good, what).hint(hint))).collect()
}
