//! All sessions of a workspace, and what is wanted in all of them.
//!
//! Ended ones stay readable for an hour, or until ten newer ones have ended. Must not know the wire API.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, join_all};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::begin::STARTED;
use super::breakpoints::{Access, Book, Conditions, Exceptions, Standing, Wanted, What};
use super::configure;
use super::hosted::{self, Hosted, Request};
use super::inspect::Ref;
use super::ledger::{Ledger, Left};
use super::published::State;
use super::seat::Seat;
use super::session::{Changed, Session};
use super::target::Resume;
use crate::adapters::AdapterSearch;
use crate::clock::now_ms;
use crate::dap::types::{DataBreakpoint, DataBreakpointInfoArguments};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::lock;

/// How long that which is done after sessions may take, when all of them are ended at once.
const AFTERWARDS: Duration = Duration::from_secs(10);
/// How long an ended session stays readable, and how many of them.
const READABLE_MS: u64 = 60 * 60 * 1000;
const READABLE: usize = 10;

/// A handle; clones are the same.
#[derive(Clone)]
pub struct Sessions(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) workspace: PathBuf,
    /// Begins what the processes of all sessions are to be found by.
    pub(super) mark: String,
    pub(super) book: Arc<Mutex<Book>>,
    pub(super) ledger: Arc<Ledger>,
    /// Not yet taken over.
    pub(super) left: Mutex<Left>,
    pub(super) recovered: watch::Sender<bool>,
    pub(super) table: Mutex<Table>,
    pub(super) tasks: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
    /// Rises with each change of any session.
    pub(super) changed: watch::Sender<u64>,
    /// How much is still to be done after sessions.
    afterwards: watch::Sender<usize>,
}

#[derive(Default)]
pub(super) struct Table {
    last: u32,
    pub(super) hosted: Vec<Hosted>,
}

/// What comes of the exceptions that are wanted, over all living sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct Excepting {
    pub wanted: Exceptions,
    /// The filters that the adapters know.
    pub known: Vec<String>,
    /// Which session's adapter cannot stop at what: sentences.
    pub unable: Vec<String>,
}

/// A wanted breakpoint, and where it stands over all living sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct Reported {
    pub wanted: Wanted,
    pub standing: Standing,
    pub hits: u64,
}

impl Sessions {
    /// The sessions of a workspace, and the future that drives them: spawn it. Dropping that ends them all.
    /// `mark` begins what their processes are to be found by.
    pub fn open(workspace: &Path, mark: String) -> (Sessions, impl Future<Output = ()> + Send + 'static) {
        Sessions::kept_in(None, workspace, mark)
    }

    /// As [`Sessions::open`], and the next supervisor finds in this folder what it has to know of them. What the last one
    /// has left there waits for [`Sessions::recover`].
    pub fn kept_in(
        folder: Option<&Path>,
        workspace: &Path,
        mark: String,
    ) -> (Sessions, impl Future<Output = ()> + Send + 'static) {
        let (ledger, left) = Ledger::open(folder);
        let (tasks, mut inbox) = mpsc::unbounded_channel::<BoxFuture<'static, ()>>();
        let inner = Inner {
            workspace: workspace.to_owned(),
            mark,
            book: Arc::new(Mutex::new(Book::open(workspace))),
            table: Mutex::new(Table { last: left.last, hosted: Vec::new() }),
            recovered: watch::Sender::new(folder.is_none()),
            ledger: Arc::new(ledger),
            left: Mutex::new(left),
            tasks,
            changed: watch::Sender::default(),
            afterwards: watch::Sender::default(),
        };
        let driver = async move {
            let mut running = JoinSet::new();
            loop {
                tokio::select! {
                    task = inbox.recv() => match task {
                        Some(task) => drop(running.spawn(task)),
                        None => return,
                    },
                    Some(_) = running.join_next() => {}
                }
            }
        };
        (Sessions(Arc::new(inner)), driver)
    }

    pub fn workspace(&self) -> &Path {
        &self.0.workspace
    }

