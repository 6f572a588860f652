//! What the targets of a session share, and the place of each in it.
//!
//! A seat is what a target, and whoever speaks to it, knows of the session. Must not know how targets are born and ended.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, watch};

use super::event_log::EventLog;
use super::snapshot::{SessionSnapshot, TargetSnapshot};
use super::stop::ThreadStop;
use super::stop_filter;
use super::target_state::{TargetEffect, TargetInput, TargetPhase, step_target};
use crate::dap::DapClient;
use crate::dap::types::{DapBreakpoint, DapCapabilities, DataBreakpoint};
use crate::debug::breakpoints::{
    BindingTable, BreakpointKind, BreakpointSpec, BreakpointStore, DataAccess, ExceptionSpec,
};
use crate::debug::inspect::stop_cache::StopCache;
use crate::sync::lock;

/// What all targets of a session share.
pub struct SessionShared {
    pub published: watch::Sender<SessionSnapshot>,
    pub lines: Mutex<Lines>,
    pub book: Arc<Mutex<BreakpointStore>>,
    pub standings: Mutex<BindingTable>,
    /// Lines to which it runs: wanted until its next stop.
    pub goals: Mutex<Vec<BreakpointSpec>>,
    /// By target and wanted breakpoint; an adapter's ids of data are good for one target only.
    pub data: Mutex<BTreeMap<(usize, u32), DataBreakpoint>>,
    pub record: Arc<EventLog>,
    /// Rises whenever a standing may have changed.
    pub stood: watch::Sender<u64>,
    /// For each single request.
    pub deadline: Duration,
    /// Targets that were asked to pause and have not stopped since.
    pub pausing: Mutex<BTreeSet<usize>>,
    pub watched: Mutex<WatchedValues>,
    pub shown: Mutex<StopCache>,
    /// Held by who asks for what may be shown already when he has waited.
    pub showing: tokio::sync::Mutex<()>,
    /// Up to where the output had come at the stop before the newest one, and at that one.
    pub spoken: Mutex<(Option<u64>, Option<u64>)>,
}

/// The values of what is watched: at which hit they were read, what it was before, what it was then.
#[derive(Debug, Default)]
pub struct WatchedValues(HashMap<u32, (u64, Option<String>, Option<String>)>);

impl WatchedValues {
    /// A value that was read at a hit; answers with the one before it and itself. Of one hit, the first reading counts.
    pub fn record_value(&mut self, wanted: u32, hit: u64, now: Option<String>) -> (Option<String>, Option<String>) {
        let known = self.0.entry(wanted).or_default();
        if known.0 != hit || hit == 0 {
            *known = (hit, known.2.take(), now);
        }
        (known.1.clone(), known.2.clone())
    }
}

#[derive(Default)]
pub struct Lines {
    /// By target.
    all: Vec<Line>,
    /// Whoever is reached from now on is left at once.
    pub stopping: bool,
}

/// How a target is reached.
#[derive(Default)]
struct Line {
    /// None before it is dialled and after its end.
    client: Option<DapClient>,
    /// Known once `launch` or `attach` is on its way.
    able: watch::Sender<Option<DapCapabilities>>,
    configured: watch::Sender<bool>,
    /// Somebody says goodbye to it, or has.
    leaving: bool,
    /// It is being told what is wanted, or was.
    told: bool,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl SessionShared {
    pub fn new(book: Arc<Mutex<BreakpointStore>>, record: Arc<EventLog>, deadline: Duration) -> SessionShared {
        SessionShared {
            published: watch::Sender::default(),
            lines: Mutex::default(),
            book,
            standings: Mutex::default(),
            goals: Mutex::default(),
            data: Mutex::default(),
            record,
            stood: watch::Sender::default(),
            deadline,
            pausing: Mutex::default(),
            watched: Mutex::default(),
            shown: Mutex::default(),
            showing: tokio::sync::Mutex::default(),
            spoken: Mutex::default(),
        }
    }

    pub fn step_target(&self, id: usize, input: TargetInput) -> TargetEffect {
        let mut effect = TargetEffect::Nothing;
        let stops = matches!(input, TargetInput::Stopped(_));
        self.published.send_if_modified(|snapshot| {
            let (next, does) = step_target(&snapshot.targets[id].state, input);
            effect = does;
            let Some(next) = next else { return false };
            snapshot.generation += 1;
            let target = &mut snapshot.targets[id];
            if !matches!(target.state.phase, TargetPhase::Stopped(_)) {
                target.stopped_in = snapshot.generation;
            }
            target.state = next;
            true
        });
        if stops {
            let mut spoken = lock(&self.spoken);
            *spoken = (spoken.1, Some(self.record.output_cursor()));
        }
        effect
    }

    pub fn client(&self, id: usize) -> Option<DapClient> {
        lock(&self.lines).all.get(id)?.client.clone()
    }

    /// Of all that are reached, by their ids; none is reached any more from now on.
    pub fn close_to_new_clients(&self) -> Vec<Option<DapClient>> {
        let mut lines = lock(&self.lines);
        lines.stopping = true;
        lines.all.iter().map(|line| line.client.clone()).collect()
    }

    /// Whether the caller is the first to leave the target, and so the one to say goodbye. A second goodbye in the

    /// moment in which debugpy closes the connection ends its server, and with it whatever comes after.
    pub fn claim_disconnect(&self, id: usize) -> bool {
        !std::mem::replace(&mut lock(&self.lines).all[id].leaving, true)
    }

    pub fn add_target(self: &Arc<SessionShared>, parent: Option<usize>, name: String) -> TargetHandle {
        let mut id = 0;
        lock(&self.lines).all.push(Line::default());
        self.published.send_modify(|snapshot| {
            id = snapshot.targets.len();
            snapshot.generation += 1;
            snapshot.targets.push(TargetSnapshot { name, parent, ..TargetSnapshot::default() });
        });
        TargetHandle { id, shared: Arc::clone(self) }
    }
}

/// A target's place in its session.
#[derive(Clone)]
pub struct TargetHandle {
    pub id: usize,
    pub shared: Arc<SessionShared>,
}

impl TargetHandle {
    pub fn step(&self, input: TargetInput) -> TargetEffect {
        self.shared.step_target(self.id, input)
    }

