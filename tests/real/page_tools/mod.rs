//! The page tools over MCP: over relaunches, in a real VS Code, and compared with another MCP server.

mod emulation;
mod extension_loading;
mod frames_and_forms;
mod hostile_page;
mod network_requests;
mod page_fixture;
mod peer_comparison;
mod peer_tools;
mod profiles;
mod ref_generations;
mod storage;
mod tabs;
mod test_site;
mod vscode_window;
mod window_bridge;

/// The ref of the one line of a snapshot with these words.
fn find(snapshot: &str, words: &str) -> String {
    let lines: Vec<&str> = snapshot.lines().skip(1).filter(|line| line.contains(words)).collect();
    assert_eq!(lines.len(), 1, "{words:?} in:\n{snapshot}");
    lines[0].trim().split(' ').next().unwrap().to_owned()
}
