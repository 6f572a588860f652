//! Debug sessions that follow the window over its launches, and block its automatic relaunch while they are stopped in it.
//!
//! A session that was attached to a part of the window follows it until the session is stopped by request: whatever
//! ends the window, and however long there is none. Does not depend on how a session or a window is started.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::ValueEnum;
use futures_util::future::{BoxFuture, FutureExt, join_all};
use serde_json::Map;
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::lock;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::warn;

use super::hosted_sessions::{HostedSessions, ListedSession};
use crate::api::debug::WindowPart;
use crate::debug::breakpoints::BreakpointOwner;
use crate::debug::program::{Address, DebugTarget, DebugTargetKind};
use crate::debug::{SessionEntry, SessionHosts, SessionRegistry, SessionRequest};
use crate::session_host::operations::reattached;
use crate::vocabulary::RunState;
use crate::window::{HeldHost, LiveWindow, Window, WindowPhase};

/// How long an adapter may take to notice that the window is gone.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(2);

/// The sessions that follow the window, each with the generation that it was last attached to, successfully or not.
#[derive(Default)]
pub struct WindowFollowers {
    generations: Mutex<BTreeMap<String, u64>>,
    /// Incremented with each change.
    changed: watch::Sender<u64>,
}

impl WindowFollowers {
    /// Records that a session was attached to this generation, and follows the window from now on.
    pub fn record_attached(&self, id: &str, generation: u64) {
        lock(&self.generations).insert(id.to_owned(), generation);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Stops following.
    pub fn remove(&self, id: &str) {
        lock(&self.generations).remove(id);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Whether any of them is attached to the extension host.
    fn follow_extension_host(&self, sessions: &WindowSessions) -> bool {
        let ids: Vec<String> = lock(&self.generations).keys().cloned().collect();
        ids.iter().any(|id| sessions.find(id).is_some_and(|it| follows_extension_host(it.request())))
    }

    /// Receives each change.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The sessions that are not attached to the current window yet; none while there is no window.
    pub fn ids_behind_window(&self, window: &Window) -> Vec<String> {
        let generation = {
            let published = window.watch();
            let published = published.borrow();
            published.window.as_ref().map(|_| published.generation)
        };
        generation.map(|generation| self.ids_behind(generation)).unwrap_or_default()
    }

    fn ids_behind(&self, generation: u64) -> Vec<String> {
        lock(&self.generations).iter().filter(|(_, at)| **at < generation).map(|(id, _)| id.clone()).collect()
    }

    /// Resolves when the session with this id is attached to the current window, or failed to be; without an id, when all
    /// following sessions are. The window's end wakes it, too: there is nothing to attach to then.
    pub async fn wait_until_current(&self, window: &Window, session: Option<&str>) {
        let (mut changed, mut published) = (self.changed.subscribe(), window.watch());
        loop {
            changed.borrow_and_update();
            published.borrow_and_update();
            let behind = self.ids_behind_window(window);
            if !behind.iter().any(|id| session.is_none_or(|session| session == id)) {
                return;
            }
            tokio::select! {
                // Its sender is a field of `self`.
                _ = changed.changed() => {}
                outcome = published.changed() => if outcome.is_err() { return },
            }
        }
    }
}

/// The request that attaches to a part of the window, and the window's generation.
pub async fn window_part_request(window: &Window, part: WindowPart, cwd: &Path) -> Result<(SessionRequest, u64)> {
    let published = window.inspect().await.published;
    let none = || Error::new(ErrorKind::NotFound, "there is no window to attach to").hint("`tether start` starts it");
    let up = published.window.as_deref().ok_or_else(none)?;
    let (name, what, kind) = match part {
        WindowPart::Page => ("the window's page", page_target(up).await?, "pwa-chrome"),
        WindowPart::ExtensionHost => {
            let kind = if is_node(up) { "pwa-node" } else { "pwa-extensionHost" };
            ("the window's extension host", extension_host_target(up).await?, kind)
        }
    };
    let mut fields = Map::new();
    if part == WindowPart::ExtensionHost && !is_node(up) {
        // As a configuration of launch.json names it.
        fields.insert("type".to_owned(), "extensionHost".into());
    }
    let request = SessionRequest {
        name: name.to_owned(),
        debug_target: DebugTarget { kind: what, cwd: cwd.to_owned(), fields, ..DebugTarget::default() },
        launch_type: Some(kind.to_owned()),
        follows: Some(part_name(part).to_owned()),
        ..SessionRequest::default()
    };
    Ok((request, published.generation))
}

fn is_node(up: &LiveWindow) -> bool {
    up.session.inspector_port == Some(up.session.cdp_port)
}

async fn page_target(up: &LiveWindow) -> Result<DebugTargetKind> {
    if is_node(up) {
        let error = Error::usage("cannot attach to the window's page").because("this window is Node: it has none");
        return Err(error.hint("`tether debug attach --window extension-host` attaches to the program itself"));
    }
    Ok(DebugTargetKind::Page { url: String::new(), port: up.verified_cdp_port().await? })
}

/// In a Node window the program itself is the extension host.
async fn extension_host_target(up: &LiveWindow) -> Result<DebugTargetKind> {
    let port = up.verified_inspector_port().await?.ok_or_else(|| {
        let error = Error::usage("cannot attach to the extension host").because("this window has none");
        error.hint("`tether debug attach --window page` attaches to its page")
    })?;
    Ok(DebugTargetKind::Listener(Address::loopback(port)))
}

fn part_name(part: WindowPart) -> &'static str {
    match part {
        WindowPart::Page => "page",
        WindowPart::ExtensionHost => "extensionHost",
    }
}

/// The request of a session, renewed for the current window, whose ports may differ.
pub async fn renew_request(window: &Window, before: SessionRequest) -> Result<SessionRequest> {
    let part = WindowPart::value_variants().iter().find(|part| before.follows.as_deref() == Some(part_name(**part)));
    let Some(part) = part else { return Ok(before) };
    let (now, _) = window_part_request(window, *part, &before.debug_target.cwd).await?;
    Ok(SessionRequest { debug_target: now.debug_target, ..before })
}

/// The sessions that may follow the window, here and in hosts.
#[derive(Clone)]
pub struct WindowSessions {
    /// Those in this process, and what is stored.
    pub here: SessionRegistry,
    /// Those in processes of their own.
    pub hosted: HostedSessions,
}

impl WindowSessions {
    fn list(&self) -> Vec<ListedSession> {
        let hosted = self.hosted.list_sessions().into_iter().map(ListedSession::Hosted);
        self.here.list_sessions().into_iter().map(ListedSession::Here).chain(hosted).collect()
    }

