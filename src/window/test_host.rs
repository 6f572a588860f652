//! An extension host that runs tests and ends: a window of its own, beside the one of the workspace.
//!
//! ```text
//!  launch ─▶ held, where a debugger is to attach first ─release─▶ tests run ─▶ results.jsonl ─▶ close
//! ```
//! Its folders lie below `<state>/tests`, where a launch of the workspace's window removes nothing. It lives as long as its
//! handle: when that is dropped, all its processes are killed. Does not depend on what is tested.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorContext, Result};
use tether_process::{LAUNCH_ID, Process};

use super::cleanup;
use super::launch::{HostHold, LaunchedWindow, WindowLaunchPlan, check_launch, create_private_dir, launch_window};
use super::launch_id::{new_random_id, output_file_of, scratch_dir_of};
use super::page::PageHistory;
use crate::config::{HostedTests, RefreshSetting, TESTS_PATH_FLAG, WindowSettings};

const RUNNER: &str = include_str!("launch/test_runner.cjs");
/// More events than these are a mistake, or hostile.
const MAX_EVENTS: usize = 100_000;
const MAX_RESULT_BYTES: u64 = 64 << 20;

/// Which tests of a host run, and how.
#[derive(Clone, Debug, Default)]
pub struct TestSelection {
    /// The name of a test or suite; `None`: all.
    pub name: Option<String>,
    /// Only those of the file with this name, apart from its folder and ending.
    pub file: Option<PathBuf>,
    /// Whether the host and its tests wait for [`TestHost::release`]; tests then have no limit of time.
    pub waits: bool,
}

/// An event of the test runner.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TestEvent {
    /// The runner has been loaded.
    Begin { pid: u32 },
    /// Something was printed.
    Output { text: String },
    /// So many tests will run.
    Total { tests: u64 },
    /// No test has that name; the first of those that there are.
    Unknown { titles: Vec<String>, total: u64 },
    /// A test, or a hook, has ended.
    Test {
        /// Those of its suites, and its own.
        titles: Vec<String>,
        state: String,
        duration_ms: f64,
        file: Option<PathBuf>,
        error: Option<TestFailure>,
    },
    /// The run has ended; without an error all tests have passed.
    End { ok: bool, error: Option<TestFailure> },
}

/// Why a test, or the whole run, has failed.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TestFailure {
    pub message: String,
    /// Of the user's own code, in their sources: `at name (/ws/src/a.test.ts:3:5)`.
    #[serde(default)]
    pub frames: Vec<String>,
}

/// The root of the state folders of test hosts.
pub fn tests_state_dir(state: &Path) -> PathBuf {
    state.join("tests")
}

/// The folder of a test host, before its launch: what is evaluated before it is written there, too.
pub struct TestHostFolder {
    state_dir: PathBuf,
    launch_id: String,
    pub path: PathBuf,
}

impl TestHostFolder {
    /// A new one, of mode 0700. `state`: the supervisor's state folder.
    pub fn create(state: &Path) -> Result<TestHostFolder> {
        let (state_dir, launch_id) = (tests_state_dir(state), new_random_id()?);
        let path = scratch_dir_of(&state_dir, &launch_id).join("tests");
        create_private_dir(&state_dir)?;
        create_private_dir(&scratch_dir_of(&state_dir, &launch_id))?;
        create_private_dir(&path)?;
        Ok(TestHostFolder { state_dir, launch_id, path })
    }

    /// The environment of a program that belongs to it.
    pub fn environment(&self) -> BTreeMap<OsString, OsString> {
        tether_process::clean_environment([(LAUNCH_ID, self.launch_id.as_str())])
    }

    fn results(&self) -> PathBuf {
        self.path.join("results.jsonl")
    }
}

impl Drop for TestHostFolder {
    fn drop(&mut self) {
        tether_process::kill_launch(&self.launch_id);
        let _ = fs::remove_dir_all(scratch_dir_of(&self.state_dir, &self.launch_id));
        let _ = fs::remove_file(output_file_of(&self.state_dir, &self.launch_id));
    }
}

