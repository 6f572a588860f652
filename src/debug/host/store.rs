//! The file `sessions.json`: the debug sessions of a supervisor, for the next one to recover.
//!
//! It is in the supervisor's own state folder, and so its content is trusted; what it names is still verified: processes by
//! their launch ids, programs by attaching to them. A session is in it from before its first process until nothing of it is
//! left. Does not depend on recovery.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tether_base::clipped_text::first_bytes;
use tether_base::error::ErrorContext;
use tether_base::sync::lock;
use tracing::warn;

use super::session_request::SessionRequest;
use crate::workspace::workspace_dir::{AfterPowerFailure, WorkspaceFile};

const NAME: &str = "sessions.json";
/// A larger file is none, in bytes: a thousand sessions, whose requests have the largest size.
const MAX_FILE_BYTES: u64 = 128 << 20;
/// A larger request is stored by its name only, in bytes: its processes are found by the launch id.
const MAX_REQUEST_BYTES: usize = 64 << 10;
/// The longest name of a session whose request is too large, in bytes.
const MAX_NAME_BYTES: usize = 200;
/// The schema that this program writes; it reads no other.
const VERSION: u64 = 1;

/// One session, as the next supervisor reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredSession {
    /// The session's id.
    pub id: String,
    /// The adapter's name.
    pub adapter: String,
    /// What it was started with.
    pub request: SessionRequest,
    /// The launch id in the environment of its processes.
    #[serde(rename = "mark")]
    pub launch_id: String,
    /// Epoch ms.
    pub started_at: u64,
    /// Whether it is in the list of sessions.
    pub listed: bool,
    /// Why it is lost, if it cannot be attached to again.
    pub loss: String,
    /// It has ended, and is only readable in its host.
    #[serde(default)]
    pub ended: bool,
    /// The process that hosts it, if that is not the supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostRecord>,
}

/// The process that hosts a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRecord {
    /// Its process id.
    pub pid: u32,
    /// When it was started, in ticks since the boot: another process with its id has another time.
    pub start_ticks: u64,
    /// Where it listens.
    pub socket: PathBuf,
}

/// The stored entry of a session in a host; removed from the file when this is dropped.
pub struct HostedEntry {
    /// As the next supervisor reads it.
    pub entry: StoredSession,
    pub(super) guard: Option<StoredSessionGuard>,
}

impl HostedEntry {
    /// Hands over what removes the entry from the file.
    pub fn take(&mut self) -> HostedEntry {
        HostedEntry { entry: self.entry.clone(), guard: self.guard.take() }
    }

