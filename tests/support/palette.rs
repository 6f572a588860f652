//! VS Code's command palette, by MCP alone.

use serde_json::{Value, json};

use crate::support::mcp_client::{McpClient, text};

/// Asks until the answer has these words.
pub async fn until(agent: &McpClient, tool: &str, arguments: Value, words: &str) -> String {
    let since = std::time::Instant::now();
    loop {
        let told = text(&agent.ask(tool, arguments.clone()).await);
        if told.contains(words) {
            return told;
        }
        assert!(since.elapsed().as_secs() < 60, "{words:?} is not in {told}");
    }
}

/// Types a command into the palette; the ref of its row, once the palette shows it. A workbench that is still coming up
/// loses keys, or closes the palette again: then as a user would, once more.
pub async fn choose_in_palette(agent: &McpClient, command: &str) -> String {
    let open = json!({"actions": [
        {"do": "press", "keys": "Escape"}, {"do": "press", "keys": "F1"},
        {"do": "wait", "text": "Type the name of a command"}, {"do": "type", "text": command},
        // What was typed is on the page before the row is.
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

/// Runs a command by the palette until the page shows `words`: a row that is clicked while the palette is drawn anew
/// does nothing.
pub async fn run_in_palette(agent: &McpClient, command: &str, words: &str) {
    for _ in 0..6 {
        let row = choose_in_palette(agent, command).await;
        let run = json!({"actions": [
            {"do": "click", "ref": row}, {"do": "wait", "text": words, "timeoutMs": 15000},
        ]});
        if agent.ask("window_input", run).await.is_error != Some(true) {
            return;
        }
    }
    panic!("{command} never shows {words:?}");
}