/// A running host.
pub struct TestHost {
    folder: TestHostFolder,
    launched: LaunchedWindow,
}

impl TestHost {
    /// Launches a host for these tests. `progress` receives the current step. Errors: as of the launch of a window.
    pub async fn launch(
        folder: TestHostFolder,
        workspace: &Path,
        settings: &WindowSettings,
        (tests, selection): (&HostedTests, &TestSelection),
        progress: impl Fn(&str) + Send + Sync,
    ) -> Result<TestHost> {
        let runner = folder.path.join("runner.cjs");
        let write =
            |path: &Path, text: &str| fs::write(path, text).doing(|| format!("cannot write {}", path.display()));
        write(&runner, RUNNER)?;
        write(&folder.results(), "")?;
        write(&folder.path.join("run.json"), &run_file(tests, selection)?.to_string())?;
        let mut settings = settings.clone();
        settings.args.push(format!("{TESTS_PATH_FLAG}={}", runner.display()));
        // Keeps no host ahead: this one is never restarted.
        settings.refresh = RefreshSetting::Relaunch;
        let plan = WindowLaunchPlan {
            settings,
            workspace: workspace.to_owned(),
            state_dir: folder.state_dir.clone(),
            launch_id: folder.launch_id.clone(),
            history: Arc::new(PageHistory::new(None)),
            holds_hosts: selection.waits,
        };
        let masked = |error| plan.settings.secrets.mask_error(error);
        check_launch(&plan, None).map_err(masked)?;
        let launched = launch_window(&plan, progress).await.map_err(masked)?;
        Ok(TestHost { folder, launched })
    }

    /// The port of the host's inspector.
    pub fn inspector_port(&self) -> Option<u16> {
        self.launched.inspector_port
    }

    /// What a user should know of the launch.
    pub fn notes(&self) -> &[String] {
        &self.launched.notes
    }

    /// Lets a host that waits, and its tests, go on.
    pub fn release(&self) -> Result<()> {
        let hold = HostHold::of_launch(&self.folder.state_dir, &self.folder.launch_id);
        let disarmed = hold.set_armed(false);
        hold.release_hosts(None);
        let go = self.folder.path.join("go");
        disarmed.and_then(|()| fs::write(&go, "")).doing(|| format!("cannot write {}", go.display()))
    }

    /// Waits until the run has ended, or the host has. `report` receives each event. Errors: the host ends without an end of
    /// the run.
    pub async fn wait_until_ended(&self, report: &mut (dyn FnMut(TestEvent) + Send)) -> Result<()> {
        let (results, mut reader) = (self.folder.results(), ResultReader::default());
        loop {
            let host = reader.host.clone();
            let (events, exit) = tokio::select! {
                biased;
                events = tether_process::watch_until(&results, || reader.read_new(&results)) => (events, None),
                // What it wrote last may not have been read yet.
                exit = self.wait_for_exit(host) => (reader.read_new(&results).map(Option::unwrap_or_default), Some(exit)),
            };
            let events = events.doing(|| format!("cannot read {}", results.display()))?;
            let has_ended = events.iter().any(|event| matches!(event, TestEvent::End { .. }));
            events.into_iter().for_each(&mut *report);
            match exit {
                _ if has_ended => return Ok(()),
                Some(exit) => return Err(self.ended_early(&exit)),
                None => {}
            }
        }
    }

    /// Resolves when the host, or the window that shows it, has exited; with which it was, and how.
    async fn wait_for_exit(&self, host: Option<Process>) -> String {
        let all = host.iter().map(|host| ("the extension host", host));
        let all = all.chain(self.launched.others.iter().map(|other| ("the VS Code server", other)));
        let all = all.chain([("the window", &self.launched.process)]);
        let exits = all.map(|(name, process)| {
            Box::pin(
                async move { format!("{name}, process {}, ended: {}", process.pid(), process.wait_for_exit().await) },
            )
        });
        futures_util::future::select_all(exits).await.0
    }

    fn ended_early(&self, exit: &str) -> Error {
        Error::other("the extension host ended before its tests").because(exit.to_owned())
    }

