//! What can be known of a launch before it: its settings are complete, its programs can be run, and its port is free.
//!
//! Starts and writes nothing. It is checked while the window that is to be replaced still runs.

use std::ffi::OsStr;
use std::path::Path;

use rustix::fs::{Access, access};
use tether_base::error::{Error, ErrorKind, Result};
use tether_process::Process;

use super::attempt::WindowLaunchPlan;
use super::browser::{self, EMPTY_PAGE, find_browser};
use super::desktop_extension_host::{self, find_desktop_vscode, find_launcher};
use super::extension_host_args::ExtensionHostArgs;
use super::missing_kind;
use super::node::{find_node, find_script, fixed_inspector_port};
use super::web_extension_host::find_server_programs;
use crate::config::WindowKind;
use crate::window::identity::verify_tree_port;

/// Errors: the launch would fail. `old` is the main process of the window that ends before it, whose port is free then. Reads
/// files and `/proc`, on the calling thread.
pub fn check_launch(plan: &WindowLaunchPlan, old: Option<&Process>) -> Result<()> {
    let settings = &plan.settings;
    let kind = settings.kind.ok_or_else(missing_kind)?;
    let cwd = plan.working_folder();
    if !cwd.is_dir() {
        return Err(Error::usage(format!("cannot start a program in {}", cwd.display()))
            .because("there is no such folder")
            .hint("correct `cwd` in launch.json, or in the [window] section of devtools.toml"));
    }
    match kind {
        WindowKind::Node => {
            find_node(plan)?;
            check_script(&find_script(plan)?)?;
            fixed_inspector_port(&settings.runtime_args).map_or(Ok(()), |port| check_port(port, old))
        }
        WindowKind::Browser => {
            browser::check_url(settings.url.as_deref().unwrap_or(EMPTY_PAGE))?;
            browser::check_args(&settings.args)?;
            find_browser(plan).map(drop)
        }
        WindowKind::Command => {
            let argv = super::custom_command::command_line(plan, 0)?;
            argv.first().map_or(Ok(()), |program| check_command(plan, program))
        }
        WindowKind::ExtensionHost if !settings.derived || find_desktop_vscode(settings, &plan.workspace).is_some() => {
            find_launcher(plan)?;
            desktop_extension_host::check_args(&ExtensionHostArgs::read(plan)?.args)
        }
        WindowKind::ExtensionHost | WindowKind::WebExtensionHost => {
            find_server_programs(plan)?;
            let args = ExtensionHostArgs::read(plan)?.args;
            // The arguments of a derived extension host are VS Code's, not the browser's.
            let is_browsers = kind == WindowKind::WebExtensionHost;
            browser::check_args(if is_browsers { &args } else { &[] })?;
            find_browser(plan).map(drop)
        }
    }
}

fn check_script(script: &Path) -> Result<()> {
    let cannot_run = || Error::usage(format!("cannot run {}", script.display()));
    // Node runs the main file of a folder that is a package.
    if script.is_dir() && !["package.json", "index.js"].iter().any(|file| script.join(file).exists()) {
        return Err(cannot_run().because("it is not a file").hint("correct `program` in launch.json or devtools.toml"));
    }
    // Not opened: a FIFO would wait for its writer.
    let readable = access(script, Access::READ_OK).map_err(std::io::Error::from);
    readable.map_err(|cause| cannot_run().because(cause).hint("make it readable, or correct `program`"))
}

/// As the operating system finds it: by its path, relative to the folder in which it runs, or on PATH.
fn check_command(plan: &WindowLaunchPlan, program: &str) -> Result<()> {
    let environment = plan.environment();
    let path = environment.get(OsStr::new("PATH")).map(std::ffi::OsString::as_os_str);
    let is_there = match program.contains('/') {
        true => tether_tools::is_program(&plan.working_folder().join(program)),
        // Without a PATH, the system has one of its own; where it is relative, only the system knows.
        false => {
            path.is_none_or(|path| std::env::split_paths(path).any(|folder| !folder.is_absolute()))
                || tether_tools::find_on_path(&[program], path).is_some()
        }
    };
    if is_there {
        return Ok(());
    }
    Err(Error::new(ErrorKind::MissingTool, format!("cannot start `{program}`"))
        .because("there is no such program")
        .hint(format!("`command -v {program}` shows whether it is on your PATH; install it, or correct `command`")))
}

fn check_port(port: u16, old: Option<&Process>) -> Result<()> {
    let is_taken = tether_process::is_listened_on(port).unwrap_or_default();
    if !is_taken || old.is_some_and(|old| verify_tree_port(old, port).is_ok()) {
        return Ok(());
    }
    let pid = tether_process::list_listeners(port).unwrap_or_default().first().copied();
    let by = pid.map(|pid| format!("by process {pid} ({})", tether_process::read_name(pid).unwrap_or_default()));
    Err(Error::other(format!("cannot open the inspector on port {port}"))
        .because(format!("the port is in use {}", by.unwrap_or_else(|| "by another user's process".to_owned())))
        .hint("end that program, or remove `--inspect` from `runtimeArgs`: tether then chooses the port itself"))
}
