//! A program in a folder with spaces and non-ASCII letters, a session on it, and the check that no process is left.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use devtether::adapters::{
    Adapter, AdapterHost, DebugTarget, DebugTargetKind, FoundAdapter, LaunchPlan, start_adapter,
};
use devtether::debug::breakpoints::{BreakpointConditions, BreakpointStore};
use devtether::debug::inspect;
use devtether::debug::inspect::VariableParent;
use devtether::debug::{DebugSession, Resume, SessionProgram, TargetPlan, WaitOutcome};
use devtether::vocabulary::{RunState, StopKind};
use tether_backend::output_reader::OutputPiece;
use tether_base::ring::RingQuery;
use tether_dap::types::InitializeArguments;
use tether_process::LAUNCH_ID;
use tokio::task::JoinHandle;

pub const LONG: Duration = Duration::from_secs(90);

pub use crate::support::requirements::installed_adapter as found;

/// A folder with the programs of one test.
pub struct ProgramFolder {
    folder: tempfile::TempDir,
}

impl ProgramFolder {
    pub fn new() -> ProgramFolder {
        ProgramFolder { folder: tempfile::Builder::new().prefix("tether adäpters ").tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Writes a file; returns its path and the line with `STOP`.
    pub fn file(&self, name: &str, text: &str) -> (PathBuf, u32) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let line = text.lines().position(|line| line.contains("STOP")).map_or(0, |at| at + 1);
        (path, line as u32)
    }

    pub fn wants(&self, what: DebugTargetKind) -> DebugTarget {
        DebugTarget { kind: what, cwd: self.path(), ..DebugTarget::default() }
    }
}

/// A session with an adapter, as in the supervisor.
pub struct AdapterSession {
    pub session: DebugSession,
    pub running: AdapterHost,
    driver: Option<JoinHandle<()>>,
    mark: String,
}

impl AdapterSession {
    /// Starts a session with breakpoints.
    pub async fn open(
        row: &Adapter,
        found: &FoundAdapter,
        requested: &DebugTarget,
        stops: &[(&Path, u32)],
    ) -> AdapterSession {
        let begin = (row.plan)(found, requested).unwrap_or_else(|error| panic!("{error}"));
        AdapterSession::of(row, begin, requested, stops).await
    }

    pub async fn of(
        row: &Adapter,
        begin: LaunchPlan,
        requested: &DebugTarget,
        stops: &[(&Path, u32)],
    ) -> AdapterSession {
        let folder = tempfile::tempdir().unwrap();
        let mark = format!("adapters-{}-{}", std::process::id(), folder.path().file_name().unwrap().display());
        let mut running = start_adapter(row.name, begin, &mark, LONG).await.unwrap_or_else(|error| panic!("{error}"));
        let breakpoints = BreakpointStore::open(&requested.cwd);
        for (file, line) in stops {
            breakpoints.set_line(file, *line, BreakpointConditions::default()).await.unwrap();
        }
        let plan = TargetPlan {
            initialize: InitializeArguments {
                adapter_id: row.id.to_owned(),
                lines_start_at1: true,
                columns_start_at1: true,
                path_format: Some("path".to_owned()),
                supports_variable_type: true,
                supports_start_debugging_request: true,
                ..InitializeArguments::default()
            },
            name: String::new(),
            start: running.start.clone(),
            is_child_process: false,
            quirks: row.quirks,
            is_attached: requested.is_attach(),
            process: None,
            stop_on_entry: requested.stop_on_entry(),
            launch_id: mark.clone(),
            allows_run_in_terminal: false,
            initialize_deadline: LONG,
            deadline: LONG,
            start_deadline: LONG,
        };
        let program = SessionProgram {
            plan,
            connector: Arc::clone(&running.connect),
            children: running.children.take(),
            process_reports: running.process_reports.take(),
            is_core: false,
            pid: None,
        };
        let (session, driver) = DebugSession::open(program, breakpoints, Arc::default());
        AdapterSession { session, running, driver: Some(tokio::spawn(driver)), mark }
    }

    /// Waits for a stop; returns its kind and line.
    pub async fn stopped(&self) -> (StopKind, i64) {
        let waited = self.session.wait_for_stop(LONG).await;
        let Some((_, stop)) = &waited.stop else { panic!("{waited:?}; {:?}", self.running.exit_summary().await) };
        let stack = inspect::read_stack(&self.session, None, None, Some(1)).await.unwrap();
        (stop.kind, stack.frames[0].line)
    }

