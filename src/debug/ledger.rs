//! The file in which a supervisor keeps what the next one has to know of its sessions, should it die.
//!
//! It lies in the supervisor's own state folder, and so it is believed; what it names is still proven: processes by their
//! marks, programs by whether they can be attached to. A session is in it from before its first process until nothing of
//! it is left. Must not know what is done about it: that is `recover`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tracing::warn;

use super::hosted::{Ready, Request};
use crate::clock::now_ms;
use crate::error::Context;
use crate::keep::Kept;
use crate::process;
use crate::sync::lock;

const NAME: &str = "sessions.json";
/// The schema that this program writes; it reads no other.
const VERSION: u64 = 1;

/// One session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub id: String,
    /// As the table of adapters names it.
    pub adapter: String,
    pub request: Request,
    /// What its processes carry.
    pub mark: String,
    /// Epoch ms.
    pub started_at: u64,
    /// Whether anybody but the one who began it can see it.
    pub listed: bool,
    /// What is to be told of it, if it cannot be attached to again.
    pub loss: String,
}

impl Entry {
    pub(super) fn of(ready: &Ready, listed: bool) -> Entry {
        let Ready { id, request, row, mark, .. } = ready;
        let (id, adapter, mark) = (id.clone(), row.name.to_owned(), mark.clone());
        Entry { id, adapter, request: request.clone(), mark, started_at: now_ms(), listed, loss: ready.loss() }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    version: u64,
    boot_id: String,
    /// The last number that was given to a session.
    last: u32,
    sessions: Vec<Entry>,
    /// The marks of programs that were let go on purpose, and live on.
    released: Vec<String>,
}

/// What an earlier supervisor has left.
#[derive(Debug, Default)]
pub struct Left {
    pub last: u32,
    pub sessions: Vec<Entry>,
    /// The machine has been started anew since.
    pub rebooted: bool,
}

/// The file; without a folder, nothing is kept.
pub struct Ledger {
    folder: Option<PathBuf>,
    known: Mutex<Known>,
    writing: Mutex<()>,
}

#[derive(Default)]
struct Known {
    written: Written,
    /// What ends from now on ends with the supervisor.
    closed: bool,
}

impl Ledger {
    /// Opens the file, and answers with what is in it. One that cannot be used is set aside.
    pub fn open(folder: Option<&Path>) -> (Ledger, Left) {
        let boot_id = process::boot_id().unwrap_or_default();
        let mut written = folder.and_then(read).unwrap_or_default();
        let rebooted = written.boot_id != boot_id;
        if rebooted {
            written.released.clear();
        }
        let left = Left { last: written.last, sessions: written.sessions.clone(), rebooted };
        let written = Written { version: VERSION, boot_id, ..written };
        let known = Mutex::new(Known { written, closed: false });
        (Ledger { folder: folder.map(Path::to_owned), known, writing: Mutex::default() }, left)
    }

    /// Keeps a session. When this is done, it is in the file; when what it gives is dropped, it is no longer.
    pub async fn begun(self: &Arc<Ledger>, entry: Entry) -> Listed {
        let kept = Listed { ledger: Arc::clone(self), mark: entry.mark.clone() };
        {
            let mut known = lock(&self.known);
            let number = entry.id.trim_start_matches('d').parse().unwrap_or(0);
            known.written.last = known.written.last.max(number);
            known.written.sessions.push(entry);
        }
        let ledger = Arc::clone(self);
        // It waits for the disk.
        let _ = tokio::task::spawn_blocking(move || ledger.write()).await;
        kept
    }

    /// An earlier supervisor's session has found its end, or its new beginning.
    pub fn settle(self: &Arc<Ledger>, mark: &str) {
        self.change(|written| written.sessions.retain(|it| it.mark != mark));
    }

    /// A program lives on without its session.
    pub fn release(self: &Arc<Ledger>, mark: &str) {
        self.change(|written| release(written, mark));
    }

    /// A session was stopped by its user. When this is done, the next supervisor knows.
    pub async fn stopped(self: &Arc<Ledger>, mark: &str, released: bool) {
        {
            let mut known = lock(&self.known);
            if released {
                release(&mut known.written, mark);
            }
            known.written.sessions.retain(|it| it.mark != mark);
        }
        let ledger = Arc::clone(self);
        // It waits for the disk.
        let _ = tokio::task::spawn_blocking(move || ledger.write()).await;
    }

    /// Forgets those that were let go and have ended since.
    pub fn forget_released(self: &Arc<Ledger>, is_alive: impl Fn(&str) -> bool) {
        self.change(|written| written.released.retain(|mark| is_alive(mark)));
    }

    /// The supervisor ends, and its sessions with it: the file stays as it is now, and tells this of those that are not
    /// attached to again.
    pub fn close(&self, reason: &str, marks: &[String]) {
        {
            let mut known = lock(&self.known);
            known.closed = true;
            let ended = |it: &&mut Entry| marks.contains(&it.mark) && !it.request.wanted.is_listener();
            known.written.sessions.iter_mut().filter(ended).for_each(|it| it.loss = reason.to_owned());
        }
        self.write();
    }

    fn change(self: &Arc<Ledger>, change: impl FnOnce(&mut Written)) {
        {
            let mut known = lock(&self.known);
            if known.closed {
                return;
            }
            change(&mut known.written);
        }
        let ledger = Arc::clone(self);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || ledger.write())),
            Err(_) => ledger.write(),
        }
    }

    /// Writes what is known now: of several who write, the last one writes it all.
    fn write(&self) {
        let Some(folder) = &self.folder else { return };
        let _turn = lock(&self.writing);
        let text = serde_json::to_vec(&lock(&self.known).written);
        let written = text.doing(|| format!("cannot write {NAME}")).and_then(|text| kept(folder).replace(&text));
        if let Err(error) = written {
            warn!("the next supervisor will not know of the debug sessions: {error}");
        }
    }
}

/// A session that is kept; dropped, it is forgotten.
pub struct Listed {
    ledger: Arc<Ledger>,
    mark: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.ledger.settle(&self.mark);
    }
}

fn release(written: &mut Written, mark: &str) {
    if !written.released.iter().any(|it| it == mark) {
        written.released.push(mark.to_owned());
    }
}

fn kept(folder: &Path) -> Kept<'_> {
    Kept { workspace: folder, name: NAME, most: 1 << 20, what: "the debug sessions run on" }
}

fn read(folder: &Path) -> Option<Written> {
    let file = kept(folder);
    let unusable = match file.read() {
        Ok(text) => match serde_json::from_slice::<Written>(&text?) {
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
    let text = kept(folder).read().ok().flatten().unwrap_or_default();
    serde_json::from_slice::<Written>(&text).is_ok_and(|written| written.released.iter().any(|it| it == mark))
}
