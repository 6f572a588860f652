//! Verification that a session file describes our own running window.
//!
//! Comes before any signal or connection. The process is first opened as a pidfd and then inspected, so the result holds
//! for the process behind that pidfd. Does not act on the result.

use std::io;

use tether_base::sync::run_blocking;
use tether_process::{LAUNCH_ID, Process};

use super::session_file::WindowSession;

/// Our window: we launched the process, and it owns its port.
#[derive(Debug)]
pub struct VerifiedWindow {
    pub process: Process,
    pub endpoint: tether_cdp::Endpoint,
}

/// The failed check. Each text completes "session.json was set aside: …".
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The usual case after the window was closed.
    #[error("its window has ended (no process {0})")]
    Exited(u32),
    #[error("it was written before this machine was started")]
    OtherBoot,
    #[error("PID {0} can never be a window")]
    InvalidPid(u32),
    #[error("process {pid} belongs to user {uid}")]
    OtherUser { pid: u32, uid: u32 },
    #[error("PID {pid} was reused: that process started at tick {found}, the window at tick {expected}")]
    ReusedPid { pid: u32, found: u64, expected: u64 },
    #[error("process {0} does not carry the launch id in its environment")]
    MissingLaunchId(u32),
    #[error("port {port} is not listened on by process {pid} or a descendant of it, but by {by}")]
    PortOutsideTree { port: u16, pid: u32, by: String },
    #[error("port {port} is not listened on by a process of this launch, but by {by}")]
    PortOutsideLaunch { port: u16, by: String },
    #[error("port {port} is answered by browser {found:?}, the window is {expected:?}")]
    OtherBrowser { port: u16, found: String, expected: String },
    /// The process is verified, but does not respond: our window is frozen.
    #[error("the window (process {}) does not answer: {cause}", process.pid())]
    Unresponsive { process: Process, cause: tether_cdp::CdpError },
    #[error("the processes of this machine cannot be examined: {0}")]
    Unreadable(#[from] io::Error),
}

impl IdentityError {
    /// Whether the window may run all the same: the check itself failed, or the process is the window's, but its port
    /// is not.
    pub fn leaves_doubt(&self) -> bool {
        match self {
            IdentityError::PortOutsideTree { .. }
            | IdentityError::PortOutsideLaunch { .. }
            | IdentityError::OtherBrowser { .. }
            | IdentityError::Unresponsive { .. }
            | IdentityError::Unreadable(_) => true,
            IdentityError::Exited(_)
            | IdentityError::OtherBoot
            | IdentityError::InvalidPid(_)
            | IdentityError::OtherUser { .. }
            | IdentityError::ReusedPid { .. }
            | IdentityError::MissingLaunchId(_) => false,
        }
    }
}

/// Verifies that the session's process and port are our window's. Connects only after all other checks.
pub async fn verify_window(session: &WindowSession) -> Result<VerifiedWindow, IdentityError> {
    let verified = session.clone();
    let process = run_blocking(move || verify_without_connecting(&verified)).await?;
    let endpoint = match tether_cdp::discover_endpoint(session.cdp_port).await {
        Ok(endpoint) => endpoint,
        Err(_) if !process.is_alive() => return Err(IdentityError::Exited(process.pid())),
        Err(cause) => return Err(IdentityError::Unresponsive { process, cause }),
    };
    if endpoint.browser_id != session.browser_id {
        let (port, found, expected) = (session.cdp_port, endpoint.browser_id, session.browser_id.clone());
        return Err(IdentityError::OtherBrowser { port, found, expected });
    }
    Ok(VerifiedWindow { process, endpoint })
}

/// As [`verify_window`], without connecting to the port: enough to signal the process.
pub fn verify_without_connecting(session: &WindowSession) -> Result<Process, IdentityError> {
    let pid = session.electron_pid;
    if pid <= 1 || pid == std::process::id() {
        return Err(IdentityError::InvalidPid(pid));
    }
    if tether_process::read_boot_id()? != session.boot_id {
        return Err(IdentityError::OtherBoot);
    }
    let process = Process::open(pid).map_err(|cause| unreadable_process(pid, cause))?;
    check_not_reused(&process, session)?;
    verify_tree_port(&process, session.cdp_port)?;
    // The checks above used the PID: they hold if the process has not exited meanwhile.
    if process.is_alive() { Ok(process) } else { Err(IdentityError::Exited(pid)) }
}

fn check_not_reused(process: &Process, session: &WindowSession) -> Result<(), IdentityError> {
    let pid = process.pid();
    let facts = tether_process::read_facts(pid).map_err(|cause| unreadable_process(pid, cause))?;
    if facts.uid != rustix::process::getuid().as_raw() {
        return Err(IdentityError::OtherUser { pid, uid: facts.uid });
    }
    if facts.start_ticks != session.pid_start_ticks {
        return Err(IdentityError::ReusedPid { pid, found: facts.start_ticks, expected: session.pid_start_ticks });
    }
    let launch_id =
        tether_process::read_environment_value(pid, LAUNCH_ID).map_err(|cause| unreadable_process(pid, cause))?;
    if launch_id.is_none_or(|launch_id| launch_id != session.launch_id.as_str()) {
        return Err(IdentityError::MissingLaunchId(pid));
    }
    Ok(())
}

/// Only a process that does not exist has exited: without descriptors, none can be read.
fn unreadable_process(pid: u32, cause: io::Error) -> IdentityError {
    match cause.kind() {
        io::ErrorKind::NotFound => IdentityError::Exited(pid),
        _ => IdentityError::Unreadable(cause),
    }
}

/// Verifies that the process or a descendant of it listens on `port`.
pub fn verify_tree_port(process: &Process, port: u16) -> Result<(), IdentityError> {
    let pid = process.pid();
    // Usually it is the process itself; wrappers need the scan of all processes.
    if tether_process::find_listener_among(port, &[pid])?.is_some() {
        return Ok(());
    }
    let tree: Vec<u32> = tether_process::list_tree(process)?.iter().map(Process::pid).collect();
    if tether_process::find_listener_among(port, &tree)?.is_some() {
        return Ok(());
    }
    Err(IdentityError::PortOutsideTree { port, pid, by: describe_listener(port) })
}

/// Verifies that a process with this launch id listens on `port`: an extension host is no descendant of the window's main
/// process.
pub fn verify_launch_port(launch_id: &str, port: u16) -> Result<(), IdentityError> {
    find_launch_listener(launch_id, port).map(drop)
}

/// As [`verify_launch_port`]; returns the PID of the process that listens.
pub fn find_launch_listener(launch_id: &str, port: u16) -> Result<u32, IdentityError> {
    let pids: Vec<u32> = tether_process::find_launch_processes(launch_id)?.iter().map(Process::pid).collect();
    let listener = tether_process::find_listener_among(port, &pids)?;
    listener.ok_or_else(|| IdentityError::PortOutsideLaunch { port, by: describe_listener(port) })
}

fn describe_listener(port: u16) -> String {
    match tether_process::list_listeners(port).unwrap_or_default().first() {
        Some(&pid) => format!("process {pid} ({})", tether_process::read_name(pid).unwrap_or_default()),
        None => "no process of this user".to_owned(),
    }
}
