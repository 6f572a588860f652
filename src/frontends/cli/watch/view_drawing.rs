//! How the view of `tether watch` is drawn.
//!
//! ```text
//! tether  my-extension     the window is ready: generation 3, pid 71
//! ─ debug sessions ─────────
//! d1 app.py (debugpy), stopped: breakpoint 1 at app.py:12
//! ─ events ─────────────────
//!   9 s  edit: src/a.ts
//!   7 s  build failed, in 1.2 s
//! ─ the build has failed ───
//! src/a.ts:3: error
//! the last answer
//! r refresh  R restart  …
//! ```

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};
use tether_base::display_text::escape_line;

use super::view_state::{Message, WatchState};
use crate::frontends::render::{age_text, session_text, window_line};

/// How many lines of sessions, and of a failed build, are shown at most.
const MAX_SESSIONS: usize = 6;
const MAX_BUILD_LINES: usize = 12;

/// The keys, and what they do.
const KEYS: [(&str, &str); 7] = [
    ("r", "refresh"),
    ("R", "restart"),
    ("s", "stop"),
    ("j", "join"),
    ("o", "open page"),
    ("↑↓", "scroll"),
    ("q", "quit"),
];

/// Draws all of it.
pub fn draw(frame: &mut Frame<'_>, state: &WatchState) {
    let sessions = session_lines(state);
    let build = build_lines(state);
    let height = |lines: &[Line<'_>]| if lines.is_empty() { 0 } else { lines.len() as u16 + 1 };
    let window = window_lines(state);
    let areas: [Rect; 6] = Layout::vertical([
        Constraint::Length(window.len() as u16),
        Constraint::Length(height(&sessions)),
        Constraint::Fill(1),
        Constraint::Length(height(&build)),
        Constraint::Length(message_height(state, frame.area().width)),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(window), areas[0]);
    frame.render_widget(Paragraph::new(sessions).block(titled("debug sessions")), areas[1]);
    draw_events(frame, state, areas[2]);
    frame.render_widget(Paragraph::new(build).block(titled("the build has failed")), areas[3]);
    frame.render_widget(message(state), areas[4]);
    frame.render_widget(key_line(state), areas[5]);
}

fn titled(title: &str) -> Block<'static> {
    Block::new().borders(Borders::TOP).border_style(Style::new().dark_gray()).title(format!(" {title} "))
}

fn window_lines(state: &WatchState) -> Vec<Line<'static>> {
    let name = format!("tether {}  ", escape_line(&state.workspace)).bold();
    let Some(window) = &state.window else { return vec![Line::from(name)] };
    let first = Span::from(escape_line(&window_line(window)));
    let first = if window.stale || window.exit.is_some() { first.yellow() } else { first.green() };
    let notes = window.notes.iter().map(|note| Line::from(format!("  note: {}", escape_line(note))));
    [Line::from(vec![name, first])].into_iter().chain(notes.take(3)).collect()
}

fn session_lines(state: &WatchState) -> Vec<Line<'static>> {
    let text = |session| escape_line(session_text(session).lines().next().unwrap_or_default());
    let shown = state.sessions.iter().take(MAX_SESSIONS).map(|session| Line::from(text(session)));
    let left = state.sessions.len().saturating_sub(MAX_SESSIONS);
    shown.chain((left > 0).then(|| Line::from(format!("… and {left} more")))).collect()
}

/// The last lines: compilers say what is wrong at the end.
fn build_lines(state: &WatchState) -> Vec<Line<'static>> {
    let Some(build) = state.failed_build() else { return vec![] };
    let lines: Vec<&str> = build.tail.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(MAX_BUILD_LINES);
    lines[from..].iter().map(|line| Line::from(escape_line(line)).red()).collect()
}

