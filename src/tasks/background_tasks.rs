//! Background tasks that run on after their first cycle, such as a dev server: as long as a window or a debug session
//! uses them.
//!
//! ```text
//!  start ──▶ BackgroundTask ──first cycle──▶ ready: shared by all plans that contain it
//!                 ▲ Arc: a running plan, a window, a debug session
//!                 └─ the last one is dropped ──▶ TERM, KILL, removed from the file
//! ```
//! They outlive the supervisor, as the window does; the next one finds them by a file in the state folder, and ends those
//! that nothing uses any more. Does not depend on windows, sessions, or when a cycle ends.

mod server_address;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tether_base::error::{Error, ErrorContext, Result};
use tether_base::secret_values::SecretValues;
use tether_base::sync::{lock, run_blocking};
use tether_process::{DetachedCommand, LAUNCH_ID, Process};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;
use tracing::warn;

use crate::workspace::workspace_dir::{AfterPowerFailure, WorkspaceFile};

pub use self::server_address::{ServerAddress, describe_other_server, find_addresses};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// An output file larger than this, in bytes, is trimmed to its last [`KEPT_OUTPUT`] bytes.
const MAX_OUTPUT: u64 = 16 << 20;
const KEPT_OUTPUT: u64 = 1 << 20;

/// The name of the window among the users of a task; sessions have their ids.
pub const WINDOW_USER: &str = "window";

/// A task that was started, as the file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskRecord {
    /// In the environment of its processes.
    launch_id: String,
    label: String,
    /// The digest of its command, folder and own variables, whose values may be secrets.
    digest: String,
    boot_id: String,
    /// PID and start ticks; `None` until it is spawned.
    process: Option<(u32, u64)>,
    /// Whether its first cycle has ended.
    ready: bool,
    /// Of a dev server: the address that it has printed and listens on.
    #[serde(default)]
    address: Option<String>,
    /// Whether values of variables are masked in what is shown of it; they are not stored.
    #[serde(default)]
    has_secrets: bool,
    /// The names of the window and the sessions that have used it.
    users: BTreeSet<String>,
}

/// All background tasks of a workspace; clones share them.
#[derive(Clone)]
pub struct BackgroundTasks(Arc<SharedTasks>);

struct SharedTasks {
    state: PathBuf,
    launch_id_prefix: String,
    /// The tasks that run or are being stopped.
    tasks: Mutex<Vec<(TaskRecord, Weak<BackgroundTask>)>>,
    /// Those of an earlier supervisor, until it is known what uses them.
    recovered: Mutex<Vec<Arc<BackgroundTask>>>,
    /// The tasks that are being stopped. Always closed, so that it can be waited for.
    stopping: TaskTracker,
    /// Processes that were to be stopped and run on, with the labels of their tasks.
    survivors: Mutex<Vec<(String, Process)>>,
    /// The users that outlive the supervisor: what they use runs on.
    released: Mutex<BTreeSet<String>>,
}

/// The command of a background task.
#[derive(Clone, Copy, Debug)]
pub struct TaskCommand<'a> {
    pub label: &'a str,
    pub argv: &'a [String],
    pub cwd: &'a Path,
    /// Added to the inherited environment.
    pub env: &'a BTreeMap<String, String>,
    /// Masked in what is shown of its output.
    pub secrets: &'a SecretValues,
}

/// A running background task; stopped when the last reference is dropped.
pub struct BackgroundTask {
    pub label: String,
    launch_id: String,
    pub process: Process,
    /// The output of all its processes.
    pub output: PathBuf,
    /// Of a dev server that is ready: the address of its page.
    pub address: OnceLock<String>,
    tasks: BackgroundTasks,
    /// `None` where they are not known, because an earlier supervisor has started it.
    secrets: Option<SecretValues>,
    /// Aborted on drop.
    _output_trimmer: JoinSet<()>,
}

