//! The sandbox, what runs in it, what is believed of that, and what is wrong with it now.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::beliefs::Session;
use crate::calls::{Answer, Call, GRACE, RunningCommand, own_time, read_output, read_response};
use crate::canaries::Canaries;
use crate::clock::Clock;
use crate::disk::Disk;
use crate::file_watch::FileWatch;
use crate::programs::{Listening, Program, write_workspace};
use crate::report::Report;
use crate::script::Fault;
use crate::support::Sandbox;
use crate::support::rpc_client::RpcClient;

/// A fault that lasts for some operations.
pub struct Lasting {
    pub fault: Fault,
    /// The last operation with it.
    pub until: usize,
    pub lift: Box<dyn FnOnce(&mut World)>,
}

/// A request that is under way.
pub enum InFlight {
    Request(u64, &'static str, Instant),
    Command(RunningCommand),
    /// There is no supervisor to request it of.
    Refused(Answer),
}

/// Within this time, a window is recorded once the disk can be written to again.
const RECORDED_AGAIN: Duration = Duration::from_secs(4);
const DISK_FAULTS: [Fault; 3] = [Fault::FullDisk, Fault::ReadOnlyState, Fault::ReadOnlyWorkspace];

pub struct World {
    pub link: Option<RpcClient>,
    pub sessions: Vec<Session>,
    /// The process of the window, where nothing was done that may end it.
    pub window: Option<u32>,
    pub lasting: Vec<Lasting>,
    /// Processes that wait for stops.
    pub waits: Vec<RunningCommand>,
    pub programs: Vec<&'static Program>,
    pub listening: Option<Listening>,
    /// Programs that were detached from, and go on.
    pub released: Vec<u32>,
    pub canaries: Canaries,
    pub clock: Clock,
    pub report: Report,
    /// Of the supervisor, when nothing ran.
    pub quiet_descriptors: Option<usize>,
    pub watch: Option<FileWatch>,
    pub sandbox: Sandbox,
    pub disk: Disk,
    /// When a fault of it was lifted last.
    pub disk_lifted: Option<Instant>,
}

impl World {
    pub fn new() -> World {
        let disk = Disk::mount();
        let mut sandbox = Sandbox::new_in(disk.path());
        let clock = Clock::of(&mut sandbox);
        let programs = write_workspace(&sandbox);
        let canaries = Canaries::compile(&sandbox);
        World {
            link: None,
            sessions: Vec::new(),
            window: None,
            lasting: Vec::new(),
            waits: Vec::new(),
            programs,
            listening: None,
            released: Vec::new(),
            canaries,
            clock,
            report: Report::default(),
            quiet_descriptors: None,
            watch: None,
            sandbox,
            disk,
            disk_lifted: None,
        }
    }

    /// A supervisor has ended. A window that could not be recorded, and cannot have been since, may be ended by the next one.
    pub fn excuse_unrecorded_window(&mut self) {
        let is_fresh = self.disk_lifted.is_some_and(|lifted| lifted.elapsed() < RECORDED_AGAIN);
        if (is_fresh || DISK_FAULTS.iter().any(|fault| self.is_lasting(*fault))) && !self.is_window_recorded() {
            self.window = None;
        }
    }

    fn is_window_recorded(&self) -> bool {
        let files = [self.sandbox.path(".devtools/session.json"), self.state().join(".devtools/session.json")];
        let recorded = files.iter().filter_map(|file| serde_json::from_slice::<Value>(&std::fs::read(file).ok()?).ok());
        let mut pids = recorded.map(|session| session["electronPid"].as_u64());
        pids.any(|pid| pid == self.window.map(u64::from))
    }

    pub fn is_lasting(&self, fault: Fault) -> bool {
        self.lasting.iter().any(|it| it.fault == fault)
    }

    /// Whether something is wrong that may make any request fail.
    pub fn is_excused(&self) -> bool {
        let excuses = [
            Fault::FullDisk,
            Fault::ReadOnlyState,
            Fault::ReadOnlyWorkspace,
            Fault::NoDescriptorsInSupervisor,
            Fault::NoDescriptorsInHost,
        ];
        excuses.iter().any(|it| self.is_lasting(*it))
    }

    /// Lifts the faults that have lasted long enough.
    pub fn lift_until(&mut self, index: usize) {
        let all = std::mem::take(&mut self.lasting);
        let (over, lasting): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| it.until < index);
        self.lasting = lasting;
        for it in over.into_iter().rev() {
            if DISK_FAULTS.contains(&it.fault) {
                self.disk_lifted = Some(Instant::now());
            }
            (it.lift)(self);
        }
    }

    /// Lifts all faults.
    pub fn lift_all(&mut self) {
        self.lift_until(usize::MAX);
    }

