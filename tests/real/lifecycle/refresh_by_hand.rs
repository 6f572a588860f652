//! "Restart Extension Host" and "Reload Window" in the window itself: noticed, proven, followed. One that has crashed is not
//! started again by VS Code while an extension is under development.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::VERSION;
use super::refresh::{after_edit, extension, extension_hosts, started_extension};
use crate::support::requirements::installed_adapter;
use crate::support::{Sandbox, eventually, kill};

/// What the workbench's own command does: it has no other way in a browser.
const RESTART_HOST: &str = "globalThis[Symbol.for('devtether.workbench')].restartExtensionHosts('by hand')";

/// The status of the first generation after this one.
fn next_generation(sandbox: &Sandbox, before: &Value) -> Value {
    let generation = before["generation"].as_u64().unwrap();
    eventually("the next generation", || {
        Some(sandbox.status()).filter(|it| it["generation"].as_u64() > Some(generation))
    })
}

/// Asserts that the status, the session file and the new host's process agree.
fn is_followed(sandbox: &Sandbox, before: &Value, hosts_before: &[u32]) {
    let after = next_generation(sandbox, before);
    assert_eq!((&after["pid"], &after["state"]), (&before["pid"], &json!("ready")), "{after:#}");
    assert!(after["notes"].to_string().contains("not by tether"), "{after:#}");
    let session = sandbox.session().unwrap();
    let recorded = (&session["inspectorPort"], &session["debugWindowStartedAt"]);
    assert_eq!(recorded, (&after["inspectorPort"], &after["startedAt"]));
    let hosts = eventually("one extension host is left", || {
        let hosts = extension_hosts(sandbox);
        (hosts.len() == 1).then_some(hosts)
    });
    assert!(!hosts_before.contains(&hosts[0]));
}

#[test]
fn a_host_that_is_restarted_or_reloaded_is_followed() {
    let Some(sandbox) = started_extension() else { return };
    for (what, by_hand) in [("Restart Extension Host", RESTART_HOST), ("Reload Window", "location.reload()")] {
        eprintln!("{what}");
        let (before, hosts) = (sandbox.status(), extension_hosts(&sandbox));
        // The reload may end it.
        eprintln!("it answers {:?}", sandbox.tether(&["evaluate", by_hand]));
        is_followed(&sandbox, &before, &hosts);
        assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], "0");
    }
    // The next edit is taken up as before.
    assert_eq!(after_edit(&sandbox, "extension.js", &extension("1", "")), (json!("1"), json!("restartExtensionHost")));
}

#[test]
fn a_host_that_has_crashed_is_reported_and_the_next_edit_starts_another() {
    let Some(sandbox) = started_extension() else { return };
    for round in 1..=3 {
        kill(extension_hosts(&sandbox)[0], rustix::process::Signal::KILL);
        let is_reported = |answer: Value| answer["notes"].to_string().contains("the extension host has ended");
        eventually("its end is noticed", || is_reported(sandbox.status()).then_some(()));
        let began = Instant::now();
        assert!(is_reported(sandbox.json(&["evaluate", "1"])));
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        let round = round.to_string();
        let refreshed = after_edit(&sandbox, "extension.js", &extension(&round, ""));
        assert_eq!(refreshed, (json!(round), json!("restartExtensionHost")));
        assert!(!sandbox.json(&["evaluate", "1"]).to_string().contains("has ended"));
    }
}

#[test]
fn a_session_follows_a_host_that_was_restarted_by_hand_and_stops_in_activate() {
    if installed_adapter("js-debug").is_none() {
        return;
    }
    let Some(sandbox) = started_extension() else { return };
    let attached = sandbox.json(&["debug", "attach", "--window", "extension-host"]);
    let session = attached["sessionId"].as_str().unwrap();
    let line = extension("0", "").lines().position(|line| line.contains("item.show()")).unwrap() + 1;
    sandbox.json(&["break", "set", &format!("extension.js:{line}")]);
    for _ in 0..3 {
        let before = sandbox.status();
        sandbox.json(&["evaluate", RESTART_HOST]);
        next_generation(&sandbox, &before);
        let stopped = sandbox.json(&["debug", "wait", "60"]);
        let at = &stopped["stopReason"]["location"]["lineNumber"];
        assert_eq!((&stopped["sessionId"], at), (&json!(session), &json!(line)), "{stopped:#}");
        sandbox.json(&["debug", "continue"]);
        assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], "0");
    }
}
