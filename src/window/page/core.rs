//! The connection to the window: asking a session, attaching to what appears, the chores that events bring.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use super::console::Source;
use super::observe::Chore;
use super::refs::lock;
use super::view::Lost;
use super::{SHORT, Shared};
use crate::cdp::types::{self, Command, TargetInfo};
use crate::cdp::{self, Client, Connection, Endpoint};
use crate::error::{Error, Kind, Result};

/// What the browser keeps of the bodies of a page's requests: as good as nothing.
const BODIES: u64 = 64 << 10;
/// What became of a request that was on its way when the connection ended.
const UNHEARD: &str = "no longer followed: the connection to the window has ended";

/// Shared by everybody who asks something of the window.
#[derive(Clone)]
pub struct Core {
    pub client: Client,
    pub endpoint: Arc<Endpoint>,
    pub shared: Arc<Shared>,
    /// Two who want the same page attach to it once.
    attaching: Arc<Mutex<()>>,
}

/// Why a session did not answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Trouble {
    #[error("the page crashed")]
    Crashed,
    #[error("the page was closed")]
    Gone,
    #[error(transparent)]
    Cdp(#[from] cdp::Error),
}

impl Trouble {
    /// Whether there was no answer in time.
    pub fn timed_out(&self) -> bool {
        matches!(self, Trouble::Cdp(cdp::Error::TimedOut { .. }))
    }
}

impl From<Lost> for Trouble {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Crashed => Trouble::Crashed,
            Lost::Gone => Trouble::Gone,
        }
    }
}

impl Core {
    pub fn new(client: Client, endpoint: Endpoint, shared: Arc<Shared>) -> Core {
        Core { client, endpoint: Arc::new(endpoint), shared, attaching: Arc::default() }
    }

    /// Begins to listen. A browser that shows no page yet will when it is asked for something.
    pub async fn enable(&self) -> Result<(), cdp::Error> {
        if !self.endpoint.is_browser {
            self.client.post(None, &types::EnableRuntime {}).await?;
            self.client.post(None, &types::EnableNodeRuntime {}).await?;
            return self.client.post(None, &types::NotifyWhenWaitingForDisconnect { enabled: true }).await;
        }
        let targets = self.client.call(None, &types::GetTargets {}, SHORT).await?.target_infos;
        let best = {
            let mut view = lock(&self.shared.view);
            for target in targets {
                view.set_page(target);
            }
            view.listed = true;
            view.page(None)
        };
        if let Some(best) = best {
            match self.attach(&best).await {
                Ok(_) | Err(Trouble::Gone | Trouble::Crashed | Trouble::Cdp(cdp::Error::Refused { .. })) => {}
                Err(Trouble::Cdp(cause)) => return Err(cause),
            }
        }
        // What is opened meanwhile is told by this, too.
        self.client.post(None, &types::SetDiscoverTargets { discover: true }).await?;
        let others: Vec<TargetInfo> = lock(&self.shared.view).pages().into_iter().skip(1).cloned().collect();
        for page in others {
            let core = self.clone();
            tokio::spawn(async move { core.attach(&page).await });
        }
        Ok(())
    }

    /// The session of the page to look at: see [`super::view::View::page`]. Node has none.
    pub async fn session(&self, wanted: Option<&str>) -> Result<Option<String>> {
        if !self.endpoint.is_browser {
            return Ok(None);
        }
        self.refresh().await;
        let page = lock(&self.shared.view).page(wanted);
        let page = page.ok_or_else(|| self.no_page(wanted))?;
        self.attach(&page).await.map(Some).map_err(|trouble| self.explain(trouble))
    }

    /// Asks for the titles where they matter: browsers send no event for a change of title alone.
    async fn refresh(&self) {
        if lock(&self.shared.view).pages().len() < 2 {
            return;
        }
        if let Ok(targets) = self.client.call(None, &types::GetTargets {}, SHORT).await {
            let mut view = lock(&self.shared.view);
            for target in targets.target_infos {
                view.update_page(target);
            }
        }
    }

    /// As [`Core::session`], for what only a page can.
    pub async fn page(&self, wanted: Option<&str>, doing: &str) -> Result<String> {
        let nothing = || Error::usage(doing).because(format!("{} has no page to show", self.endpoint.product));
        let session = self.session(wanted).await?.ok_or_else(nothing)?;
        match lock(&self.shared.view).lost(&session) {
            Some(lost) => Err(self.explain(lost.into())),
            None => Ok(session),
        }
    }

    /// Attaches to a page, unless that has been done.
    async fn attach(&self, page: &TargetInfo) -> Result<String, Trouble> {
        let known = || lock(&self.shared.view).session_of(&page.target_id);
        if let Some(session) = known() {
            return Ok(session);
        }
        let _turn = self.attaching.lock().await;
        if let Some(session) = known() {
            return Ok(session);
        }
        let attach = types::AttachToTarget { target_id: page.target_id.clone(), flatten: true };
        let session = self.client.call(None, &attach, SHORT).await?.session_id;
        self.listen(&session, Source::Page).await?;
        Ok(session)
    }