    /// Connects to the supervisor, which is started if none runs.
    pub fn connect(&mut self) -> Result<Option<Answer>, String> {
        if self.link.is_some() {
            return Ok(None);
        }
        let words = ["debug", "status", "--json"].map(str::to_owned);
        let output = RunningCommand::start(&self.sandbox, &words, Duration::ZERO).finish()?;
        if output.code != 0 {
            return read_output(&output).map(Some);
        }
        match RpcClient::open(&self.sandbox.socket(), GRACE) {
            Ok(link) => {
                self.link = Some(link);
                Ok(None)
            }
            Err(error) => Ok(Some(Answer::Failed(format!("cannot connect to the supervisor: {error}"), 0))),
        }
    }

    /// Requests something. Errors: there is no supervisor, and nothing excuses that.
    pub fn begin(&mut self, call: &Call) -> Result<InFlight, String> {
        let (method, params) = match call {
            Call::Command(words) => {
                let own_time = words.iter().rev().find_map(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
                let own_time = Duration::from_secs_f64(own_time);
                return Ok(InFlight::Command(RunningCommand::start(&self.sandbox, words, own_time)));
            }
            Call::Request(method, params) => (*method, params),
        };
        if let Some(answer) = self.connect()? {
            return match self.is_excused() {
                true => Ok(InFlight::Refused(answer)),
                false => Err(format!("there is no supervisor: {}", answer.summary())),
            };
        }
        let link = self.link.as_mut().expect("it is connected");
        match link.try_send(method, params.clone()) {
            Ok(id) => Ok(InFlight::Request(id, method, Instant::now() + own_time(method, params) + GRACE)),
            Err(_) => {
                self.link = None;
                Ok(InFlight::Refused(Answer::Gone))
            }
        }
    }

    /// Its answer. Errors: it does not come in time.
    pub fn finish(&mut self, in_flight: InFlight) -> Result<Answer, String> {
        match in_flight {
            InFlight::Refused(answer) => Ok(answer),
            InFlight::Command(command) => read_output(&command.finish()?),
            InFlight::Request(id, method, deadline) => {
                let Some(link) = self.link.as_mut() else { return Ok(Answer::Gone) };
                let answer = read_response(link.try_response(id, deadline), method)?;
                if matches!(answer, Answer::Gone) {
                    self.link = None;
                }
                Ok(answer)
            }
        }
    }

    /// Requests something that nothing disturbs. Errors: it fails.
    pub fn ask(&mut self, method: &'static str, params: Value) -> Result<Value, String> {
        let in_flight = self.begin(&Call::Request(method, params.clone()))?;
        match self.finish(in_flight)? {
            Answer::Done(value) => Ok(value),
            answer => Err(format!("{method} {params}: {}", answer.summary())),
        }
    }

    /// The host of a session.
    pub fn host(&self, session: &str) -> Option<u32> {
        let mark = format!("-{session}-");
        let is_host = |line: &str| line.contains(" session-host ") && line.contains(&mark);
        self.sandbox.processes().into_iter().find(|(_, line)| is_host(line)).map(|(pid, _)| pid)
    }

    /// The process of a session's adapter: a child of its host, or of the program that has started it to be attached to.
    pub fn adapter(&self, session: &Session) -> Option<u32> {
        let (parent, mark) = match session.is_attached {
            true => (self.listening.as_ref()?.program.0.id(), "debugpy/adapter"),
            false => (self.host(&session.id)?, session.program.adapter_mark?),
        };
        let is_child = |pid: u32| {
            let stat = procfs::process::Process::new(pid as i32).and_then(|it| it.stat());
            stat.is_ok_and(|it| it.ppid == parent as i32)
        };
        let mut all = self.sandbox.processes().into_iter();
        all.find(|(pid, line)| line.contains(mark) && is_child(*pid)).map(|(pid, _)| pid)
    }

    /// The supervisor's folder for this workspace.
    pub fn state(&self) -> PathBuf {
        let mut all = std::fs::read_dir(self.sandbox.home().join("state/devtether")).unwrap().filter_map(Result::ok);
        all.find(|it| it.path().is_dir()).expect("a state folder").path()
    }

    pub fn session(&mut self, id: &str) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|it| it.id == id)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.lift_all();
        self.waits.iter().for_each(RunningCommand::kill);
        // Before the sandbox, which looks for what is left.
        self.listening = None;
        self.watch = None;
    }
}

impl World {
    /// Whether a fault is possible on this machine.
    pub fn can_inject(&self, fault: Fault) -> bool {
        let has = |adapter: &str| self.programs.iter().any(|it| it.adapter == adapter);
        match fault {
            Fault::FullDisk | Fault::ReadOnlyState | Fault::ReadOnlyWorkspace => self.disk.is_mounted,
            Fault::KillAdapter | Fault::SlowAdapter => has("lldb-dap"),
            Fault::CutConnection => has("debugpy"),
            _ => true,
        }
    }
}
