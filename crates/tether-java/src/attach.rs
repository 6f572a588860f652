//! A connection to a program that runs: to its port, or to its process, whose port is found by the agent of its command line
//! and the sockets that it listens on.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::run_blocking;
use tether_jdwp::{JdwpClient, JdwpDriver, JdwpEvents};
use tether_process::{Process, foreign_listener};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::launch_arguments::AttachPlace;

/// How the agent begins on a command line.
const AGENTS: [&str; 2] = ["-agentlib:jdwp=", "-Xrunjdwp:"];
/// The variables that add to the command line.
const OPTION_VARIABLES: [&str; 3] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];

/// How long each of several ports may take to answer: one may be that of a service, which waits for more.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a host may take to accept a connection: one that does not exist would be asked for minutes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An open connection to a virtual machine.
pub(crate) type OpenedVm = (JdwpClient, JdwpEvents, JdwpDriver);

/// The process that is attached to. `None`: it is on another machine, or not ours.
pub(crate) async fn find_attached_process(place: &AttachPlace) -> Option<Process> {
    match place.clone() {
        AttachPlace::Process(pid) => Process::open(pid).ok(),
        AttachPlace::Port { host, port } => {
            run_blocking(move || tether_process::find_listening_program(&host, port)).await
        }
    }
}

/// Opens a connection to a virtual machine that waits for its debugger. Errors: there is none, or it is another user's and
/// its host was not named.
pub(crate) async fn open_attached(place: &AttachPlace, is_host_named: bool) -> Result<OpenedVm> {
    let (host, ports, what) = match place {
        AttachPlace::Port { host, port } => (host.as_str(), vec![*port], format!("{host}:{port}")),
        AttachPlace::Process(pid) => ("127.0.0.1", find_debug_ports(*pid)?, format!("process {pid}")),
    };
    let mut reason = String::new();
    for port in &ports {
        let opened = open_port(host, *port, is_host_named);
        let opened = match ports.len() {
            1 => opened.await,
            _ => timeout(ANSWER_TIMEOUT, opened).await.unwrap_or_else(|_| Err("it does not answer".to_owned())),
        };
        match opened {
            Ok(opened) => return Ok(opened),
            Err(cause) => reason = cause,
        }
    }
    let occupied = "a virtual machine takes one debugger at a time: `tether debug status` shows our sessions";
    let hint = "a Java program that can be attached to is started with \
                `-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0`, and prints its port";
    Err(Error::other(format!("cannot attach to {what}")).because(reason).hint(occupied).hint(hint))
}

async fn open_port(host: &str, port: u16, is_host_named: bool) -> Result<OpenedVm, String> {
    let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect((host, port))).await;
    let connected = connected.map_err(|_| {
        let within = humantime::format_duration(CONNECT_TIMEOUT);
        format!("the host has not accepted the connection within {within}")
    })?;
    let stream = connected.map_err(|cause| cause.to_string())?;
    if let (false, Ok(peer)) = (is_host_named, stream.peer_addr())
        && let Some(foreign) = foreign_listener(peer).map_err(|cause| cause.to_string())?
    {
        return Err(foreign);
    }
    JdwpClient::open_tcp(stream).await.map_err(|error| error.to_string())
}

/// What the agent was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AgentOptions {
    /// Whether it waits for a debugger, and does not connect to one.
    is_server: bool,
    /// 0: any.
    port: u16,
}

impl AgentOptions {
    /// `transport=dt_socket,server=y,address=127.0.0.1:0`
    fn parse(text: &str) -> AgentOptions {
        let value = |name: &str| text.split(',').find_map(|option| option.trim().strip_prefix(name)?.strip_prefix('='));
        let port = value("address").and_then(|address| address.rsplit(':').next()?.parse().ok());
        AgentOptions { is_server: value("server") == Some("y"), port: port.unwrap_or(0) }
    }

    fn find<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<AgentOptions> {
        let found = words.into_iter().find_map(|word| AGENTS.iter().find_map(|agent| word.strip_prefix(agent)));
        found.map(AgentOptions::parse)
    }
}

/// The ports on which a process may wait for a debugger, the likeliest first; at least one. Errors: it waits for none.
fn find_debug_ports(pid: u32) -> Result<Vec<u16>> {
    let failed = |cause: String| Error::other(format!("cannot attach to process {pid}")).because(cause);
    let unreadable = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound => Error::new(ErrorKind::NotFound, format!("cannot attach to process {pid}"))
            .because("there is no such process"),
        _ => failed(format!("its command line and its sockets cannot be read: {cause}")),
    };
    let command = tether_process::read_arguments(pid).map_err(unreadable)?;
    let variables = tether_process::read_environment_values(pid, OPTION_VARIABLES).map_err(unreadable)?;
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let words: Vec<String> = command.iter().map(text).collect();
    let added: Vec<String> = variables.iter().flatten().map(text).collect();
    let all = words.iter().map(String::as_str).chain(added.iter().flat_map(|line| line.split_whitespace()));
    let Some(agent) = AgentOptions::find(all) else {
        return Err(failed("it was not started for a debugger".to_owned()).hint(
            "start it with `java -agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0 …`, \
             or let `tether debug launch` start it",
        ));
    };
    if !agent.is_server {
        return Err(failed("it was started with `server=n`: it connects to its debugger itself".to_owned())
            .hint("start it with `server=y`"));
    }
    let mut ports = tether_process::list_ports_of(pid).map_err(unreadable)?;
    if agent.port != 0 {
        ports.retain(|port| *port == agent.port);
    }
    if ports.is_empty() {
        let error = failed("it listens for no debugger now: a virtual machine takes one debugger at a time".to_owned());
        return Err(error.hint("`tether debug status` shows our sessions; another debugger must leave first"));
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_found_among_the_words_of_a_command_line() {
        let check = |words: &[&str], expect: Option<(bool, u16)>| {
            let found = AgentOptions::find(words.iter().copied());
            assert_eq!(found, expect.map(|(is_server, port)| AgentOptions { is_server, port }), "{words:?}");
        };
        check(&["java", "-agentlib:jdwp=transport=dt_socket,server=y,address=*:5005", "App"], Some((true, 5005)));
        check(&["java", "-Xrunjdwp:transport=dt_socket,address=8000,server=y"], Some((true, 8000)));
        check(&["java", "-agentlib:jdwp=transport=dt_socket,server=n,address=h:1"], Some((false, 1)));
        check(&["java", "-agentlib:jdwp=transport=dt_socket,server=y"], Some((true, 0)));
        check(&["java", "-agentlib:hprof", "App"], None);
    }

    #[test]
    fn a_process_that_is_no_java_program_waits_for_no_debugger() {
        let error = find_debug_ports(std::process::id()).unwrap_err();
        assert!(error.causes().join(" ").contains("not started for a debugger"), "{error}");
        assert!(!error.hints.is_empty());
        assert_eq!(find_debug_ports(u32::MAX).unwrap_err().kind, ErrorKind::NotFound);
    }
}