    /// A count that rises with each change of any session.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// All of them, the oldest first.
    pub fn all(&self) -> Vec<Hosted> {
        let mut table = lock(&self.0.table);
        let now = now_ms();
        let mut ended: Vec<(u64, String)> =
            table.hosted.iter().filter_map(|it| Some((it.ended_at()?, it.id.clone()))).collect();
        ended.sort();
        let many = ended.len().saturating_sub(READABLE);
        let old = |(index, (at, _)): &(usize, &(u64, String))| *index < many || now.saturating_sub(*at) > READABLE_MS;
        let gone: Vec<&String> = ended.iter().enumerate().filter(old).map(|(_, (_, id))| id).collect();
        table.hosted.retain(|it| !gone.contains(&&it.id));
        table.hosted.clone()
    }

    pub fn living(&self) -> Vec<Hosted> {
        self.all().into_iter().filter(|it| !it.is_ended()).collect()
    }

    /// The named one; without a name the only living one, or, when none lives, the one that ended last.
    pub fn choose(&self, id: Option<&str>) -> Result<Hosted> {
        let all = self.all();
        if let Some(id) = id {
            return all.iter().find(|it| it.id == id).cloned().ok_or_else(|| {
                let error = Error::new(ErrorKind::NotFound, format!("there is no debug session {id:?}"));
                match ids(&all) {
                    names if names.is_empty() => error.hint("`tether debug launch PROGRAM` starts one"),
                    names => error.hint(format!("there are: {names}")),
                }
            });
        }
        let living: Vec<Hosted> = all.iter().filter(|it| !it.is_ended()).cloned().collect();
        match living.as_slice() {
            [only] => Ok(only.clone()),
            [] => all.into_iter().max_by_key(|it| it.ended_at().unwrap_or(u64::MAX)).ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "there is no debug session")
                    .hint("`tether debug launch PROGRAM` starts one")
            }),
            several => {
                let error = Error::usage("there are several debug sessions, and it is not said which one is meant");
                Err(error.hint(format!("name one of: {}", ids(several))))
            }
        }
    }

    /// Agrees when the adapter of a request is known and there; nothing is started.
    pub fn locate(&self, request: &Request) -> Result<()> {
        hosted::locate(request, &AdapterSearch::for_workspace(&self.0.workspace)?).map(drop)
    }

    /// Begins a session, and waits until its program runs, has stopped, or has ended. Errors: it could not be started.
    pub async fn start(&self, request: Request) -> Result<Hosted> {
        self.begin(request, Arc::clone(&self.0.book), true).await
    }

    /// Begins a session of its own that knows one breakpoint only, and is in no list.
    pub async fn start_at(&self, request: Request, file: &Path, line: u32) -> Result<Probing> {
        let mut book = Book::blank();
        book.set_line(&self.0.workspace.join(file), line, Conditions::default())?;
        let hosted = self.begin(request, Arc::new(Mutex::new(book)), false).await?;
        Ok(Probing { sessions: self.clone(), hosted })
    }

    async fn begin(&self, request: Request, book: Arc<Mutex<Book>>, listed: bool) -> Result<Hosted> {
        let id = {
            let mut table = lock(&self.0.table);
            table.last += 1;
            format!("d{}", table.last)
        };
        let ready = self.ready(id, request, book, Arc::default())?;
        self.carry_out(ready, listed, STARTED).await
    }

    /// Does something once nothing of a session is left.
    pub fn when_gone(&self, hosted: &Hosted, then: impl Future<Output = ()> + Send + 'static) {
        let (hosted, left) = (hosted.clone(), self.0.afterwards.clone());
        left.send_modify(|count| *count += 1);
        let task = async move {
            hosted.gone().await;
            then.await;
            left.send_modify(|count| *count -= 1);
        };
        // The receiver lives as long as the supervisor.
        let _ = self.0.tasks.send(task.boxed());
    }

    /// Ends one that nobody wants any more, without waiting for it.
    pub fn undo(&self, hosted: &Hosted) {
        let hosted = hosted.clone();
        let ending = async move {
            hosted.stop(hosted.is_attached()).await;
        };
        let _ = self.0.tasks.send(ending.boxed());
    }

    /// Ends all of them, those that were attached to are let go; and waits for what is done after them.
    pub async fn end(&self) {
        let marks: Vec<String> = self.living().iter().map(|it| it.mark.clone()).collect();
        self.0.ledger.close("its supervisor was ended, and the program that it had launched with it", &marks);
        join_all(self.living().iter().map(|it| it.stop(it.is_attached()))).await;
        let mut left = self.0.afterwards.subscribe();
        // What takes longer is cut off with us.
        let _ = tokio::time::timeout(AFTERWARDS, left.wait_for(|count| *count == 0)).await;
    }
}

