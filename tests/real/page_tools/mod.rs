//! The page tools over MCP: over relaunches, in a real VS Code, and compared with another MCP server.

mod extension_loading;
mod hostile_page;
mod peer_comparison;
mod ref_generations;
mod vscode_window;

/// The ref of the one line of a snapshot with these words.
fn find(snapshot: &str, words: &str) -> String {
    let lines: Vec<&str> = snapshot.lines().skip(1).filter(|line| line.contains(words)).collect();
    assert_eq!(lines.len(), 1, "{words:?} in:\n{snapshot}");
    lines[0].trim().split(' ').next().unwrap().to_owned()
}
