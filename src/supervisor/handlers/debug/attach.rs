//! Attach: from parameters to a session request, or to the session that is attached to the same.

use std::path::Path;

use tether_base::error::{Error, Result};

use super::core_dump::{core_notes, core_program};
use super::launch::{SessionPlace, existing_path, launch_report, single_start};
use super::launch_config::{self, ConfigOverrides};
use super::started_programs::StartedSession;
use crate::api::debug::DebugAttachParams;
use crate::api::debug::results::LaunchReport;
use crate::api::debug::values::Seconds;
use crate::config::{EditorInputs, Settings};
use crate::debug::program::{Address, DebugTarget, DebugTargetKind, PathMap};
use crate::debug::{SessionEntry, SessionRequest, display_path};
use crate::session_host::operations::wait_limit::WaitLimit;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::hosted_sessions::ListedSession;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::supervisor::window_follow;
use crate::supervisor::wrapped_servers::find_server_session;
use crate::vocabulary::RunState;
use crate::window::Caller;

impl OperationHandler for DebugAttachParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<LaunchReport> {
        let budget = self.budget;
        let (started, wait, reports_unbound) = attach_sessions(context, self, call, SessionPlace::New).await?;
        launch_report(context, started, (wait, budget), reports_unbound, &[]).await
    }
}

/// Attaches, by a configuration perhaps with several sessions. Returns what is left of the wait, too, and whether unbound
/// breakpoints are to be reported.
pub(super) async fn attach_sessions(
    context: &SupervisorContext,
    params: DebugAttachParams,
    caller: &dyn Caller,
    place: SessionPlace,
) -> Result<(StartedSession, Option<Seconds>, bool)> {
    let sessions = &context.sessions;
    let (adapter, wait) = (params.adapter.clone(), params.wait);
    if let DebugAttachParams { port: None, url: None, window: None, config: Some(name), pid, .. } = &params {
        // With a configuration this is the same as a launch: its `request` says which of the two.
        let given = EditorInputs::new(None, *pid);
        let paths = params.paths.as_deref().map(|maps| parse_path_maps(maps, sessions.workspace())).transpose()?;
        let overrides = ConfigOverrides { given, adapter, paths, ..ConfigOverrides::default() };
        let configured = launch_config::prepare_config(sessions, name, &overrides)?;
        return Ok((configured.start_programs(context, caller, place).await?, wait, false));
    }
    if let DebugAttachParams {
        port: None, url: None, window: None, config: None, pid: None, server: Some(name), ..
    } = &params
    {
        let first = find_server_session(context, name)?;
        let note = format!("{} is the session of that server, and follows it over its restarts", first.id());
        return Ok((StartedSession { first, notes: vec![note] }, wait, true));
    }
    let (request, generation) = attach_request(context, params).await?;
    if matches!(place, SessionPlace::New)
        && let Some(first) = find_attached(context, &request, adapter.as_deref())
    {
        let note = format!("{} is attached to it already: this is that session", first.id());
        return Ok((StartedSession { first, notes: vec![note] }, wait, true));
    }
    // Whoever listens there may never answer. Another start may take longer: an adapter loads, and reads symbols.
    let is_listener = matches!(request.debug_target.kind, DebugTargetKind::Listener(_));
    let limit = WaitLimit::start(wait.filter(|_| is_listener));
    let (doing, kind) = (format!("cannot attach to {}", request.name), request.debug_target.kind.clone());
    let starting = context.start_session(single_start(SessionRequest { adapter, ..request }, None), place);
    let first = limit.or_timed_out(&doing, starting).await?;
    let wait = if is_listener { limit.remaining_wait() } else { wait };
    if let Some(generation) = generation {
        context.followers.record_attached(first.id(), generation);
    }
    let mut notes = match &kind {
        DebugTargetKind::Core { core, program } => core_notes(core, program),
        _ => Vec::new(),
    };
    if generation.is_some()
        && let Some(cause) = context.window.find_stale_cause().await
    {
        notes.push(format!("the window is stale ({cause}), and runs its old code: `tether restart` replaces it"));
    }
    // Nothing of a core dump stops at a breakpoint.
    let reports_unbound = !matches!(kind, DebugTargetKind::Core { .. });
    Ok((StartedSession { first, notes }, wait, reports_unbound))
}