    fn find(&self, id: &str) -> Option<ListedSession> {
        self.list().into_iter().find(|it| it.id() == id)
    }
}

/// Blocks the automatic replacement of the window while a following session is stopped in it.
pub fn hold_relaunch_while_stopped(window: &Window, sessions: WindowSessions) {
    window.block_replacement_while(move || {
        let stopped = |it: &ListedSession| it.request().follows_window() && it.run_state() == RunState::Stopped;
        let holder = sessions.list().into_iter().find(stopped)?;
        Some(format!(
            "debug session {0} is stopped in it: continue it (`tether debug continue --session {0}`), or relaunch it \
             yourself with `tether restart`",
            holder.id()
        ))
    });
}

/// Recovers the sessions of an earlier supervisor, then attaches following sessions to each new launch; runs until
/// aborted. An extension host that starts from this call on waits for them, where sessions may return.
pub fn follow_window(
    window: Window,
    sessions: WindowSessions,
    followers: Arc<WindowFollowers>,
) -> impl Future<Output = ()> + Send {
    window.hold_new_hosts(may_sessions_return(&sessions.here));
    recover_and_follow(window, sessions, followers)
}

fn may_sessions_return(sessions: &SessionRegistry) -> bool {
    sessions.watch_unrecovered().borrow().values().any(|may_return| *may_return)
}

async fn recover_and_follow(window: Window, sessions: WindowSessions, followers: Arc<WindowFollowers>) {
    let now = |request: SessionRequest| -> BoxFuture<'static, Result<SessionRequest>> {
        let window = window.clone();
        async move { renew_request(&window, request).await }.boxed()
    };
    window.wait_for_search().await;
    let generation = window.watch().borrow().generation;
    // There was no window to arm before.
    window.hold_new_hosts(may_sessions_return(&sessions.here));
    let hosts: Arc<dyn SessionHosts> = Arc::new(sessions.hosted.clone());
    sessions.here.recover_sessions(&now, &hosts).await;
    let hosts: BTreeSet<String> = sessions.hosted.list_sessions().iter().map(|it| it.launch_id.clone()).collect();
    // Those of editors whose process has ended with the earlier supervisor, or with its host.
    let is_gone = move |owner: &BreakpointOwner| !owner.host.as_ref().is_some_and(|host| hosts.contains(&**host));
    sessions.here.remove_editors(is_gone).await;
    for session in sessions.list().iter().filter(|it| it.is_following_window()) {
        // A session that could not be attached waits for the next launch; there may have been one meanwhile.
        followers.record_attached(session.id(), generation);
    }
    let (mut seen, mut changed) = (window.watch(), followers.watch());
    loop {
        let (is_up, is_gone, generation) = {
            let published = seen.borrow_and_update();
            let has_ended = matches!(published.phase, WindowPhase::Absent | WindowPhase::Exited);
            let is_gone = published.window.is_none() && published.search_done && has_ended;
            (published.window.is_some(), is_gone, published.generation)
        };
        changed.borrow_and_update();
        window.hold_new_hosts(followers.follow_extension_host(&sessions));
        if is_up {
            attach_to_current_launch(&window, &sessions, &followers, generation).await;
        }
        tokio::select! {
            outcome = seen.changed() => if outcome.is_err() { return },
            // Its sender is a field of `followers`.
            _ = changed.changed() => {}
            () = end_unnoticed_sessions(&sessions), if is_gone => {}
        }
    }
}