    /// Waits for a stop on `line`. After an attach an adapter may stop elsewhere first and continue.
    pub async fn stopped_at(&self, line: u32) {
        let there = async {
            loop {
                let waited = self.session.wait_for_stop(LONG).await;
                let words = self.running.exit_summary().await;
                let (_, stop) = waited.stop.as_ref().unwrap_or_else(|| panic!("{waited:?}; {words:?}"));
                let hit = stop.kind == StopKind::BreakpointHit;
                match inspect::read_stack(&self.session, None, None, Some(1)).await {
                    Ok(stack) if hit && stack.frames.first().is_some_and(|frame| frame.line == i64::from(line)) => {
                        return;
                    }
                    // Either this or the adapter continues it.
                    Ok(_) => drop(self.session.resume(Resume::Continue, None).await),
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        tokio::time::timeout(LONG, there).await.unwrap();
    }

    /// Waits until the started process has printed `text`.
    pub async fn says(&mut self, text: &str) {
        let mut text_read = String::new();
        while !text_read.contains(text) {
            match tokio::time::timeout(LONG, self.running.output.recv()).await.unwrap() {
                Some(OutputPiece::Stdout(piece) | OutputPiece::Stderr(piece)) => text_read.push_str(&piece),
                other => panic!("{other:?} after {text_read}"),
            }
        }
    }

    pub async fn evaluate(&self, expression: &str) -> String {
        let (_, answer) =
            inspect::evaluate(&self.session, expression, None, "watch").await.unwrap_or_else(|error| panic!("{error}"));
        answer.result
    }

    /// `name = value` of all scopes that are not expensive.
    pub async fn locals(&self) -> Vec<String> {
        let groups = inspect::list_variables(&self.session, &VariableParent::default()).await.unwrap();
        let all = groups.into_iter().flat_map(|group| group.variables);
        all.map(|variable| format!("{} = {}", variable.name, variable.value)).collect()
    }

    /// Resumes the program and waits for its end.
    pub async fn finished(&self) -> WaitOutcome {
        self.session.resume(Resume::Continue, None).await.unwrap();
        let waited = self.session.wait_for_stop(LONG).await;
        assert!(waited.stop.is_none(), "{waited:?}");
        waited
    }

    /// The output of the started process so far, and of `output` events.
    pub fn output(&mut self) -> String {
        let mut text = String::new();
        while let Ok(text_read) = self.running.output.try_recv() {
            match text_read {
                OutputPiece::Stdout(piece) | OutputPiece::Stderr(piece) => text.push_str(&piece),
                OutputPiece::Dropped(count) => panic!("{count} pieces were lost"),
            }
        }
        let query = RingQuery { limit: 10_000, ..RingQuery::default() };
        let report = self.session.event_log().read_output(&query);
        text + &report.entries.iter().map(|text_read| text_read.text.as_str()).collect::<String>()
    }

    /// Waits until the program has ended by itself and all events of the adapter are received.
    pub async fn ended(&mut self) {
        let driver = self.driver.take().expect("it has not been waited for");
        tokio::time::timeout(LONG, driver).await.unwrap().unwrap();
    }

    /// Ends the session and waits until all events of the adapter are received.
    pub async fn left(&mut self, terminate: bool) {
        self.session.stop(terminate).await;
        if let Some(driver) = self.driver.take() {
            tokio::time::timeout(LONG, driver).await.unwrap().unwrap();
        }
    }

    /// Leaves the program running. debugpy closes a new connection that comes before the previous one is closed.
    pub async fn let_go(mut self) {
        self.left(false).await;
        self.running.detach().await;
    }

    /// Ends the session in any state; no process may be left.
    pub async fn end(mut self) {
        self.left(true).await;
        self.running.stop().await.unwrap();
        assert_eq!(crate::support::carrying(LAUNCH_ID, &self.mark), []);
    }
}

/// The common case for every adapter: it stops at the breakpoint, locals are readable, the program runs to its end.
pub async fn stops_and_ends(adapter: &str, requested: &DebugTarget, stop: (&Path, u32), total: &str) {
    let Some((row, found)) = found(adapter) else { return };
    let began = std::time::Instant::now();
    let mut play = AdapterSession::open(row, &found, requested, &[stop]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(stop.1)));
    let locals = play.locals().await;
    println!("{adapter}: from its start to locals in {:?}", began.elapsed());
    assert!(locals.iter().any(|local| local == total), "{locals:?}");
    assert_eq!(play.evaluate("total + 1").await, "43");
    let waited = play.finished().await;
    assert!(matches!(waited.state, RunState::Terminated), "{waited:?}");
    let began = std::time::Instant::now();
    // The program's output may arrive after its end was reported.
    play.left(true).await;
    let output = play.output();
    play.end().await;
    println!("{adapter}: ended in {:?}", began.elapsed());
    assert!(output.contains("42"), "{output}");
}