impl BackgroundTasks {
    /// The tasks in the state folder of a workspace's supervisor. Those of an earlier supervisor are kept until
    /// [`BackgroundTasks::end_recovery`]. Within a tokio runtime.
    pub fn open(state: &Path, launch_id_prefix: String) -> BackgroundTasks {
        let stopping = TaskTracker::new();
        stopping.close();
        let shared = SharedTasks {
            state: state.to_owned(),
            launch_id_prefix,
            tasks: Mutex::default(),
            recovered: Mutex::default(),
            stopping,
            survivors: Mutex::default(),
            released: Mutex::default(),
        };
        let all = BackgroundTasks(Arc::new(shared));
        let boot_id = tether_process::read_boot_id().unwrap_or_default();
        let of_this_boot = |record: &TaskRecord| record.boot_id == boot_id;
        all.read_file().into_iter().filter(of_this_boot).for_each(|record| all.recover_task(record));
        all
    }

    /// A recovered task runs in the process that its record names, and is ready; what is left of another is ended.
    fn recover_task(&self, record: TaskRecord) {
        let is_ours = |process: &Process| {
            let launch_id = tether_process::read_environment_value(process.pid(), LAUNCH_ID);
            launch_id.is_ok_and(|launch_id| launch_id.is_some_and(|it| it == record.launch_id.as_str()))
        };
        let recorded = record.process.filter(|_| record.ready);
        let process = recorded.and_then(|(pid, start_ticks)| {
            Process::open(pid).ok().filter(|it| it.start_ticks() == start_ticks).filter(is_ours)
        });
        let launch_id = record.launch_id.clone();
        let Some(process) = process else {
            let label = record.label.clone();
            lock(&self.0.tasks).push((record, Weak::new()));
            return self.spawn_stop(None, (label, launch_id));
        };
        let secrets = (!record.has_secrets).then(SecretValues::default);
        let task = Arc::new(self.running_task(record.label.clone(), launch_id, process, secrets));
        record.address.iter().for_each(|address| drop(task.address.set(address.clone())));
        lock(&self.0.tasks).push((record, Arc::downgrade(&task)));
        lock(&self.0.recovered).push(task);
    }

    fn running_task(
        &self,
        label: String,
        launch_id: String,
        process: Process,
        secrets: Option<SecretValues>,
    ) -> BackgroundTask {
        let output = self.output_file(&launch_id);
        let mut trimmer = JoinSet::new();
        trimmer.spawn(tether_process::keep_trimmed(output.clone(), MAX_OUTPUT, KEPT_OUTPUT));
        let (address, tasks) = (OnceLock::new(), self.clone());
        BackgroundTask { label, launch_id, process, output, address, tasks, secrets, _output_trimmer: trimmer }
    }

    /// The recovered tasks that the window or the session with this name has used.
    pub fn recovered_tasks(&self, user: &str) -> Vec<Arc<BackgroundTask>> {
        let tasks = lock(&self.0.tasks);
        let is_used = |it: &&Arc<BackgroundTask>| {
            tasks.iter().any(|(record, _)| record.launch_id == it.launch_id && record.users.contains(user))
        };
        lock(&self.0.recovered).iter().filter(is_used).cloned().collect()
    }

    /// Ends the recovered tasks that nothing uses.
    pub fn end_recovery(&self) {
        let unused = std::mem::take(&mut *lock(&self.0.recovered));
        drop(unused);
    }

    /// The running task with this command, if its first cycle has ended.
    pub fn find_ready(&self, command: TaskCommand<'_>) -> Option<Arc<BackgroundTask>> {
        let digest = command.digest();
        let is_ready = |(record, _): &&(TaskRecord, Weak<BackgroundTask>)| record.ready && record.digest == digest;
        // Collected first: dropping a reference locks the tasks.
        let ready: Vec<_> =
            lock(&self.0.tasks).iter().filter(is_ready).filter_map(|(_, task)| task.upgrade()).collect();
        ready.into_iter().find(|task| task.process.is_alive())
    }

