//! Reads the files of the state all the time: each is whole, whenever it is read.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::support::Sandbox;

/// Between two readings.
const PAUSE: Duration = Duration::from_millis(2);
/// How much of a half file is shown.
const SHOWN_BYTES: usize = 2000;

pub struct FileWatch {
    /// Dropped, it ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<u64>>,
    half: Arc<Mutex<Option<String>>>,
}

fn read_all(files: &[PathBuf], half: &Mutex<Option<String>>) {
    for file in files {
        let Ok(text) = std::fs::read(file) else { continue };
        if let Err(error) = serde_json::from_slice::<Value>(&text) {
            let text = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]).into_owned();
            half.lock().unwrap().get_or_insert(format!("{} is half: {error}: {text:?}", file.display()));
        }
    }
}

impl FileWatch {
    /// Watches the sandbox's files; its supervisor has run before.
    pub fn start(sandbox: &Sandbox) -> FileWatch {
        let states = std::fs::read_dir(sandbox.home().join("state/devtether")).unwrap();
        let state = states.filter_map(Result::ok).map(|it| it.path()).find(|it| it.is_dir()).expect("a state folder");
        let files = vec![
            state.join(".devtools/sessions.json"),
            sandbox.path(".devtools/session.json"),
            state.join(".devtools/breakpoints.json"),
        ];
        let (end, ended) = channel();
        let half: Arc<Mutex<Option<String>>> = Arc::default();
        let seen = Arc::clone(&half);
        let thread = std::thread::spawn(move || {
            let mut readings = 0;
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                read_all(&files, &seen);
                readings += 1;
            }
            readings
        });
        FileWatch { end: Some(end), thread: Some(thread), half }
    }

    /// Errors: a file was half.
    pub fn check(&self) -> Result<(), String> {
        self.half.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    /// Ends it; returns how often each file was read.
    pub fn end(&mut self) -> u64 {
        self.end.take();
        self.thread.take().map_or(0, |thread| thread.join().unwrap())
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.end();
    }
}
