//! The file in which a supervisor keeps what the next one has to know of its sessions, should it die.
//!
//! It lies in the supervisor's own state folder, and so it is believed; what it names is still proven: processes by their
//! marks, programs by whether they can be attached to. A session is in it from before its first process until nothing of
//! it is left. Must not know what is done about it: that is `recover`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tracing::warn;

use super::managed_session::{PreparedSession, SessionRequest};
use crate::clock::now_ms;
use crate::error::ErrorContext;
use crate::process;
use crate::sync::lock;
use crate::workspace_dir::WorkspaceFile;

const NAME: &str = "sessions.json";
/// The schema that this program writes; it reads no other.
const VERSION: u64 = 1;

/// One session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredSession {
    pub id: String,
    /// As the table of adapters names it.
    pub adapter: String,
    pub request: SessionRequest,
    /// What its processes carry.
    pub mark: String,
    /// Epoch ms.
    pub started_at: u64,
    /// Whether anybody but the one who began it can see it.
    pub listed: bool,
    /// What is to be told of it, if it cannot be attached to again.
    pub loss: String,
}

impl StoredSession {
    pub(in crate::debug) fn from_prepared(ready: &PreparedSession, listed: bool) -> StoredSession {
        let PreparedSession { id, request, row, mark, .. } = ready;
        let (id, adapter, mark) = (id.clone(), row.name.to_owned(), mark.clone());
        StoredSession {
            id,
            adapter,
            request: request.clone(),
            mark,
            started_at: now_ms(),
            listed,
            loss: ready.loss_message(),
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
    /// The marks of programs that were let go on purpose, and live on.
    released: Vec<String>,
}

/// What an earlier supervisor has left.
#[derive(Debug, Default)]
pub struct LeftoverSessions {
    pub last: u32,
    pub sessions: Vec<StoredSession>,
    /// The machine has been started anew since.
    pub rebooted: bool,
}

/// The file; without a folder, nothing is kept.
pub struct SessionStore {
    folder: Option<PathBuf>,
    known: Mutex<StoreState>,
    writing: Mutex<()>,
}

#[derive(Default)]
struct StoreState {
    written: SessionsFile,
    /// What ends from now on ends with the supervisor.
    closed: bool,
}

impl SessionStore {
    /// Opens the file, and answers with what is in it. One that cannot be used is set aside.
    pub fn open(folder: Option<&Path>) -> (SessionStore, LeftoverSessions) {
        let boot_id = process::read_boot_id().unwrap_or_default();
        let mut written = folder.and_then(read_file).unwrap_or_default();
        let rebooted = written.boot_id != boot_id;
        if rebooted {
            written.released.clear();
        }
        let left = LeftoverSessions { last: written.last, sessions: written.sessions.clone(), rebooted };
        let written = SessionsFile { version: VERSION, boot_id, ..written };
        let known = Mutex::new(StoreState { written, closed: false });
        (SessionStore { folder: folder.map(Path::to_owned), known, writing: Mutex::default() }, left)
    }

    /// Keeps a session. When this is done, it is in the file; when what it gives is dropped, it is no longer.
    pub async fn add_session(self: &Arc<SessionStore>, entry: StoredSession) -> StoredSessionGuard {
        let kept = StoredSessionGuard { ledger: Arc::clone(self), mark: entry.mark.clone() };
        {
            let mut known = lock(&self.known);
            let number = entry.id.trim_start_matches('d').parse().unwrap_or(0);
            known.written.last = known.written.last.max(number);
            known.written.sessions.push(entry);
        }
        let ledger = Arc::clone(self);
        // It waits for the disk.
        let _ = tokio::task::spawn_blocking(move || ledger.write_file()).await;
        kept
    }

    /// An earlier supervisor's session has found its end, or its new beginning.
    pub fn remove_session(self: &Arc<SessionStore>, mark: &str) {
        self.change(|written| written.sessions.retain(|it| it.mark != mark));
    }

    /// A program lives on without its session.
    pub fn add_released(self: &Arc<SessionStore>, mark: &str) {
        self.change(|written| push_released(written, mark));
    }

    /// A session was stopped by its user. When this is done, the next supervisor knows.
    pub async fn record_stop(self: &Arc<SessionStore>, mark: &str, released: bool) {
        {
            let mut known = lock(&self.known);
            if released {
                push_released(&mut known.written, mark);
            }
            known.written.sessions.retain(|it| it.mark != mark);
        }
        let ledger = Arc::clone(self);
        // It waits for the disk.
        let _ = tokio::task::spawn_blocking(move || ledger.write_file()).await;
    }

    /// Forgets those that were let go and have ended since.
    pub fn forget_released(self: &Arc<SessionStore>, is_alive: impl Fn(&str) -> bool) {
        self.change(|written| written.released.retain(|mark| is_alive(mark)));
    }

    /// The supervisor ends, and its sessions with it: the file stays as it is now, and tells this of those that are not

    /// attached to again.
    pub fn close_store(&self, reason: &str, marks: &[String]) {
        {
            let mut known = lock(&self.known);
            known.closed = true;
            let ended = |it: &&mut StoredSession| marks.contains(&it.mark) && !it.request.debug_target.is_listener();
            known.written.sessions.iter_mut().filter(ended).for_each(|it| it.loss = reason.to_owned());
        }
        self.write_file();
    }

    fn change(self: &Arc<SessionStore>, change: impl FnOnce(&mut SessionsFile)) {
        {
            let mut known = lock(&self.known);
            if known.closed {
                return;
            }
            change(&mut known.written);
        }
        let ledger = Arc::clone(self);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || ledger.write_file())),
            Err(_) => ledger.write_file(),
        }
    }

    /// Writes what is known now: of several who write, the last one writes it all.
    fn write_file(&self) {
        let Some(folder) = &self.folder else { return };
        let _turn = lock(&self.writing);
        let text = serde_json::to_vec(&lock(&self.known).written);
        let written = text.doing(|| format!("cannot write {NAME}")).and_then(|text| store_file(folder).replace(&text));
        if let Err(error) = written {
            warn!("the next supervisor will not know of the debug sessions: {error}");
        }
    }
}

/// A session that is kept; dropped, it is forgotten.
pub struct StoredSessionGuard {
    ledger: Arc<SessionStore>,
    mark: String,
}

impl Drop for StoredSessionGuard {
    fn drop(&mut self) {
        self.ledger.remove_session(&self.mark);
    }
}

fn push_released(written: &mut SessionsFile, mark: &str) {
    if !written.released.iter().any(|it| it == mark) {
        written.released.push(mark.to_owned());
    }
}

fn store_file(folder: &Path) -> WorkspaceFile<'_> {
    WorkspaceFile { workspace: folder, name: NAME, most: 1 << 20, what: "the debug sessions run on" }
}

fn read_file(folder: &Path) -> Option<SessionsFile> {
    let file = store_file(folder);
    let unusable = match file.read() {
        Ok(text) => match serde_json::from_slice::<SessionsFile>(&text?) {
            Ok(written) if written.version == VERSION => return Some(written),
            Ok(written) => format!("it has the schema {}, and this program knows {VERSION}", written.version),
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

/// Whether a program with this mark was let go on purpose, as the file in a supervisor's state folder says.
pub fn is_released(folder: &Path, mark: &str) -> bool {
    let text = store_file(folder).read().ok().flatten().unwrap_or_default();
    serde_json::from_slice::<SessionsFile>(&text).is_ok_and(|written| written.released.iter().any(|it| it == mark))
}
