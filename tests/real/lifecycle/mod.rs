//! The lifecycle scenarios of the design: front ends and supervisors restart, the window stays.
//!
//! The real `tether`, a real MCP client on its stdio, real windows.

mod closed_page;
mod dev_server;
mod host_environment;
mod killed_processes;
mod lifecycle_scenarios;
mod notifications;
pub mod panicking_host;
pub mod panicking_supervisor;
mod process_exits;
mod random_kills;
mod refresh;
mod refresh_breakpoints;
mod refresh_by_hand;
mod refresh_faults;
mod relaunch;
mod slow_first_page;
mod spare_hosts;
mod vscode_as_client;
pub mod web_projects;

/// Evaluated in the page of an extension that shows `version:…` in the status bar: resolves to it, once it is there.
const VERSION: &str = r#"new Promise(found => {
    const look = () => {
        const item = [...document.querySelectorAll(".statusbar-item")].find(it => it.textContent.includes("version:"));
        if (item) { watch.disconnect(); found(item.textContent.split("version:")[1].trim()); }
    };
    const watch = new MutationObserver(look);
    watch.observe(document.body, { childList: true, subtree: true, characterData: true });
    look();
})"#;
