//! Which process is attached to; whose process listens on a local port: our user's, unless the caller has named the host.
//!
//! Another user of the machine may listen on a port that none of our programs has taken: their process would see breakpoints and
//! expressions, and send whatever it likes. Does not depend on any adapter.

use std::time::Duration;

use serde_json::Value;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_base::sync::run_blocking;
use tether_dap::types::Fields;
use tokio::net::lookup_host;
use tokio::time::timeout;

use tether_process::{Process, foreign_listener};

use super::debug_target::{Address, DebugTarget, DebugTargetKind};

/// For the host name of an address to be resolved.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
/// The fields of launch.json configurations with a port, and with the host that goes with it.
const PORT_FIELDS: &[(&str, &[&str])] =
    &[("port", &["host", "address", "hostName", "hostname"]), ("gdb-remote-port", &["gdb-remote-hostname"])];
/// The fields with `HOST:PORT`, a port alone, or a URL with both.
const ADDRESS_FIELDS: &[&str] = &["debugPort", "miDebuggerServerAddress", "websocketAddress"];

/// Errors: a local port that the target is attached to is listened on by another user's process. A port without a listener
/// passes: connecting to it fails.
pub async fn verify_target_listener(target: &DebugTarget) -> Result<()> {
    if target.is_host_named {
        return Ok(());
    }
    for Address { host, port } in attach_addresses(target) {
        // A name that is not resolved cannot be connected to either.
        let Ok(Ok(found)) = timeout(RESOLVE_TIMEOUT, lookup_host((host.as_str(), port))).await else { continue };
        for address in found {
            if let Some(foreign) = foreign_listener(address).doing(|| format!("cannot attach to {address}"))? {
                let hint = format!(
                    "start your own program on another port; to attach to theirs nevertheless, name the host: `tether debug \
                     attach {port} --host {host}`"
                );
                return Err(Error::new(ErrorKind::Other, format!("cannot attach to {host}:{port}"))
                    .because(foreign)
                    .hint(hint));
            }
        }
    }
    Ok(())
}

/// The process that is attached to. `None`: it is on another machine, not ours, or not named.
pub async fn find_attached_process(target: &DebugTarget) -> Option<Process> {
    let by_field = || u32::try_from(target.fields.get("processId")?.as_u64()?).ok();
    let pid = match target.kind {
        DebugTargetKind::Pid(pid) => Some(pid),
        DebugTargetKind::Configuration if target.is_attach() => by_field(),
        _ => None,
    };
    if let Some(pid) = pid {
        return Process::open(pid).ok();
    }
    let Address { host, port } = attach_addresses(target).into_iter().next()?;
    run_blocking(move || tether_process::find_listening_program(&host, port)).await
}

/// The addresses that an attach request names.
fn attach_addresses(target: &DebugTarget) -> Vec<Address> {
    match &target.kind {
        DebugTargetKind::Listener(address) => vec![address.clone()],
        DebugTargetKind::Page { port, .. } => vec![Address::loopback(*port)],
        DebugTargetKind::Configuration if target.is_attach() => configured_addresses(&target.fields),
        // cppdbg attaches to a stub with a `launch` request.
        DebugTargetKind::Configuration => {
            target.fields.get("miDebuggerServerAddress").and_then(parse_address).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn configured_addresses(fields: &Fields) -> Vec<Address> {
    let inner = fields.get("connect").and_then(Value::as_object).into_iter();
    let pairs = inner.chain([fields]).flat_map(|fields| {
        PORT_FIELDS.iter().filter_map(|(port, hosts)| {
            let host = hosts.iter().find_map(|name| fields.get(*name)?.as_str()).unwrap_or("127.0.0.1");
            Some(Address { host: host.to_owned(), port: parse_port(fields.get(*port)?)? })
        })
    });
    pairs.chain(ADDRESS_FIELDS.iter().filter_map(|name| parse_address(fields.get(*name)?))).collect()
}

fn parse_port(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|port| port.try_into().ok()).or_else(|| value.as_str()?.trim().parse().ok())
}

/// `12345`, `host:12345`, or a URL with both.
fn parse_address(value: &Value) -> Option<Address> {
    if let Some(port) = parse_port(value) {
        return Some(Address::loopback(port));
    }
    let text = value.as_str()?;
    let authority = text.split_once("://").map_or(text, |(_, rest)| rest).split('/').next()?;
    let (host, port) = authority.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(Address { host: host.to_owned(), port: port.trim().parse().ok()? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_address_of_a_configuration_is_found() {
        let check = |fields: Value, expect: &[(&str, u16)]| {
            let target = DebugTarget { fields: serde_json::from_value(fields).unwrap(), ..DebugTarget::default() };
            let found = attach_addresses(&target);
            let found: Vec<(&str, u16)> = found.iter().map(|it| (it.host.as_str(), it.port)).collect();
            assert_eq!(found, expect, "{:?}", target.fields);
        };
        check(json!({"request": "attach", "connect": {"host": "localhost", "port": 5678}}), &[("localhost", 5678)]);
        check(json!({"request": "attach", "port": "9229"}), &[("127.0.0.1", 9229)]);
        check(json!({"request": "attach", "address": "::1", "port": 9229}), &[("::1", 9229)]);
        check(json!({"request": "attach", "debugPort": "localhost:12345"}), &[("localhost", 12345)]);
        check(json!({"request": "attach", "debugPort": "12345"}), &[("127.0.0.1", 12345)]);
        check(json!({"request": "attach", "websocketAddress": "ws://[::1]:7/x"}), &[("::1", 7)]);
        check(json!({"request": "attach", "gdb-remote-port": 7, "gdb-remote-hostname": "a"}), &[("a", 7)]);
        check(json!({"request": "attach", "processId": 7}), &[]);
        check(json!({"request": "launch", "port": 9229}), &[]);
        check(json!({"request": "launch", "miDebuggerServerAddress": "localhost:7"}), &[("localhost", 7)]);
    }
}