    /// The stops that it is in.
    pub fn stops(&self) -> Vec<ThreadStop> {
        self.shared.published.borrow().targets[self.id].state.stops().to_vec()
    }

    pub fn event_log(&self) -> Arc<EventLog> {
        Arc::clone(&self.shared.record)
    }

    pub fn set_client(&self, client: &DapClient) {
        let mut lines = lock(&self.shared.lines);
        if lines.stopping {
            client.close();
        }
        lines.all[self.id].client = Some(client.clone());
    }

    pub fn clear_client(&self) {
        lock(&self.shared.lines).all[self.id].client = None;
        lock(&self.shared.standings).remove_target(self.id);
        lock(&self.shared.data).retain(|(target, _), _| *target != self.id);
        self.notify_bindings_changed();
    }

    pub fn client(&self) -> Option<DapClient> {
        self.shared.client(self.id)
    }

    fn line<T>(&self, read: impl FnOnce(&Line) -> T) -> T {
        read(&lock(&self.shared.lines).all[self.id])
    }

    /// What the adapter can do is known, and `launch` or `attach` is on its way.
    pub fn set_capabilities(&self, able: DapCapabilities) {
        self.line(|line| line.able.send_replace(Some(able)));
    }

    /// What it can do, as soon as it has said so.
    pub async fn wait_for_capabilities(&self) -> DapCapabilities {
        let mut able = self.line(|line| line.able.subscribe());
        let able = able.wait_for(Option::is_some).await;
        able.ok().and_then(|able| able.clone()).unwrap_or_default()
    }

    /// What it can do, as far as it has said so.
    pub fn capabilities(&self) -> DapCapabilities {
        let lines = lock(&self.shared.lines);
        // A reference may name a target that never was.
        lines.all.get(self.id).and_then(|line| line.able.borrow().clone()).unwrap_or_default()
    }

    pub fn merge_capabilities(&self, changed: DapCapabilities) {
        self.line(|line| line.able.send_modify(|able| able.get_or_insert_default().change(changed)));
    }

    /// It has been told all that is wanted.
    pub fn mark_configured(&self) {
        self.line(|line| line.configured.send_replace(true));
    }

    pub async fn wait_until_configured(&self) {
        let mut configured = self.line(|line| line.configured.subscribe());
        let _ = configured.wait_for(|configured| *configured).await;
    }

    /// It is told what is wanted from now on: whoever changes that must tell it, too, after this turn.
    pub fn mark_breakpoints_sent(&self) {
        lock(&self.shared.lines).all[self.id].told = true;
    }

    pub fn are_breakpoints_sent(&self) -> bool {
        self.line(|line| line.told)
    }

    /// Held by who tells it what is wanted.
    pub async fn lock_breakpoint_requests(&self) -> OwnedMutexGuard<()> {
        let turn = self.line(|line| Arc::clone(&line.turn));
        turn.lock_owned().await
    }
}

/// What is wanted.
impl TargetHandle {
    fn book<T>(&self, read: impl FnOnce(&BreakpointStore) -> T) -> T {
        read(&lock(&self.shared.book))
    }

    pub fn follow_source_changes(&self) {
        lock(&self.shared.book).follow_source_changes();
    }