    /// Starts a task, after those that are being stopped have ended: they may use the same port. `user` names the window
    /// or the session that uses it.
    pub async fn start(&self, command: TaskCommand<'_>, user: &str) -> Result<Arc<BackgroundTask>> {
        self.wait_until_stopped().await;
        let launch_id = format!("{}-{}", self.0.launch_id_prefix, random_suffix()?);
        let record = TaskRecord {
            launch_id: launch_id.clone(),
            label: command.label.to_owned(),
            digest: command.digest(),
            boot_id: tether_process::read_boot_id().doing(|| "cannot read the boot id".to_owned())?,
            process: None,
            ready: false,
            address: None,
            has_secrets: *command.secrets != SecretValues::default(),
            users: [user.to_owned()].into(),
        };
        // Recorded before it runs: the next supervisor knows everything that is started.
        lock(&self.0.tasks).push((record, Weak::new()));
        self.write_file();
        let own = command.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let spawned = tether_process::spawn_background(&DetachedCommand {
            argv: command.argv.iter().map(OsString::from).collect(),
            cwd: command.cwd.to_owned(),
            env: tether_process::clean_environment(own.chain([(LAUNCH_ID, launch_id.as_str())])),
            output: self.output_file(&launch_id),
        });
        let process = spawned.inspect_err(|_| self.remove_record(&launch_id))?;
        let recorded = (process.pid(), process.start_ticks());
        let secrets = Some(command.secrets.clone());
        let task = Arc::new(self.running_task(command.label.to_owned(), launch_id, process, secrets));
        self.change_record(&task, |record, reference| {
            record.process = Some(recorded);
            *reference = Arc::downgrade(&task);
        });
        Ok(task)
    }

    /// Records that the first cycle of a task has ended.
    pub fn mark_ready(&self, task: &BackgroundTask) {
        self.change_record(task, |record, _| record.ready = true);
    }

    /// Records the address of a dev server.
    pub fn set_address(&self, task: &BackgroundTask, address: String) {
        let _ = task.address.set(address.clone());
        self.change_record(task, |record, _| record.address = Some(address));
    }

    /// Records that the window or the session with this name uses a task.
    pub fn add_user(&self, task: &BackgroundTask, user: &str) {
        self.change_record(task, |record, _| record.users.extend([user.to_owned()]));
    }

    /// Lets what this window or session uses run on from now on: the supervisor exits, and the user stays.
    pub fn release_user(&self, user: &str) {
        lock(&self.0.released).insert(user.to_owned());
    }

    fn is_released(&self, task: &BackgroundTask) -> bool {
        let released = lock(&self.0.released).clone();
        let is_kept = |(record, _): &(TaskRecord, Weak<BackgroundTask>)| {
            record.launch_id == task.launch_id && !record.users.is_disjoint(&released)
        };
        !released.is_empty() && lock(&self.0.tasks).iter().any(is_kept)
    }

    /// Waits for the tasks that are being stopped: their processes have exited then, or are named by
    /// [`BackgroundTasks::check_stopped`].
    pub async fn wait_until_stopped(&self) {
        self.0.stopping.wait().await;
    }

    /// Errors: a process of a task that was stopped runs on; each with its PID.
    pub fn check_stopped(&self) -> Result<()> {
        let mut survivors = lock(&self.0.survivors);
        survivors.retain(|(_, process)| process.is_alive());
        let Some((label, _)) = survivors.first() else { return Ok(()) };
        let pids: Vec<String> = survivors.iter().map(|(_, process)| format!("process {}", process.pid())).collect();
        let verb = if pids.len() == 1 { "runs" } else { "run" };
        Err(Error::other(format!("cannot end the background task {label:?}"))
            .because(format!("{} {verb} on after SIGKILL", pids.join(" and ")))
            .hint("it waits in the kernel, for a disk or a network folder; `ps -o pid,stat,wchan,args` shows for what"))
    }

