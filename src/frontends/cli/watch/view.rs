//! `tether watch` in a terminal: a view that keys act on and notifications keep current. It ends when the user quits, at a signal,
//! or when the terminal is gone; the window stays.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorContext, Result};
use tether_wire::rpc::RpcIncoming;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::connection::WatchConnection;
use super::view_drawing::draw;
use super::view_state::{Message, SHOWN_KINDS, WatchState};
use crate::api::debug::DebugStatusParams;
use crate::api::page::PageEvaluateParams;
use crate::api::protocol::{
    DEBUG_DID_CHANGE_STATE, DEBUGGER_JOIN, ProgressParams, TIMELINE_DID_CHANGE, WINDOW_DID_CHANGE_STATE,
};
use crate::api::timeline::TimelineReadParams;
use crate::api::window::{WindowRestartParams, WindowStartParams, WindowStatusParams, WindowStopParams};

/// How many events are read at once; the rest is read next.
const PAGE: usize = 200;
/// How often ages are drawn again.
const TICK: Duration = Duration::from_secs(1);

/// What a key begins.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Start,
    Refresh,
    Restart,
    Stop,
    Join(String),
    Open,
}

/// What the tasks of the view tell it.
enum Told {
    Progress(String),
    Ended(Message),
}

/// Shows the view until it is quit. Errors: the terminal cannot be used.
pub async fn show_view(connection: &Arc<WatchConnection>, workspace: &Path) -> Result<()> {
    let terminal = ratatui::try_init().doing(|| "cannot use the terminal".into())?;
    let name = workspace.file_name().unwrap_or(workspace.as_os_str());
    let state = WatchState { workspace: name.to_string_lossy().into_owned(), ..WatchState::default() };
    let (tell, told) = mpsc::unbounded_channel();
    let mut view = WatchView { connection: Arc::clone(connection), terminal, state, tell, acting: false };
    let ended = view.run(told).await;
    ratatui::restore();
    ended
}

struct WatchView {
    connection: Arc<WatchConnection>,
    terminal: DefaultTerminal,
    state: WatchState,
    tell: mpsc::UnboundedSender<Told>,
    /// One action at a time.
    acting: bool,
}

impl WatchView {
    async fn run(&mut self, mut told: mpsc::UnboundedReceiver<Told>) -> Result<()> {
        let cannot = || "cannot use the terminal".to_owned();
        let ending = |kind| signal(kind).doing(cannot);
        let (mut terminated, mut hung_up) = (ending(SignalKind::terminate())?, ending(SignalKind::hangup())?);
        let mut interrupted = ending(SignalKind::interrupt())?;
        let mut input = read_input();
        let mut tick = tokio::time::interval(TICK);
        let mut notifications = self.connect().await?;
        self.begin(Action::Start);
        loop {
            self.terminal.draw(|frame| draw(frame, &self.state)).doing(cannot)?;
            tokio::select! {
                event = input.recv() => match event {
                    Some(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                        if !self.handle_key(key)? {
                            return Ok(());
                        }
                    }
                    // Another size is drawn to.
                    Some(_) => {}
                    // The terminal is gone.
                    None => return Ok(()),
                },
                message = notifications.recv() => match message {
                    Some(message) => self.handle_notification(message).await?,
                    // The supervisor was replaced, or has ended.
                    None => notifications = self.connect().await?,
                },
                Some(told) = told.recv() => match told {
                    Told::Progress(text) => self.state.message = Message::Busy(text),
                    Told::Ended(message) => {
                        self.acting = false;
                        self.state.message = message;
                    }
                },
                _ = tick.tick() => {}
                _ = terminated.recv() => return Ok(()),
                _ = hung_up.recv() => return Ok(()),
                _ = interrupted.recv() => return Ok(()),
            }
        }
    }

    /// Connects, and reads everything anew.
    async fn connect(&mut self) -> Result<mpsc::Receiver<RpcIncoming>> {
        let notifications = self.connection.notifications().await?;
        self.state.window = Some(self.connection.call(&WindowStatusParams {}).await?);
        let status = self.connection.call(&DebugStatusParams::default()).await?;
        self.state.sessions.clear();
        for session in status.session.into_iter().chain(status.sessions.into_iter().flatten()) {
            self.state.set_session(session);
        }
        self.read_timeline().await?;
        Ok(notifications)
    }

    async fn read_timeline(&mut self) -> Result<()> {
        loop {
            let since = Some(self.state.cursor).filter(|cursor| *cursor > 0);
            let read = TimelineReadParams { since, limit: Some(PAGE), kinds: Some(SHOWN_KINDS.to_vec()) };
            let read = self.connection.call(&read).await?;
            self.state.add_events(read.events, read.cursor);
            // Without a cursor, those that are left out are older.
            if read.more == 0 || since.is_none() {
                return Ok(());
            }
        }
    }

    async fn handle_notification(&mut self, message: RpcIncoming) -> Result<()> {
        let RpcIncoming::Notification { method, params } = message else { return Ok(()) };
        match method.as_str() {
            WINDOW_DID_CHANGE_STATE => {
                self.state.window = serde_json::from_value(params).ok().or_else(|| self.state.window.take());
            }
            DEBUG_DID_CHANGE_STATE => {
                if let Ok(session) = serde_json::from_value(params) {
                    self.state.set_session(session);
                }
            }
            TIMELINE_DID_CHANGE => self.read_timeline().await?,
            _ => {}
        }
        Ok(())
    }