    /// Leaves the session in the file.
    pub fn keep(&mut self) {
        if let Some(guard) = self.guard.take() {
            guard.keep();
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionsFile {
    version: u64,
    boot_id: String,
    /// The last number that was given to a session.
    last: u32,
    sessions: Vec<StoredSession>,
    /// The launch ids of programs that were detached from, and run on.
    released: BTreeSet<String>,
    /// The supervisor is ending: sessions that end from now on stay in the file.
    #[serde(skip)]
    closed: bool,
}

impl SessionsFile {
    fn put_session(&mut self, mut entry: StoredSession) {
        if serde_json::to_vec(&entry.request).map_or(0, |text| text.len()) > MAX_REQUEST_BYTES {
            let name = std::mem::take(&mut entry.request).name;
            entry.request.name = first_bytes(&name, MAX_NAME_BYTES).to_owned();
        }
        self.sessions.retain(|it| it.id != entry.id);
        self.sessions.push(entry);
    }
}

/// The sessions of an earlier supervisor.
#[derive(Debug, Default)]
pub struct LeftoverSessions {
    /// The last number that was given to a session.
    pub last: u32,
    /// Those that had not ended, or followed a window.
    pub sessions: Vec<StoredSession>,
    /// Whether the machine has been rebooted since.
    pub rebooted: bool,
    /// The launch ids of those whose hosts were seen to run.
    pub running: BTreeSet<String>,
}

impl LeftoverSessions {
    /// Their ids; whether each may be attached to again.
    pub fn unrecovered_ids(&self) -> BTreeMap<String, bool> {
        let may_return = |it: &StoredSession| it.listed && !self.rebooted && it.request.debug_target.is_listener();
        self.sessions.iter().map(|it| (it.id.clone(), may_return(it))).collect()
    }
}

/// The file; without a folder nothing is stored.
pub struct SessionStore {
    folder: Option<PathBuf>,
    content: Mutex<SessionsFile>,
    /// Serialises the writes. Locked only on blocking threads.
    writes: Mutex<()>,
}

impl SessionStore {
    /// Opens the file, and returns its sessions. One that cannot be used is set aside. Blocks.
    pub fn open(folder: Option<&Path>) -> (SessionStore, LeftoverSessions) {
        let boot_id = tether_process::read_boot_id().unwrap_or_default();
        let mut content = folder.and_then(read_file).unwrap_or_default();
        let rebooted = content.boot_id != boot_id;
        if rebooted {
            content.released.clear();
        }
        let left = LeftoverSessions {
            last: content.last,
            sessions: content.sessions.clone(),
            rebooted,
            running: BTreeSet::new(),
        };
        let content = Mutex::new(SessionsFile { version: VERSION, boot_id, ..content });
        (SessionStore { folder: folder.map(Path::to_owned), content, writes: Mutex::default() }, left)
    }

    /// Adds a session, or replaces the one with its id. When this returns, it is in the file; when the guard is dropped, it is removed.
    pub async fn add_session(self: &Arc<SessionStore>, entry: StoredSession) -> StoredSessionGuard {
        let guard = self.guard_stored(&entry);
        let number = session_number(&entry.id);
        self.change_and_wait(|content| {
            content.last = content.last.max(number);
            content.put_session(entry);
        })
        .await;
        guard
    }

    /// Removes a stored session when the guard is dropped.
    pub fn guard_stored(self: &Arc<SessionStore>, entry: &StoredSession) -> StoredSessionGuard {
        StoredSessionGuard { store: Arc::clone(self), launch_id: entry.launch_id.clone(), is_kept: false }
    }

    /// Stores a session that has ended, and is to be attached again.
    pub fn keep_session(self: &Arc<SessionStore>, entry: StoredSession) {
        self.change(|content| content.put_session(entry));
    }

    /// Removes a session that has ended, or has been recovered.
    pub fn remove_session(self: &Arc<SessionStore>, launch_id: &str) {
        self.change(|content| content.sessions.retain(|it| it.launch_id != launch_id));
    }

    /// Whether a program runs on without its session.
    pub fn is_released(&self, launch_id: &str) -> bool {
        lock(&self.content).released.contains(launch_id)
    }

    /// Records that a program runs on without its session.
    pub fn add_released(self: &Arc<SessionStore>, launch_id: &str) {
        self.change(|content| content.released.extend([launch_id.to_owned()]));
    }

    /// Removes a session that was stopped by its user. When this returns, the file has been written.
    pub async fn record_stop(self: &Arc<SessionStore>, launch_id: &str, released: bool) {
        self.change_and_wait(|content| {
            content.released.extend(released.then(|| launch_id.to_owned()));
            content.sessions.retain(|it| it.launch_id != launch_id);
        })
        .await;
    }

    /// Removes the released programs that have exited since.
    pub fn forget_released(self: &Arc<SessionStore>, is_running: impl Fn(&str) -> bool) {
        self.change(|content| content.released.retain(|launch_id| is_running(launch_id)));
    }

    /// Records that the supervisor ends, and its sessions with it: the file is not changed any more, and has this reason
    /// for those that cannot be attached to again.
    pub async fn close_store(self: &Arc<SessionStore>, reason: &str, launch_ids: Vec<String>) {
        let ended =
            |it: &&mut StoredSession| launch_ids.contains(&it.launch_id) && !it.request.debug_target.is_listener();
        self.change_and_wait(|content| {
            content.closed = true;
            content.sessions.iter_mut().filter(ended).for_each(|it| it.loss = reason.to_owned());
        })
        .await;
    }

    /// Changes the content, also once the store is closed, and waits until a blocking thread has written it.
    async fn change_and_wait(self: &Arc<SessionStore>, change: impl FnOnce(&mut SessionsFile)) {
        change(&mut lock(&self.content));
        let store = Arc::clone(self);
        let _ = tokio::task::spawn_blocking(move || store.write_file()).await;
    }

    fn change(self: &Arc<SessionStore>, change: impl FnOnce(&mut SessionsFile)) {
        let mut content = lock(&self.content);
        if content.closed {
            return;
        }
        change(&mut content);
        drop(content);
        let store = Arc::clone(self);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || store.write_file())),
            Err(_) => store.write_file(),
        }
    }

    /// Writes the current content: of several writers the last one writes the newest. Blocks.
    fn write_file(&self) {
        let Some(folder) = &self.folder else { return };
        let _turn = lock(&self.writes);
        let text = serde_json::to_vec(&*lock(&self.content));
        let content = text
            .doing(|| format!("cannot write {NAME}"))
            // No session outlives a power failure.
            .and_then(|text| store_file(folder).replace(&text, AfterPowerFailure::Unknown));
        if let Err(error) = content {
            warn!("the next supervisor will not know of the debug sessions: {error}");
        }
    }
}