    /// Closes it, and waits until nothing of it is left.
    pub async fn close(self) -> Result<()> {
        let (launch_id, state) = (&self.folder.launch_id, &self.folder.state_dir);
        // Nothing in it is worth a question: it is closed by force.
        cleanup::stop_window(&self.launched.process, async { false }, launch_id, state, cleanup::GRACE).await.map(drop)
    }
}

/// What `test_runner.cjs` reads.
fn run_file(tests: &HostedTests, selection: &TestSelection) -> Result<Value> {
    let mut run = serde_json::to_value(tests).doing(|| "cannot describe the tests".to_owned())?;
    if let Some(members) = run.as_object_mut() {
        members.retain(|_, value| !value.is_null());
        let TestSelection { name, file, waits } = selection;
        members.extend(name.as_ref().map(|name| ("name".to_owned(), json!(name))));
        members.extend(file.as_ref().map(|file| ("file".to_owned(), json!(file))));
        members.insert("waits".to_owned(), json!(waits));
    }
    Ok(run)
}

/// Reads the events as they are written.
#[derive(Default)]
struct ResultReader {
    offset: u64,
    count: usize,
    host: Option<Process>,
}

impl ResultReader {
    /// The events since the last call; `None`: there is none. Errors: there are too many.
    fn read_new(&mut self, results: &Path) -> io::Result<Option<Vec<TestEvent>>> {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = fs::File::open(results)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(MAX_RESULT_BYTES.saturating_sub(self.offset)).read_to_end(&mut bytes)?;
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            return if self.offset + bytes.len() as u64 >= MAX_RESULT_BYTES { Err(too_many()) } else { Ok(None) };
        };
        self.offset += end as u64 + 1;
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let events: Vec<TestEvent> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        self.count += events.len();
        if self.count > MAX_EVENTS {
            return Err(too_many());
        }
        let pid = events.iter().find_map(|event| match event {
            TestEvent::Begin { pid } => Some(*pid),
            _ => None,
        });
        if let Some(process) = pid.and_then(|pid| Process::open(pid).ok()) {
            self.host.get_or_insert(process);
        }
        Ok((!events.is_empty()).then_some(events))
    }
}

fn too_many() -> io::Error {
    io::Error::other("the tests report more than anybody can read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_whole_lines_and_in_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results.jsonl");
        let mut reader = ResultReader::default();
        fs::write(&results, "").unwrap();
        assert!(reader.read_new(&results).unwrap().is_none());
        fs::write(&results, "{\"event\":\"total\",\"tests\":2}\n{\"event\":\"te").unwrap();
        assert!(matches!(reader.read_new(&results).unwrap().unwrap()[..], [TestEvent::Total { tests: 2 }]));
        assert!(reader.read_new(&results).unwrap().is_none());
        let rest = "{\"event\":\"total\",\"tests\":2}\n{\"event\":\"test\",\"titles\":[\"a\"],\"state\":\"passed\",\
                    \"durationMs\":1}\nnonsense\n{\"event\":\"end\",\"ok\":true}\n";
        fs::write(&results, rest).unwrap();
        let events = reader.read_new(&results).unwrap().unwrap();
        assert!(matches!(&events[..], [TestEvent::Test { .. }, TestEvent::End { ok: true, .. }]), "{events:?}");
        fs::write(&results, rest.repeat(MAX_EVENTS)).unwrap();
        assert!(reader.read_new(&results).is_err());
    }

    #[tokio::test]
    async fn a_folder_that_is_given_up_is_removed() {
        let state = tempfile::tempdir().unwrap();
        let folder = TestHostFolder::create(state.path()).unwrap();
        let path = folder.path.clone();
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.parent().unwrap().exists());
    }

    #[test]
    fn the_runner_is_told_only_what_is_known() {
        let tests = HostedTests { files: vec!["/a".into()], ..HostedTests::default() };
        let run =
            run_file(&tests, &TestSelection { name: Some("adds".to_owned()), ..TestSelection::default() }).unwrap();
        let expect = json!({"files": ["/a"], "mocha": {}, "preload": [], "name": "adds", "waits": false});
        assert_eq!(run, expect);
    }
}