    fn spawn_stop(&self, process: Option<Process>, (label, launch_id): (String, String)) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let all = self.clone();
        let stop = async move {
            if let Some(process) = &process {
                let _ = tether_process::stop_tree_gently(process, GRACE).await;
            }
            let swept = tether_process::sweep_launch(&launch_id, None, GRACE).await;
            let survivors = match swept {
                Ok(_) => Vec::new(),
                Err(error) => {
                    warn!("cannot end what is left of the background task {launch_id}: {error}");
                    let id = launch_id.clone();
                    let left =
                        run_blocking(move || tether_process::find_launch_members(&id)).await.unwrap_or_default().tied;
                    left.into_iter().chain(process).filter(Process::is_alive).collect()
                }
            };
            if survivors.is_empty() {
                return all.remove_record(&launch_id);
            }
            lock(&all.0.survivors).extend(survivors.into_iter().map(|process| (label.clone(), process)));
        };
        self.0.stopping.spawn_on(stop, &runtime);
    }

    fn change_record(&self, task: &BackgroundTask, change: impl FnOnce(&mut TaskRecord, &mut Weak<BackgroundTask>)) {
        let mut tasks = lock(&self.0.tasks);
        if let Some((record, reference)) = tasks.iter_mut().find(|(record, _)| record.launch_id == task.launch_id) {
            change(record, reference);
        }
        drop(tasks);
        self.write_file();
    }

    fn remove_record(&self, launch_id: &str) {
        lock(&self.0.tasks).retain(|(record, _)| record.launch_id != launch_id);
        self.write_file();
        let _ = std::fs::remove_file(self.output_file(launch_id));
    }

    fn output_file(&self, launch_id: &str) -> PathBuf {
        self.0.state.join(format!("task-{launch_id}.log"))
    }

    fn read_file(&self) -> Vec<TaskRecord> {
        let text = record_file(&self.0.state).read().unwrap_or_else(|error| {
            warn!("the record of background tasks is ignored: {error}");
            None
        });
        serde_json::from_slice(&text.unwrap_or_default()).unwrap_or_default()
    }

    /// Of several writers the last one writes the newest content.
    fn write_file(&self) {
        let tasks = lock(&self.0.tasks);
        let records: Vec<&TaskRecord> = tasks.iter().map(|(record, _)| record).collect();
        let written =
            serde_json::to_vec(&records).map_err(|cause| Error::other("cannot write a record").because(cause));
        if let Err(error) =
            written.and_then(|text| record_file(&self.0.state).replace(&text, AfterPowerFailure::Unknown))
        {
            warn!("the next supervisor will not know of the background tasks: {error}");
        }
    }
}

impl BackgroundTask {
    /// Whether a process of it listens on a TCP port.
    pub async fn is_listening(&self) -> bool {
        let process = self.process.clone();
        run_blocking(move || tether_process::is_any_listening(&tree_pids(&process)).unwrap_or_default()).await
    }

    /// The first of these ports on which a process of it listens.
    pub async fn find_listened_port(&self, ports: Vec<u16>) -> Option<u16> {
        let process = self.process.clone();
        run_blocking(move || tether_process::find_listened_port(&ports, &tree_pids(&process)).unwrap_or_default()).await
    }

    /// Waits until its output has the address of a page on this machine, on whose port a process of it listens.
    pub async fn find_address(&self) -> std::io::Result<String> {
        server_address::wait_for_served_address(&self.output, |ports| self.find_listened_port(ports)).await
    }

    /// Stops it now, whatever still refers to it.
    pub async fn stop(&self) {
        self.tasks.spawn_stop(Some(self.process.clone()), (self.label.clone(), self.launch_id.clone()));
        self.tasks.wait_until_stopped().await;
    }

    /// That it has exited, with its last line where its secrets are known; `None` while it runs.
    pub fn describe_exit(&self) -> Option<String> {
        if self.process.is_alive() {
            return None;
        }
        let tail = || tether_process::read_tail(&self.output, 1).unwrap_or_default();
        let last = self.secrets.as_ref().map(|secrets| secrets.mask(&tail())).unwrap_or_default();
        let last = if last.is_empty() { last } else { format!(" after `{last}`") };
        Some(format!("the background task {:?} has exited{last}: `tether restart` starts it again", self.label))
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        if !self.tasks.is_released(self) {
            self.tasks.spawn_stop(Some(self.process.clone()), (self.label.clone(), self.launch_id.clone()));
        }
    }
}

/// A process and its descendants.
fn tree_pids(process: &Process) -> Vec<u32> {
    let tree = tether_process::list_tree(process).unwrap_or_default();
    tree.iter().map(Process::pid).chain([process.pid()]).collect()
}

fn record_file(state: &Path) -> WorkspaceFile<'_> {
    WorkspaceFile {
        workspace: state,
        name: "background-tasks.json",
        most: 1 << 20,
        what: "the background tasks keep running",
    }
}

impl TaskCommand<'_> {
    fn digest(self) -> String {
        hex::encode(Sha256::digest(format!("{:?}", (self.argv, self.cwd, self.env))))
    }
}

fn random_suffix() -> Result<String> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(std::io::Error::from)
        .doing(|| "cannot draw a random id".to_owned())?;
    Ok(hex::encode(bytes))
}
