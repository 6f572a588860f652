//! The page tools as an agent has them: over relaunches, in a real VS Code, and beside another server of such tools.

mod peer_comparison;
mod ref_generations;
mod vscode_window;

use std::path::PathBuf;

/// Something that `cargo xtask tools` installs; where it must be and is not, the test fails.
fn tool(path: &str) -> Option<PathBuf> {
    let file = devtether::config::folders::data().ok()?.join("tools").join(path);
    if file.exists() {
        return Some(file);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing: run `cargo xtask tools`", file.display());
    eprintln!("SKIPPED: no {path}; `cargo xtask tools` installs it");
    None
}

fn have_chromium() -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|it| it.join("chromium").is_file());
    assert!(found || std::env::var_os("CI").is_none(), "chromium is missing: run `cargo xtask tools`");
    if !found {
        eprintln!("SKIPPED: no chromium; `cargo xtask tools` installs it");
    }
    found
}

/// The ref of the only line of a snapshot with these words.
fn find(snapshot: &str, words: &str) -> String {
    let lines: Vec<&str> = snapshot.lines().skip(1).filter(|line| line.contains(words)).collect();
    assert_eq!(lines.len(), 1, "{words:?} in:\n{snapshot}");
    lines[0].trim().split(' ').next().unwrap().to_owned()
}