/// The number in the id of a session.
pub(super) fn session_number(id: &str) -> u32 {
    id.trim_start_matches('d').parse().unwrap_or(0)
}

/// A stored session; dropping this removes it, unless it is kept.
pub struct StoredSessionGuard {
    store: Arc<SessionStore>,
    launch_id: String,
    is_kept: bool,
}

impl StoredSessionGuard {
    /// Leaves the session in the file.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for StoredSessionGuard {
    fn drop(&mut self) {
        if !self.is_kept {
            self.store.remove_session(&self.launch_id);
        }
    }
}

fn store_file(folder: &Path) -> WorkspaceFile<'_> {
    WorkspaceFile { workspace: folder, name: NAME, most: MAX_FILE_BYTES, what: "the debug sessions keep running" }
}

fn read_file(folder: &Path) -> Option<SessionsFile> {
    let file = store_file(folder);
    let unusable = match file.read() {
        Ok(text) => match serde_json::from_slice::<SessionsFile>(&text?) {
            Ok(content) if content.version == VERSION => return Some(content),
            Ok(content) => format!("it has the schema {}, and this program knows {VERSION}", content.version),
            Err(cause) => cause.to_string(),
        },
        Err(cause) => cause.to_string(),
    };
    match file.set_aside(&unusable) {
        Ok(line) => warn!("{line}"),
        Err(error) => warn!("{error}"),
    }
    None
}

/// Whether a program with this launch id was detached from, according to the file in a supervisor's state folder.
pub fn is_released(folder: &Path, launch_id: &str) -> bool {
    let text = store_file(folder).read().ok().flatten().unwrap_or_default();
    serde_json::from_slice::<SessionsFile>(&text).is_ok_and(|content| content.released.contains(launch_id))
}

/// Whether the host of the session with this launch id still runs, according to the file in a supervisor's state folder.
pub fn has_running_host(folder: &Path, launch_id: &str) -> bool {
    let text = store_file(folder).read().ok().flatten().unwrap_or_default();
    let Ok(content) = serde_json::from_slice::<SessionsFile>(&text) else { return false };
    // A further program has a launch id of its own, which begins with that of the first.
    let is_of = |it: &StoredSession| {
        launch_id.strip_prefix(&it.launch_id).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let hosts = content.sessions.into_iter().filter(is_of).filter_map(|it| it.host);
    let is_same_boot = tether_process::read_boot_id().is_ok_and(|boot_id| boot_id == content.boot_id);
    let mut running = hosts.filter(|host| {
        tether_process::read_facts(host.pid).is_ok_and(|it| it.start_ticks == host.start_ticks && !it.zombie)
    });
    is_same_boot && running.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(number: usize, name: String) -> StoredSession {
        let request = SessionRequest { name, follows: Some("x".repeat(1000)), ..SessionRequest::default() };
        StoredSession {
            id: format!("d{number}"),
            adapter: "gdb".to_owned(),
            request,
            launch_id: format!("launch-{number}"),
            started_at: 1,
            listed: true,
            loss: String::new(),
            ended: false,
            host: None,
        }
    }

    #[tokio::test]
    async fn sessions_with_large_requests_and_many_of_them_are_found_by_the_next_supervisor() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = SessionStore::open(Some(folder.path()));
        let store = Arc::new(store);
        let long = "é".repeat(4 << 20);
        store.add_session(stored(1, long)).await.keep();
        // More than 1 MiB together.
        lock(&store.content).sessions.extend((2..1500).map(|number| stored(number, "x".to_owned())));
        store.add_session(stored(1500, "x".to_owned())).await.keep();
        let bytes = walk_bytes(folder.path());
        assert!(bytes > 1 << 20, "{bytes}");
        let (_, left) = SessionStore::open(Some(folder.path()));
        assert_eq!((left.sessions.len(), left.last), (1500, 1500));
        let first = &left.sessions[0];
        assert_eq!(
            (first.launch_id.as_str(), first.request.name.len(), first.listed),
            ("launch-1", MAX_NAME_BYTES, true)
        );
        assert_eq!(first.request.follows, None, "only the name is kept of a large request");
    }

    fn walk_bytes(folder: &Path) -> u64 {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let sizes = entries.map(|entry| match entry.metadata().unwrap() {
            it if it.is_dir() => walk_bytes(&entry.path()),
            it => it.len(),
        });
        sizes.sum()
    }
}