/// The session that is attached to the same, by the same adapter.
fn find_attached(
    context: &SupervisorContext,
    request: &SessionRequest,
    adapter: Option<&str>,
) -> Option<ListedSession> {
    let is_same = |session: &ListedSession| {
        let status = session.known_status();
        let is_active = matches!(status.state, RunState::Starting | RunState::Running | RunState::Stopped);
        let target = &session.request().debug_target;
        is_active && target.kind == request.debug_target.kind && adapter.is_none_or(|name| status.adapter == name)
    };
    context.list_sessions().into_iter().find(is_same)
}

fn parse_path_maps(maps: &[String], workspace: &Path) -> Result<Vec<PathMap>> {
    maps.iter().map(|map| PathMap::parse(map, workspace)).collect()
}

/// The path maps of devtools.toml. Errors: that cannot be used.
pub(super) fn configured_path_maps(workspace: &Path) -> Result<Vec<PathMap>> {
    let settings = Settings::load(workspace)?;
    settings.paths.iter().map(|map| PathMap::new(&map.local, &map.remote, workspace)).collect()
}

/// The folders of the workspace that a process in a container has mounted elsewhere.
fn mounted_path_maps(pid: u32, workspace: &Path) -> Vec<PathMap> {
    let found = tether_process::find_mounted_folders(pid, workspace).unwrap_or_default();
    found.into_iter().map(|(local, remote)| PathMap { local, remote }).collect()
}

/// The request for what is attached to without a configuration; with the generation of the window, where it is a part of that.
async fn attach_request(
    context: &SupervisorContext,
    params: DebugAttachParams,
) -> Result<(SessionRequest, Option<u64>)> {
    let (workspace, is_host_named) = (context.sessions.workspace(), params.host.is_some());
    let is_program = params.pid.is_some() || params.core.is_some() || (params.port.is_some() && params.url.is_none());
    let paths = match &params.paths {
        Some(maps) if is_program => parse_path_maps(maps, workspace)?,
        Some(_) => {
            let error = Error::usage("cannot use `paths`").because("what is attached to is no program with files");
            return Err(error.hint("`paths` goes with `port`, `pid`, `core` or `config`"));
        }
        None if params.port.is_some() && is_program => configured_path_maps(workspace)?,
        None => params.pid.map(|pid| mounted_path_maps(pid, workspace)).unwrap_or_default(),
    };
    let host = params.host.unwrap_or_else(|| "127.0.0.1".to_owned());
    let request = |name: String, kind: DebugTargetKind| SessionRequest {
        name,
        debug_target: DebugTarget {
            kind,
            cwd: workspace.to_owned(),
            is_host_named,
            paths: paths.clone(),
            ..DebugTarget::default()
        },
        language: params.language.clone(),
        ..SessionRequest::default()
    };
    if params.server.is_some() {
        let error = Error::usage("cannot attach to a server and to something else at once");
        return Err(error.hint("name `server` alone"));
    }
    if let Some(core) = &params.core {
        let is_alone =
            params.port.is_none() && params.pid.is_none() && params.window.is_none() && params.config.is_none();
        if !is_alone {
            let error = Error::usage("cannot open a core dump and attach to something else at once");
            return Err(error.hint("name `core` alone, or with `program`"));
        }
        let core = existing_path(workspace, core)?;
        let program = core_program(workspace, &core, params.program.as_deref())?;
        let name = format!("the core dump of {}", display_path(workspace, &program));
        return Ok((request(name, DebugTargetKind::Core { core, program }), None));
    }
    Ok(match (params.port, params.pid, params.url, params.window, params.config) {
        (Some(port), None, None, None, None) => {
            (request(format!("{host}:{port}"), DebugTargetKind::Listener(Address { host, port })), None)
        }
        (Some(port), None, Some(url), None, None) => {
            let mut request = request(url.clone(), DebugTargetKind::Page { url, port });
            request.launch_type.get_or_insert_with(|| "pwa-chrome".to_owned());
            (request, None)
        }
        (None, Some(pid), None, None, None) => (request(format!("process {pid}"), DebugTargetKind::Pid(pid)), None),
        (None, None, None, Some(part), None) => {
            let (request, generation) = window_follow::window_part_request(&context.window, part, workspace).await?;
            (request, Some(generation))
        }
        _ => {
            let error = Error::usage("nothing to attach to was named");
            return Err(error.hint("name one of: `port` (and `url`, for a page), `pid`, `core`, `window`, `server`, `config` (and `pid`, for a process that it picks)"));
        }
    })
}
