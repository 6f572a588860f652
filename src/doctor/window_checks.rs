//! Checks the supervisor and its window, and `session.json` when no supervisor runs.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::finding::FindingLevel::{Ok as Good, Problem, Warning};
use super::finding::{Finding, FindingLevel, FindingTopic};
use super::orphan_launches;
use crate::api::OperationParams;
use crate::api::protocol::InitializeParams;
use crate::api::window::{ReportedWindowState, WindowStatus, WindowStatusParams};
use crate::error::{Error, ErrorKind, Result};
use crate::process;
use crate::supervisor::connect::{IfNotRunning, SupervisorPaths, connect};
use crate::supervisor::lock::{LockHolder, LockStatus, inspect_lock};
use crate::window::identity::{IdentityError, verify_window};
use crate::window::session_file::{self, SessionFileError};
use crate::workspace_dir;

/// How long a supervisor may take to say how its window is.
const ANSWER: Duration = Duration::from_secs(15);
const OURS: &str = env!("CARGO_PKG_VERSION");

fn running_finding(level: FindingLevel, what: impl Into<String>) -> Finding {
    Finding::new(FindingTopic::Running, level, what)
}

/// The findings about the supervisor, the window, the session file and the orphans.
pub async fn check_running(workspace: &Path) -> Vec<Finding> {
    // A missing workspace is reported by its own check; bad folders are reported here.
    let place = match SupervisorPaths::of_workspace(workspace) {
        Ok(place) => place,
        Err(error) if error.kind == ErrorKind::Usage => return Vec::new(),
        Err(error) => return vec![Finding::from_error(FindingTopic::Running, Problem, &error)],
    };
    let mut findings = vec![running_finding(Good, format!("its socket is {}", place.socket.display()))];
    match inspect_lock(&place.lock) {
        Ok(LockStatus::Locked(holder)) => findings.extend(check_supervisor(&place, holder).await),
        Ok(LockStatus::Free(_)) => {
            findings.push(running_finding(Good, "no supervisor runs; the next command starts one"));
            findings.extend(check_session_file(&place).await);
        }
        Err(cause) => findings.push(running_finding(Problem, format!("cannot read {}: {cause}", place.lock.display()))),
    }
    findings.extend(check_orphans());
    findings
}

async fn check_supervisor(place: &SupervisorPaths, holder: Option<LockHolder>) -> Vec<Finding> {
    let Some(holder) = holder else {
        return vec![running_finding(Warning, "a supervisor is starting or ending").hint("ask again: `tether doctor`")];
    };
    let LockHolder { pid, version, .. } = &holder;
    // Never connected to by a newer front end: it would end for our sake.
    if version != OURS {
        return vec![
            running_finding(
                Warning,
                format!("the supervisor (process {pid}) is version {version}, and this is {OURS}"),
            )
            .hint("the next command replaces an older one; the window stays: `tether status`"),
        ];
    }
    let mut findings = vec![running_finding(Good, format!("the supervisor is process {pid}, version {version}"))];
    if process::is_program_replaced(*pid) {
        findings.push(
            running_finding(Warning, format!("its program has been replaced since process {pid} started"))
                .hint("`tether shutdown` ends it, and the window stays; the next command starts the new one"),
        );
    }
    findings.push(match request_status(place).await {
        Ok(status) => window_finding(&status),
        Err(error) => Finding::from_error(FindingTopic::Running, Problem, &error),
    });
    findings
}

/// Requests the window's status from the running supervisor; starts none.
async fn request_status(place: &SupervisorPaths) -> Result<WindowStatus> {
    let ourselves =
        InitializeParams { name: "tether doctor".into(), version: OURS.into(), ..InitializeParams::default() };
    let connection = connect(place, &ourselves, IfNotRunning::Skip).await?;
    let connection = connection.ok_or_else(|| Error::other("the supervisor has ended in this moment"))?;
    let (told, _) = mpsc::unbounded_channel();
    let nothing = json!({});
    let answer: Value =
        timeout(ANSWER, connection.call(WindowStatusParams::METHOD, &nothing, told)).await.map_err(|_| {
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
        ReportedWindowState::Stale => {
            running_finding(Good, text + "; the next operation on it rebuilds and relaunches")
        }
        _ => running_finding(Good, text),
    }
}

/// What an earlier supervisor has left in the workspace, or only in the state folder (`git clean -fdx`).
async fn check_session_file(place: &SupervisorPaths) -> Option<Finding> {
    let roots = [&place.workspace, &place.state];
    let workspace = roots.into_iter().find(|root| !matches!(session_file::load_session(root), Ok(None)))?;
    let path = session_file::session_path(workspace);
    let aside = |level: FindingLevel, reason: String| {
        running_finding(level, format!("{} is stale: {reason}", path.display()))
            .hint("the next command sets it aside: `tether status`")
    };
    let session = match session_file::load_session(workspace) {
        Ok(session) => session?,
        Err(
            reason @ SessionFileError::File(
                workspace_dir::UnusableFile::Folder(_) | workspace_dir::UnusableFile::Foreign(_),
            ),
        ) => {
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

fn check_orphans() -> Option<Finding> {
    let launches = match orphan_launches::find_launches() {
        Ok(launches) => launches,
        Err(error) => return Some(Finding::from_error(FindingTopic::Running, Warning, &error)),
    };
    let orphans: Vec<_> = launches.iter().filter(|launch| launch.is_orphan()).collect();
    let processes: usize = orphans.iter().map(|launch| launch.processes.len()).sum();
    (processes > 0).then(|| {
        running_finding(
            Warning,
            format!("left over from windows that are gone: processes {processes}, launches {}", orphans.len()),
        )
        .hint("`tether doctor --reap` shows them, and with `--yes` ends them")
    })
}