    pub fn breakpoint_files(&self) -> BTreeSet<PathBuf> {
        let mut files = self.book(|book| book.files());
        files.extend(lock(&self.shared.goals).iter().filter_map(|goal| goal.file().map(Path::to_owned)));
        files
    }

    pub fn line_breakpoints(&self, file: &Path) -> Vec<BreakpointSpec> {
        self.book(|book| book.in_file(file).cloned().collect())
    }

    /// The lines of a file to which the session runs.
    pub fn temporary_breakpoints(&self, file: &Path) -> Vec<BreakpointSpec> {
        lock(&self.shared.goals).iter().filter(|goal| goal.file() == Some(file)).cloned().collect()
    }

    pub fn function_breakpoints(&self) -> Vec<BreakpointSpec> {
        let is = |wanted: &&BreakpointSpec| matches!(wanted.kind, BreakpointKind::Function { .. });
        self.book(|book| book.all().iter().filter(is).cloned().collect())
    }

    pub fn exception_spec(&self) -> ExceptionSpec {
        self.book(|book| book.exceptions().clone())
    }

    pub fn exception_class(&self) -> Option<String> {
        self.book(|book| book.exceptions().class.clone())
    }

    /// Whether only reads of data are wanted.
    pub fn is_read_watchpoint(&self, id: u32) -> bool {
        let reads =
            |wanted: &BreakpointSpec| matches!(wanted.kind, BreakpointKind::Data { access: DataAccess::Read, .. });
        self.book(|book| book.get(id).is_some_and(reads))
    }

    /// Data that is wanted, and that it has given no id for.
    pub fn unresolved_data_breakpoints(&self) -> Vec<u32> {
        let found: Vec<u32> = self.data_breakpoints().into_iter().map(|(id, _)| id).collect();
        let is = |it: &&BreakpointSpec| matches!(it.kind, BreakpointKind::Data { .. }) && !found.contains(&it.id);
        self.book(|book| book.all().iter().filter(is).map(|it| it.id).collect())
    }

    /// What it has given ids for.
    pub fn data_breakpoints(&self) -> Vec<(u32, DataBreakpoint)> {
        let data = lock(&self.shared.data);
        data.iter().filter(|((target, _), _)| *target == self.id).map(|((_, id), data)| (*id, data.clone())).collect()
    }
}

/// What it made of that.
impl TargetHandle {
    fn notify_bindings_changed(&self) {
        self.shared.stood.send_modify(|count| *count += 1);
    }

    pub fn begin_breakpoint_request(&self) {
        lock(&self.shared.standings).begin_request(self.id);
    }

    pub fn record_bindings(&self, wanted: &[u32], answer: &[DapBreakpoint]) {
        lock(&self.shared.standings).record_response(self.id, wanted, answer);
        self.notify_bindings_changed();
    }

    pub fn record_refusal(&self, wanted: &[u32], reason: &str) {
        lock(&self.shared.standings).record_refusal(self.id, wanted, reason);
        self.notify_bindings_changed();
    }

    pub fn update_binding(&self, told: DapBreakpoint) {
        lock(&self.shared.standings).record_event(self.id, told);
        self.notify_bindings_changed();
    }

    /// Whether it was asked to pause; its next stop answers that.
    pub fn take_pause_request(&self) -> bool {
        lock(&self.shared.pausing).remove(&self.id)
    }

    /// Counts a hit; answers how many there were.
    pub fn count_hit(&self, wanted: u32) -> u64 {
        lock(&self.shared.standings).count_hit(wanted)
    }

    /// Which wanted breakpoint an adapter's number stands for.
    pub fn spec_of_adapter_id(&self, id: i64) -> Option<u32> {
        lock(&self.shared.standings).spec_of_adapter_id(self.id, id)
    }

    pub fn record_sent_lines(&self, file: &Path, lines: impl IntoIterator<Item = i64>) {
        lock(&self.shared.standings).record_sent_lines(self.id, file, lines);
    }

    /// Whether it was ever told of a line, which is wanted no more.
    pub fn was_line_sent(&self, file: &Path, line: i64) -> bool {
        lock(&self.shared.standings).was_line_sent(self.id, file, line)
    }

    /// Which wanted breakpoint is on that line of a file.
    pub fn breakpoint_at_line(&self, path: &Path, at: i64) -> Option<u32> {
        let really = |wanted: &BreakpointSpec| lock(&self.shared.standings).bound_line(self.id, wanted.id);
        let is_there = |it: &&BreakpointSpec| stop_filter::is_on_line(&it.kind, really(it), path, at);
        let goal = lock(&self.shared.goals).iter().find(is_there).map(|it| it.id);
        goal.or_else(|| self.book(|book| book.all().iter().find(is_there).map(|it| it.id)))
    }
}