    /// `false`: the view is quit.
    fn handle_key(&mut self, key: KeyEvent) -> Result<bool> {
        let page = self.terminal.size().map_or(10, |size| size.height / 2) as isize;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if std::mem::take(&mut self.state.asks_to_stop) {
            if key.code == KeyCode::Char('y') {
                self.begin(Action::Stop);
            }
            return Ok(!(is_control && key.code == KeyCode::Char('c')));
        }
        match key.code {
            KeyCode::Char('c' | 'd') if is_control => return Ok(false),
            KeyCode::Char('z') if is_control => self.suspend()?,
            KeyCode::Char('l') if is_control => self.terminal.clear().doing(|| "cannot use the terminal".into())?,
            KeyCode::Char('q') => return Ok(false),
            KeyCode::Char('r') => self.begin(Action::Refresh),
            KeyCode::Char('R') => self.begin(Action::Restart),
            KeyCode::Char('s') => self.state.asks_to_stop = true,
            KeyCode::Char('o') => self.begin(Action::Open),
            KeyCode::Char('j') => match self.state.session_to_join().map(|session| session.session_id.clone()) {
                Some(id) => self.begin(Action::Join(id)),
                None => self.state.message = Message::Failed("there is no debug session to join".into()),
            },
            KeyCode::Up | KeyCode::Char('k') => self.state.scroll(1),
            KeyCode::Down => self.state.scroll(-1),
            KeyCode::PageUp => self.state.scroll(page),
            KeyCode::PageDown => self.state.scroll(-page),
            KeyCode::Home => self.state.scroll(isize::MAX),
            KeyCode::End => self.state.scroll(isize::MIN),
            _ => {}
        }
        Ok(true)
    }

    /// Lets the shell have the terminal until the process is continued.
    fn suspend(&mut self) -> Result<()> {
        let cannot = || "cannot use the terminal".to_owned();
        ratatui::try_restore().doing(cannot)?;
        // Returns when the shell continues it.
        kill_process(getpid(), Signal::TSTP).map_err(std::io::Error::from).doing(cannot)?;
        self.terminal = ratatui::try_init().doing(cannot)?;
        self.terminal.clear().doing(cannot)
    }

    fn begin(&mut self, action: Action) {
        if self.acting {
            return;
        }
        self.acting = true;
        let doing = match &action {
            Action::Start => "starting the window",
            Action::Refresh => "refreshing the window",
            Action::Restart => "restarting the window",
            Action::Stop => "closing the window",
            Action::Join(_) => "opening a port",
            Action::Open => "opening the page",
        };
        self.state.message = Message::Busy(doing.into());
        let (connection, tell) = (Arc::clone(&self.connection), self.tell.clone());
        tokio::spawn(async move {
            let message = act(&connection, action, &tell)
                .await
                .map_or_else(|error| Message::Failed(error.to_string()), Message::Done);
            // The view may have been quit.
            let _ = tell.send(Told::Ended(message));
        });
    }
}

async fn act(connection: &WatchConnection, action: Action, tell: &mpsc::UnboundedSender<Told>) -> Result<String> {
    let (progress, mut reports) = mpsc::unbounded_channel::<Value>();
    let tell = tell.clone();
    tokio::spawn(async move {
        while let Some(report) = reports.recv().await {
            if let Ok(report) = serde_json::from_value::<ProgressParams>(report) {
                let _ = tell.send(Told::Progress(report.message));
            }
        }
    });
    // The state of the window stands above.
    match action {
        Action::Start => {
            connection.call_with_progress(&WindowStartParams::default(), progress).await?;
            Ok("each save builds and refreshes the window".to_owned())
        }
        Action::Refresh => {
            connection.call_with_progress(&WindowStartParams::default(), progress).await?;
            Ok("the window is up to date".to_owned())
        }
        Action::Restart => {
            connection.call_with_progress(&WindowRestartParams::default(), progress).await?;
            Ok("the window was restarted".to_owned())
        }
        Action::Stop => {
            connection.call_with_progress(&WindowStopParams {}, progress).await?;
            Ok("the window was closed; `r` starts it".to_owned())
        }
        Action::Join(id) => {
            let opened = connection.request(DEBUGGER_JOIN, &json!({"sessionId": id})).await?;
            match opened.get("port").and_then(Value::as_u64) {
                Some(port) => Ok(format!(
                    "an editor joins {id} by DAP on 127.0.0.1:{port}, within 30 s; `tether dap` joins it, too"
                )),
                None => Err(Error::other(format!("no port could be opened for {id}"))),
            }
        }
        Action::Open => open_page(connection).await,
    }
}

/// Opens the address of the window's page in the user's browser.
async fn open_page(connection: &WatchConnection) -> Result<String> {
    let evaluate = PageEvaluateParams { expression: "location.href".into(), ..PageEvaluateParams::default() };
    let value = connection.call(&evaluate).await?.value;
    let address = value.as_ref().and_then(Value::as_str).unwrap_or_default();
    if address.is_empty() {
        return Err(Error::other("cannot open the page").because("the window has none"));
    }
    // The page chooses it.
    if !["http://", "https://"].iter().any(|scheme| address.starts_with(scheme)) {
        return Err(Error::other("cannot open the page").because(format!("its address is {address:?}, not http")));
    }
    let mut command = Command::new("xdg-open");
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut opener = command.spawn().map_err(|cause| {
        Error::other("cannot open the page").because(format!("xdg-open: {cause}")).hint(format!("open {address}"))
    })?;
    // Reaped when it has ended, which may be when the browser does.
    std::thread::spawn(move || opener.wait());
    Ok(format!("opened {address}"))
}

/// What the terminal sends, until it is gone. The read blocks, and cannot be cancelled: the thread ends with the process.
fn read_input() -> mpsc::UnboundedReceiver<Event> {
    let (send, input) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if send.send(event).is_err() {
                return;
            }
        }
    });
    input
}