/// A session for one look. Dropping it ends it.
pub struct Probing {
    sessions: Sessions,
    pub hosted: Hosted,
}

impl Probing {
    /// Ends it, and waits until nothing of it is left.
    pub async fn end(&self) {
        self.hosted.stop(false).await;
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.sessions.undo(&self.hosted);
    }
}

fn ids(all: &[Hosted]) -> String {
    let named = all.iter().map(|it| format!("{} ({}, {})", it.id, it.request.name, it.state().name()));
    named.collect::<Vec<_>>().join(", ")
}

/// Breakpoints.
impl Sessions {
    fn book<T>(&self, with: impl FnOnce(&mut Book) -> T) -> T {
        with(&mut lock(&self.0.book))
    }

    /// What was wrong with the file that keeps them.
    pub fn problem(&self) -> Option<String> {
        self.book(|book| book.problem.clone())
    }

    pub async fn set_line(&self, file: &Path, line: u32, conditions: Conditions) -> Result<Reported> {
        let file = self.0.workspace.join(file);
        let wanted = self.book(|book| book.set_line(&file, line, conditions))?;
        self.apply(Changed::File(wanted.file().unwrap_or(&file))).await;
        Ok(self.settled(wanted).await)
    }

    pub async fn set_function(&self, name: String, conditions: Conditions) -> Result<Reported> {
        let wanted = self.book(|book| book.set(What::Function { name }, conditions))?;
        self.apply(Changed::Functions(false)).await;
        Ok(self.settled(wanted).await)
    }

    /// Watches data in the top frame of a stopped session; without one, it is only kept.
    pub async fn watch_data(&self, expression: String, access: Access) -> Result<Reported> {
        let living = self.living();
        let stopped = living.iter().find(|it| it.state() == State::Stopped);
        let found = match stopped {
            Some(hosted) => Some((hosted, data_of(&hosted.session, &expression, access).await?)),
            None if living.is_empty() => None,
            None => {
                let error = Error::usage(format!("cannot watch `{expression}`")).because("no session is stopped");
                return Err(error.hint("`tether debug pause` stops one, and gives a frame to find it in"));
            }
        };
        let what = What::Data { expression: expression.clone(), access };
        let wanted = self.book(|book| book.set(what, Conditions::default()))?;
        if let Some((hosted, (frame, data))) = found {
            let now = hosted.session.evaluate(&expression, Some(frame), "watch").await.ok();
            lock(&hosted.session.shared.watched).turn(wanted.id, 0, now.map(|(_, answer)| answer.result));
            lock(&hosted.session.shared.data).insert((frame.target, wanted.id), data);
            hosted.session.apply(Changed::Data).await;
        }
        Ok(self.settled(wanted).await)
    }

    pub async fn set_exceptions(&self, exceptions: Exceptions) -> Result<()> {
        self.book(|book| book.set_exceptions(exceptions))?;
        self.apply(Changed::Exceptions).await;
        Ok(())
    }

    /// What comes of the exceptions that are wanted.
    pub fn exceptions(&self) -> Excepting {
        let wanted = self.book(|book| book.exceptions().clone());
        let (mut known, mut unable) = (Vec::new(), Vec::new());
        for hosted in self.living() {
            for able in hosted.session.seats().iter().filter(|seat| seat.is_told()).map(Seat::able) {
                if let Some(what) = configure::exceptions_beyond(&wanted, &able) {
                    unable.push(format!("{} ({}) cannot stop at {what}", hosted.id, hosted.adapter.name));
                }
                known.extend(able.exception_breakpoint_filters.into_iter().map(|filter| filter.filter));
            }
        }
        for names in [&mut known, &mut unable] {
            names.sort();
            names.dedup();
        }
        Excepting { wanted, known, unable }
    }

    /// All breakpoints, their lines as the files are now.
    pub fn breakpoints(&self) -> Vec<Reported> {
        let all = self.book(|book| {
            book.follow_all();
            book.all().to_vec()
        });
        all.into_iter().map(|wanted| self.report(wanted)).collect()
    }