fn draw_events(frame: &mut Frame<'_>, state: &WatchState, area: Rect) {
    let title = match state.scrolled {
        0 => "events".to_owned(),
        below => format!("events ({below} newer below)"),
    };
    let block = titled(&title);
    let rows = usize::from(block.inner(area).height);
    let end = state.events.len().saturating_sub(state.scrolled);
    let shown = state.events.range(end.saturating_sub(rows)..end);
    let lines = shown.map(|event| {
        let age = Span::from(format!("{:>8}  ", age_text(event.at))).dark_gray();
        let text = Span::from(event.text.clone());
        Line::from(vec![age, if event.is_bad { text.red() } else { text }])
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

fn message_text(state: &WatchState) -> (String, Style) {
    match &state.message {
        Message::None => (String::new(), Style::new()),
        Message::Busy(text) => (format!("{text} …"), Style::new().fg(Color::Cyan)),
        Message::Done(text) => (text.clone(), Style::new()),
        Message::Failed(text) => (text.clone(), Style::new().fg(Color::Red)),
    }
}

/// An error has its cause and its hint on lines of their own.
fn message_height(state: &WatchState, width: u16) -> u16 {
    let (text, _) = message_text(state);
    let rows = |line: &str| (line.chars().count() / usize::from(width.max(1)) + 1) as u16;
    text.lines().map(rows).sum::<u16>().clamp(1, 8)
}

fn message(state: &WatchState) -> Paragraph<'static> {
    let (text, style) = message_text(state);
    let lines: Vec<Line<'static>> = text.lines().map(|line| Line::from(escape_line(line))).collect();
    Paragraph::new(lines).style(style).wrap(Wrap { trim: false })
}

fn key_line(state: &WatchState) -> Line<'static> {
    if state.asks_to_stop {
        return Line::from("close the window and end all its processes?  y yes  n no").add_modifier(Modifier::BOLD);
    }
    let keys = KEYS.iter().flat_map(|(key, what)| [Span::from(*key).bold(), Span::from(format!(" {what}  "))]);
    Line::from(keys.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::api::debug::results::DebugSessionStatus;
    use crate::api::window::{BuildReport, ReportedWindowState, WindowStatus};
    use crate::frontends::cli::watch::view_state::LoggedEvent;
    use crate::vocabulary::RunState;

    fn drawn(state: &WatchState, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer();
        let rows = buffer.content().chunks(usize::from(width));
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>())
            .map(|row| row.trim_end().to_owned() + "\n")
            .collect()
    }

    fn state() -> WatchState {
        let tail = "src/a.ts:3: error \u{1b}[31mred\n".to_owned();
        let build = BuildReport { ok: false, ended_at: 1, duration_ms: 1200, tail };
        let window = WindowStatus {
            state: ReportedWindowState::Stale,
            stale: true,
            last_build: Some(build),
            ..WindowStatus::default()
        };
        let session = DebugSessionStatus {
            session_id: "d1".into(),
            name: "app.py".into(),
            state: RunState::Running,
            ..Default::default()
        };
        let events = (0..50).map(|number| LoggedEvent { at: 1, text: format!("edit: {number}.ts"), is_bad: false });
        WatchState {
            workspace: "shop".into(),
            window: Some(window),
            sessions: vec![session],
            events: events.collect(),
            ..WatchState::default()
        }
    }

    #[test]
    fn it_shows_the_window_sessions_events_the_failed_build_and_the_keys() {
        let text = drawn(&state(), 80, 20);
        for part in
            ["tether shop  the window is stale", "d1 app.py", "edit: 49.ts", "src/a.ts:3: error", "R restart", "q quit"]
        {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains('\u{1b}') && !text.contains("edit: 1.ts"), "{text}");
    }

    #[test]
    fn older_events_are_scrolled_to_and_a_stop_is_asked_about() {
        let mut state = state();
        state.scroll(48);
        state.asks_to_stop = true;
        let text = drawn(&state, 80, 20);
        assert!(
            text.contains("edit: 1.ts") && text.contains("48 newer below") && !text.contains("edit: 49.ts"),
            "{text}"
        );
        assert!(text.contains("y yes  n no") && !text.contains("R restart"), "{text}");
    }

    #[test]
    fn a_terminal_of_any_size_is_drawn_to() {
        let mut state = state();
        state.message =
            Message::Failed("cannot start the window\nbecause: it is not trusted\nhint: `tether trust`".into());
        for (width, height) in [(1, 1), (3, 2), (20, 5), (200, 60)] {
            drawn(&state, width, height);
        }
        assert!(drawn(&state, 80, 30).contains("because: it is not trusted"));
    }
}
