//! Finds the inspector of a Node process, which opens one when it gets SIGUSR1.
//!
//! The signal ends a program that does not handle it. So it is sent only to a process of our user that runs Node, and that
//! catches it as the kernel says; through a pidfd, so that no other process gets it.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use futures_util::future::select_ok;
use rustix::process::Signal;
use tether_base::error::{Error, ErrorKind, Result};
use tether_cdp::{Endpoint, discover_endpoint, list_targets};
use tether_process::Process;

use super::connection::{InspectorAddress, process_name};
use super::inspector_options::denied_inspector;
use super::isolate_host::IsolateHost;

/// Where Node opens its inspector, unless it was started with another port.
const DEFAULT_PORT: u16 = 9229;
/// How long a process may take from the signal until its inspector answers.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// How often its ports are read meanwhile: nothing reports that it listens.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The options with the port at which the inspector is opened later.
const PORT_OPTIONS: [&str; 2] = ["--inspect-port", "--debug-port"];

/// Finds the inspector of a process; it is opened, if it has none. Errors: the process is another user's, or it cannot be
/// opened.
pub(crate) async fn find_process_inspector(pid: u32) -> Result<InspectorAddress> {
    let failed = |cause: String| Error::other(format!("cannot attach to process {pid}")).because(cause);
    let unreadable = |cause: io::Error| failed(format!("its sockets cannot be read: {cause}"));
    let start_ticks = verify_own_process(pid)?;
    let before = tether_process::list_ports_of(pid).map_err(unreadable)?;
    let endpoint = match find_node_endpoint(&before).await {
        Some(endpoint) => endpoint,
        None => {
            let process = Process::open(pid).ok().filter(|process| process.start_ticks() == start_ticks);
            let process = process.ok_or_else(|| failed("it cannot be signalled, or has just exited".to_owned()))?;
            open_inspector(&process, &before).await?
        }
    };
    let title = list_targets(endpoint.port).await.ok().and_then(|targets| Some(targets.into_iter().next()?.title));
    // Of a program without a file, it is `node[PID]`.
    let program = title.filter(|title| !title.ends_with(']')).unwrap_or_default();
    Ok(InspectorAddress {
        port: endpoint.port,
        path: endpoint.path,
        name: process_name(&program, pid),
        host: IsolateHost::Node,
        allows_foreign: false,
        is_launched: false,
    })
}

/// Returns when the process was started. Errors: there is none, or it is another user's.
fn verify_own_process(pid: u32) -> Result<u64> {
    let doing = || format!("cannot attach to process {pid}");
    let us = rustix::process::getuid().as_raw();
    match tether_process::read_facts(pid).ok().filter(|facts| !facts.zombie) {
        Some(facts) if facts.uid == us => Ok(facts.start_ticks),
        Some(facts) => Err(Error::other(doing()).because(format!("it is one of user {}, not of user {us}", facts.uid))),
        None => Err(Error::new(ErrorKind::NotFound, doing()).because("there is no such process")),
    }
}

/// The first of these ports at which an inspector of Node answers.
async fn find_node_endpoint(ports: &[u16]) -> Option<Endpoint> {
    let endpoints = ports.iter().map(|port| {
        Box::pin(async move {
            let found = discover_endpoint(*port).await.ok();
            found.filter(|endpoint| !endpoint.is_browser && endpoint.product.starts_with("node.js/")).ok_or(())
        })
    });
    let endpoints: Vec<_> = endpoints.collect();
    if endpoints.is_empty() {
        return None;
    }
    select_ok(endpoints).await.ok().map(|(found, _)| found)
}

/// Has a process open its inspector. Errors: the signal may end it, its port is taken, or it does not open one in time.
async fn open_inspector(process: &Process, before: &[u16]) -> Result<Endpoint> {
    let pid = process.pid();
    let failed = |cause: String| Error::other(format!("cannot attach to process {pid}")).because(cause);
    let restart = "`node --inspect=127.0.0.1:0` starts a program with an inspector on any free port";
    let port = read_inspector_port(pid);
    verify_opens_inspector(pid).map_err(|cause| failed(cause).hint(restart))?;
    let taken = |holder: String| {
        let cause = format!("Node would open its inspector on port {port}, and tries no other; {holder} listens there");
        failed(cause).hint("`process._debugEnd()` closes the inspector of a Node program").hint(restart)
    };
    if let Some(holder) = find_port_holder(port) {
        return Err(taken(holder));
    }
    // Checked last: the process that was looked at has not exited since.
    if !process.is_alive() {
        return Err(failed("it has exited".to_owned()));
    }
    process.signal(Signal::USR1).map_err(|cause| failed(format!("it cannot be signalled: {cause}")))?;
    tokio::select! {
        Some(endpoint) = poll_for_inspector(pid, before) => Ok(endpoint),
        _ = process.wait_for_exit() => Err(failed("it has exited".to_owned())),
        () = tokio::time::sleep(OPEN_TIMEOUT) => Err(match find_port_holder(port) {
            Some(holder) => taken(holder),
            None => {
                let within = humantime::format_duration(OPEN_TIMEOUT);
                let cause = format!("it has got SIGUSR1, and has not opened its inspector within {within}");
                failed(format!("{cause}: it may handle the signal itself, or be busy outside of JavaScript")).hint(restart)
            }
        }),
    }
}