    /// Removes those that `gone` chooses; answers with them.
    pub async fn remove(&self, gone: impl Fn(&Wanted) -> bool) -> Result<Vec<Wanted>> {
        let removed = self.book(|book| {
            book.follow_all();
            book.remove(gone)
        })?;
        let mut files: Vec<&Path> = removed.iter().filter_map(Wanted::file).collect();
        files.sort();
        files.dedup();
        for hosted in self.living() {
            removed.iter().for_each(|wanted| hosted.session.forget(wanted.id));
            for file in &files {
                hosted.session.apply(Changed::File(file)).await;
            }
            if removed.iter().any(|wanted| matches!(wanted.what, What::Function { .. })) {
                hosted.session.apply(Changed::Functions(true)).await;
            }
            if removed.iter().any(|wanted| matches!(wanted.what, What::Data { .. })) {
                hosted.session.apply(Changed::Data).await;
            }
        }
        Ok(removed)
    }

    async fn apply(&self, changed: Changed<'_>) {
        let living = self.living();
        join_all(living.iter().map(|hosted| hosted.session.apply(changed))).await;
    }

    async fn settled(&self, wanted: Wanted) -> Reported {
        let living = self.living();
        join_all(living.iter().map(|hosted| hosted.session.settled(wanted.id))).await;
        self.report(wanted)
    }

    /// Verified in one session is verified.
    fn report(&self, wanted: Wanted) -> Reported {
        let living = self.living();
        let standings = living.iter().map(|hosted| hosted.session.standing(wanted.id));
        let rank = |standing: &Standing| match standing {
            Standing::Verified { .. } => 2,
            Standing::Unbound(_) => 1,
            Standing::Pending => 0,
        };
        let standing = standings.max_by_key(rank).unwrap_or(Standing::Pending);
        let hits = living.iter().map(|hosted| hosted.session.hits(wanted.id)).sum();
        Reported { wanted, standing, hits }
    }

    /// Lets a stopped session run to a line.
    pub async fn run_to(&self, hosted: &Hosted, file: &Path, line: u32) -> Result<()> {
        hosted.session.choose(None)?;
        let file = self.0.workspace.join(file);
        if let Some(goal) = self.book(|book| book.goal(&file, line))? {
            hosted.session.runs_to(goal).await;
        }
        hosted.session.resume(Resume::Continue, None).await
    }
}

/// The adapter's own id of data, found in the top frame: by the whole expression, or as one of its variables.
async fn data_of(session: &Session, expression: &str, access: Access) -> Result<(Ref, DataBreakpoint)> {
    let frame = session.frame(None).await?;
    let cannot = || Error::usage(format!("cannot watch `{expression}`"));
    if !session.seat(frame.target).able().can("supportsDataBreakpoints") {
        let error = cannot().because("this adapter has no data breakpoints");
        return Err(error.hint(
            "set a breakpoint with a condition where it is written: `tether break set FILE:LINE --condition …`",
        ));
    }
    let mut places = vec![DataBreakpointInfoArguments {
        name: expression.to_owned(),
        frame_id: Some(frame.id),
        ..DataBreakpointInfoArguments::default()
    }];
    places.extend(session.scopes(frame).await?.into_iter().filter(|scope| !scope.expensive).map(|scope| {
        DataBreakpointInfoArguments {
            name: expression.to_owned(),
            variables_reference: Some(scope.variables_reference),
            ..DataBreakpointInfoArguments::default()
        }
    }));
    // What is in no scope has an address all the same (lldb-dap).
    places.push(DataBreakpointInfoArguments { name: format!("&{expression}"), ..places[0].clone() });
    let mut reason = None;
    for place in places {
        match session.ask(frame.target, &place).await {
            Ok(answer) => match answer.data_id {
                Some(data_id) => {
                    let access_type = Some(access.name().to_owned())
                        .filter(|name| answer.access_types.is_empty() || answer.access_types.contains(name));
                    if access_type.is_none() {
                        let can = answer.access_types.join(", ");
                        return Err(cannot().because(format!("the adapter can only tell: {can}")));
                    }
                    return Ok((frame, DataBreakpoint { data_id, access_type, ..DataBreakpoint::default() }));
                }
                None => drop(reason.get_or_insert(answer.description)),
            },
            Err(cause) => drop(reason.get_or_insert(cause.to_string())),
        }
    }
    Err(cannot().because(reason.unwrap_or_else(|| "the adapter finds no such data here".to_owned())))
}
