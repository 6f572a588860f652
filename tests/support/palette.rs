//! Drives VS Code's command palette with MCP tools only.

use serde_json::{Value, json};

use crate::support::TEST_TIMEOUT;
use crate::support::mcp_client::{McpClient, text};

/// Calls a tool until its text contains `words`; returns that text.
pub async fn until(agent: &McpClient, tool: &str, arguments: Value, words: &str) -> String {
    let since = std::time::Instant::now();
    loop {
        let reported = text(&agent.ask(tool, arguments.clone()).await);
        if reported.contains(words) {
            return reported;
        }
        if since.elapsed() >= TEST_TIMEOUT {
            let console = text(&agent.ask("window_console", json!({})).await);
            let network = text(&agent.ask("window_network", json!({})).await);
            panic!("{words:?} is not in {reported}\n{console}\n{network}");
        }
    }
}

/// Types a command into the palette and returns the ref of its row. A workbench that is still starting loses keys or
/// closes the palette; the input is then repeated.
pub async fn choose_in_palette(agent: &McpClient, command: &str) -> String {
    let open = json!({"actions": [
        {"do": "press", "keys": "Escape"}, {"do": "press", "keys": "F1"},
        {"do": "wait", "text": "Type the name of a command"}, {"do": "type", "text": command},
        // The typed text is on the page before the row is.
        {"do": "wait", "text": format!("{command}, "), "timeoutMs": 1000},
    ]});
    let row = format!("option \"{command}");
    for _ in 0..20 {
        agent.ask("window_input", open.clone()).await;
        let shown = text(&agent.ask("window_snapshot", json!({})).await);
        if let Some(line) = shown.lines().find(|line| line.contains(&row)) {
            return line.split_whitespace().next().unwrap().to_owned();
        }
    }
    panic!("the palette never shows {command}");
}

/// Runs a command from the palette until the page shows `words`: a click on a row during a redraw of the palette
/// has no effect.
pub async fn run_in_palette(agent: &McpClient, command: &str, words: &str) {
    for _ in 0..6 {
        let row = choose_in_palette(agent, command).await;
        let run = json!({"actions": [
            {"do": "click", "ref": row}, {"do": "wait", "text": words, "timeoutMs": 30000},
        ]});
        if agent.ask("window_input", run).await.is_error != Some(true) {
            return;
        }
    }
    let shown = text(&agent.ask("window_snapshot", json!({"max": 200_000})).await);
    panic!("{command} never shows {words:?}, but {shown}");
}