    /// Begins to listen to a session. Nobody waits for the answers: a frozen page gives none, and what is asked next
    /// comes after them anyway.
    async fn listen(&self, session: &str, source: Source) -> Result<(), cdp::Error> {
        let (client, session) = (&self.client, Some(session));
        if source != Source::Worker {
            client.post(session, &types::EnablePage {}).await?;
            client.post(session, &types::EnableInspector {}).await?;
        }
        client.post(session, &types::EnableRuntime {}).await?;
        client.post(session, &types::EnableLog {}).await?;
        let network = types::EnableNetwork { max_total_buffer_size: BODIES, max_resource_buffer_size: BODIES };
        client.post(session, &network).await?;
        let inner = types::SetAutoAttach { auto_attach: true, wait_for_debugger_on_start: false, flatten: true };
        client.post(session, &inner).await
    }

    /// Asks a session. A page that crashes or closes meanwhile ends the waiting.
    pub async fn call<C: Command>(
        &self,
        session: Option<&str>,
        command: &C,
        deadline: Duration,
    ) -> Result<C::Answer, Trouble> {
        let Some(session) = session else {
            return Ok(self.client.call(None, command, deadline).await?);
        };
        tokio::select! {
            biased; // an answer is an answer, whatever happened after it
            answer = self.client.call(Some(session), command, deadline) => Ok(answer?),
            lost = self.lost(session) => Err(lost.into()),
        }
    }

    /// Resolves when a session is lost.
    async fn lost(&self, session: &str) -> Lost {
        let mut stirred = self.shared.stirred.subscribe();
        loop {
            if let Some(lost) = lock(&self.shared.view).lost(session) {
                return lost;
            }
            // The sender lives in `shared`: it cannot be gone.
            let _ = stirred.changed().await;
        }
    }

    /// What a reader is told of trouble with the page.
    pub fn explain(&self, trouble: Trouble) -> Error {
        match trouble {
            Trouble::Crashed => Error::new(Kind::Other, "the page crashed")
                .because("its renderer process has ended; the window itself lives")
                .hint("`tether restart` (MCP: `window_restart`) launches the window anew"),
            Trouble::Gone => Error::new(Kind::NotFound, "the page was closed")
                .hint("`tether snapshot` shows the pages that there are; `tether restart` launches the window anew"),
            Trouble::Cdp(cause) => unreachable(self.endpoint.port, cause),
        }
    }

    fn no_page(&self, wanted: Option<&str>) -> Error {
        let view = lock(&self.shared.view);
        match wanted {
            Some(wanted) if !view.pages().is_empty() => {
                let pages: Vec<String> = view.pages().into_iter().take(10).map(super::view::page_line).collect();
                Error::new(Kind::NotFound, format!("there is no page with {wanted:?} in its address or title"))
                    .hint(format!("there are: {}", pages.join(", ")))
            }
            _ => Error::new(Kind::NotFound, "the window shows no page").hint("`tether restart` launches it anew"),
        }
    }
}

/// Keeps the connection going until it ends, the page is dropped, or Node has run to its end and stays only because we
/// look at it. Then takes at most a second to close it in peace, and ends what will not be heard of any more.
pub async fn drive(
    core: Core,
    connection: Connection,
    chores: mpsc::UnboundedReceiver<Chore>,
    left: oneshot::Receiver<Infallible>,
) {
    tokio::pin!(connection);
    let over = tokio::select! {
        _ = &mut connection => true,
        () = work(core.clone(), chores) => false,
        _ = left => false,
    };
    if !over {
        core.client.close();
        connection.await;
    }
    core.end_requests();
}

/// Does what the events bring, each beside the others, until Node wants us to leave.
async fn work(core: Core, mut chores: mpsc::UnboundedReceiver<Chore>) {
    let mut running = JoinSet::new();
    while let Some(chore) = chores.recv().await {
        while running.try_join_next().is_some() {}
        if matches!(chore, Chore::Leave) {
            return;
        }
        let core = core.clone();
        running.spawn(async move { core.do_chore(chore).await });
    }
}

impl Core {
    /// Ends the requests that were on their way when the connection ended. Others may be heard over another one.
    fn end_requests(&self) {
        let sessions: Vec<String> = lock(&self.shared.view).sessions().cloned().collect();
        for session in sessions {
            self.shared.records.end_requests(&session, UNHEARD);
        }
    }

    /// Whatever fails here has changed again in the meantime.
    async fn do_chore(&self, chore: Chore) {
        match chore {
            Chore::Answer { session, accept } => {
                let _ = self.client.call(session.as_deref(), &types::HandleDialog { accept }, SHORT).await;
            }
            Chore::Attach(page) => {
                let _ = self.attach(&page).await;
            }
            Chore::Enable { session, source } => {
                let _ = self.listen(&session, source).await;
            }
            Chore::Leave => {}
        }
    }
}

pub fn unreachable(port: u16, cause: cdp::Error) -> Error {
    if matches!(cause, cdp::Error::TimedOut { .. }) {
        return Error::new(Kind::TimedOut, format!("the page of the window on port {port} does not answer"))
            .because(format!("{cause}: it is busy with a script that runs and runs, or it is frozen"))
            .hint("ask again when it is done; `tether restart` (MCP: `window_restart`) launches the window anew");
    }
    let error = Error::new(Kind::Other, format!("cannot reach the debug window on port {port}")).because(cause);
    error.hint("`tether status` tells whether it lives, `tether restart` launches it anew")
}