/// Ends each session in a window that is gone, where the adapter does not notice that. Runs until it is dropped: a session
/// that is started meanwhile is ended, too.
async fn end_unnoticed_sessions(sessions: &WindowSessions) {
    let mut listed = sessions.here.watch();
    loop {
        listed.borrow_and_update();
        let following = sessions.list().into_iter().filter(|it| it.is_following_window() && !it.is_ended());
        join_all(following.map(end_unnoticed)).await;
        if listed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn end_unnoticed(session: ListedSession) {
    match session {
        ListedSession::Here(managed) => {
            if timeout(NOTICE_TIMEOUT, managed.wait_until_ended()).await.is_err() {
                managed.disconnect().await;
            }
        }
        ListedSession::Hosted(hosted) => {
            if timeout(NOTICE_TIMEOUT, hosted.wait_until_ended()).await.is_err()
                && let Err(error) = hosted.disconnect().await
            {
                warn!("{}: {error}", hosted.id);
            }
        }
    }
}

/// Attaches the sessions that are behind. An extension host that waits for them is released as soon as their breakpoints are
/// sent: before it activates an extension.
async fn attach_to_current_launch(
    window: &Window,
    sessions: &WindowSessions,
    followers: &WindowFollowers,
    generation: u64,
) {
    let behind = followers.ids_behind(generation);
    if behind.is_empty() {
        return;
    }
    let held = window.wait_for_held_host().await;
    let why = window.watch().borrow().window.as_ref().map_or("the window was relaunched", |it| it.describe_renewal());
    let attached = join_all(behind.iter().map(|id| reattach_session(window, sessions, id, why))).await;
    let was_held = held.is_some_and(HeldHost::release);
    join_all(attached.iter().flatten().map(|it| report_reattached(it, was_held, why))).await;
    for id in behind {
        // It may have been stopped meanwhile, and is not a follower then.
        if let Some(at) = lock(&followers.generations).get_mut(&id) {
            *at = generation;
        }
        if sessions.find(&id).is_none() {
            followers.remove(&id);
        }
    }
    followers.changed.send_modify(|count| *count += 1);
}

async fn reattach_session(window: &Window, sessions: &WindowSessions, id: &str, why: &str) -> Option<ListedSession> {
    let old = sessions.find(id)?;
    // Without such a part in the new window, the session ends, with the reason.
    let request = renew_request(window, SessionRequest::clone(old.request())).await;
    match old {
        ListedSession::Here(lost) if lost.is_lost() => {
            sessions.here.reattach_lost(&lost, request, why, &sessions.hosted).await;
            sessions.find(id).filter(|it| !it.is_ended())
        }
        ListedSession::Here(managed) => sessions.here.reattach(&managed, request, why).await.map(ListedSession::Here),
        ListedSession::Hosted(hosted) => match hosted.reattach(request, why).await {
            Ok(is_attached) => is_attached.then_some(ListedSession::Hosted(hosted)),
            Err(error) => {
                warn!("{id}: {error}");
                None
            }
        },
    }
}

/// Waits until the breakpoints in loaded scripts are bound, and reports what the next result of the session should say.
async fn report_reattached(session: &ListedSession, was_held: bool, why: &str) {
    let missed = "breakpoints in `activate` may have been missed: the extension host did not wait for them";
    let missed = Some(missed.to_owned()).filter(|_| follows_extension_host(session.request()) && !was_held);
    match session {
        ListedSession::Here(managed) => reattached::report_reattached(managed, why, missed.as_deref()).await,
        ListedSession::Hosted(hosted) => {
            if let Err(error) = hosted.report_reattached(why, missed).await {
                warn!("{}: {error}", hosted.id);
            }
        }
    }
}

fn follows_extension_host(request: &SessionRequest) -> bool {
    request.follows.as_deref() == Some(part_name(WindowPart::ExtensionHost))
}