/// Why the signal might end a process, or do anything else than open an inspector.
fn verify_opens_inspector(pid: u32) -> std::result::Result<(), String> {
    let unreadable = |cause: io::Error| format!("its program cannot be read: {cause}");
    let program = tether_process::program_path(pid).ok_or("its program cannot be read")?;
    let has_library =
        || tether_process::list_mapped_files(pid).map(|files| files.iter().any(|file| is_node_library(file)));
    if !tether_process::is_node_program(&program) && !has_library().map_err(unreadable)? {
        return Err(format!("it runs {}, and not Node", program.display()));
    }
    let (words, options) = read_options(pid);
    if let Some(denied) = denied_inspector(words.iter().map(String::as_str), &options) {
        return Err(denied.to_owned());
    }
    if !tether_process::catches_signal(pid, Signal::USR1).map_err(unreadable)? {
        let reason = "it does not catch SIGUSR1, by which Node opens an inspector, and which would end it: it has just been \
                      started, or with `--disable-sigusr1`";
        return Err(reason.to_owned());
    }
    Ok(())
}

/// `libnode.so.108`, where distributions have Node in a library.
fn is_node_library(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnode.so"))
}

/// Where a process opens its inspector; 0: at any free port.
fn read_inspector_port(pid: u32) -> u16 {
    let (words, options) = read_options(pid);
    parse_inspector_port(words, &options)
}

/// The command line of a process, and its `NODE_OPTIONS`; empty where they cannot be read.
fn read_options(pid: u32) -> (Vec<String>, String) {
    let words = tether_process::read_arguments(pid).unwrap_or_default();
    let options = tether_process::read_environment_value(pid, "NODE_OPTIONS").ok().flatten().unwrap_or_default();
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    (words.iter().map(text).collect(), text(&options))
}

/// By the command line, else by `NODE_OPTIONS`.
fn parse_inspector_port(mut words: Vec<String>, options: &str) -> u16 {
    words.extend(options.split_whitespace().map(str::to_owned));
    let value = words.iter().enumerate().find_map(|(at, word)| {
        let rest = PORT_OPTIONS.iter().find_map(|option| word.strip_prefix(option))?;
        if rest.is_empty() { words.get(at.saturating_add(1)).map(String::as_str) } else { rest.strip_prefix('=') }
    });
    let port = value.and_then(|value| value.rsplit(':').next()?.parse().ok());
    port.unwrap_or(DEFAULT_PORT)
}

/// Who listens on a port of the loopback.
pub(crate) fn find_port_holder(port: u16) -> Option<String> {
    let owner = tether_process::find_listener_owner(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok().flatten()?;
    let holder = tether_process::list_listeners(port).unwrap_or_default().into_iter().next();
    let name = |pid: u32| tether_process::read_name(pid).unwrap_or_default();
    Some(holder.map_or_else(|| format!("a process of user {owner}"), |pid| format!("process {pid} ({})", name(pid))))
}

/// The inspector that a process opens. `None`: its sockets cannot be read.
async fn poll_for_inspector(pid: u32, before: &[u16]) -> Option<Endpoint> {
    let mut polls = tokio::time::interval(POLL_INTERVAL);
    loop {
        polls.tick().await;
        let mut ports = tether_process::list_ports_of(pid).ok()?;
        ports.retain(|port| !before.contains(port));
        if let Some(endpoint) = find_node_endpoint(&ports).await {
            return Some(endpoint);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_library_of_node_is_known_by_its_name() {
        assert!(is_node_library(Path::new("/usr/lib/libnode.so.108")));
        assert!(!is_node_library(Path::new("/usr/lib/libnodestuff.so")));
    }

    #[test]
    fn the_port_is_the_one_of_the_options() {
        let check = |line: &str, options: &str, port: u16| {
            let words = line.split(' ').map(str::to_owned).collect();
            assert_eq!(parse_inspector_port(words, options), port, "{line} {options:?}");
        };
        check("node app.js", "", DEFAULT_PORT);
        check("node --inspect-port=0 app.js", "", 0);
        check("node --inspect-port 9300 app.js", "", 9300);
        check("node --debug-port=127.0.0.1:9301 app.js", "--inspect-port=1", 9301);
        check("node app.js", "--no-warnings --inspect-port=9302", 9302);
        check("node --inspect-port=x app.js", "", DEFAULT_PORT);
    }

    #[test]
    fn the_holder_of_a_port_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let holder = find_port_holder(listener.local_addr().unwrap().port()).unwrap();
        assert!(holder.starts_with(&format!("process {} (", std::process::id())), "{holder}");
        assert_eq!(find_port_holder(0), None);
    }

    #[tokio::test]
    async fn a_process_that_the_signal_would_end_is_refused_and_runs_on() {
        let folder = tempfile::tempdir().unwrap();
        let named_node = folder.path().join("node");
        // By another process: a file that is open for writing is not run.
        let copied = Command::new("cp").arg("/bin/sleep").arg(&named_node).status().unwrap();
        assert!(copied.success());
        let programs = [("sleep".into(), "and not Node"), (named_node, "does not catch SIGUSR1")];
        for (program, reason) in programs {
            let mut child = Command::new(program).arg("600").spawn().unwrap();
            let refused = find_process_inspector(child.id()).await.err().map(|error| error.to_string());
            let ended = child.try_wait().unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(ended, None, "{refused:?}");
            assert!(refused.as_ref().is_some_and(|refused| refused.contains(reason)), "{refused:?}");
        }
        assert_eq!(find_process_inspector(u32::MAX).await.err().unwrap().kind, ErrorKind::NotFound);
    }
}
