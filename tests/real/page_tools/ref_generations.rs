//! The lifetime of refs and cursors over relaunches and supervisor restarts.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::find;
use crate::support::requirements::has_program;

use crate::support::{Sandbox, browser, kill, wait_for_end};

fn snapshot(sandbox: &Sandbox) -> String {
    sandbox.json(&["snapshot"])["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_ref_of_an_earlier_window_or_supervisor_is_stale() {
    if !has_program("chromium") {
        return;
    }
    let sandbox = browser("<title>t</title><button onclick=\"this.textContent = 'Done'\">Go</button>");
    sandbox.json(&["start"]);
    let first = find(&snapshot(&sandbox), "\"Go\"");
    let stale = |name: &str| {
        let reported = ["stale ref: take a new snapshot", name];
        sandbox.tether(&["input", &format!("click {name}")]).fails(3, &reported);
        sandbox.tether(&["snapshot", "--ref", name]).fails(3, &reported);
        sandbox.tether(&["screenshot", "--ref", name]).fails(3, &reported);
    };
    sandbox.json(&["restart"]);
    stale(&first);
    let second = find(&snapshot(&sandbox), "\"Go\"");
    assert_ne!(first, second);

    // An edit relaunches: the input that triggers it is not done in the new window.
    sandbox.write("page.html", "<title>t</title><h1>New</h1><button>Other</button>");
    stale(&second);
    let third = find(&snapshot(&sandbox), "\"Other\"");

    // The window stays, but its refs ended with the supervisor.
    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
    stale(&third);
    let fourth = find(&snapshot(&sandbox), "\"Other\"");
    assert!(![first, second, third].contains(&fourth), "{fourth}");
    let clicked = sandbox.json(&["input", &format!("click {fourth}"), "--snapshot"]);
    assert_eq!(clicked["actions"][0]["did"], json!(format!("click {fourth}: button \"Other\"")));
    assert!(clicked["snapshot"].as_str().unwrap().contains("focused"), "{clicked}");
}

#[test]
fn a_reader_of_the_console_follows_it_over_relaunches_and_after_the_end() {
    if !has_program("chromium") {
        return;
    }
    let sandbox = browser("<title>t</title><script>console.log('hello')</script>");
    sandbox.json(&["start"]);
    let read = |since: Option<u64>| -> (Vec<String>, u64) {
        let since = since.map(|since| since.to_string());
        let mut words = vec!["console", "--limit", "1000"];
        words.extend(since.iter().flat_map(|since| ["--since", since]));
        let answer = sandbox.json(&words);
        assert_eq!((&answer["dropped"], answer.get("note")), (&json!(0), None), "{answer}");
        let text = |entry: &Value| entry["text"].as_str().unwrap().to_owned();
        (answer["entries"].as_array().unwrap().iter().map(text).collect(), answer["cursor"].as_u64().unwrap())
    };
    let say = |text: &str| sandbox.json(&["evaluate", &format!("console.log('{text}')")]);
    say("one");
    let (reported, cursor) = read(None);
    assert_eq!(reported.iter().filter(|it| *it == "hello").count(), 1, "{reported:?}");
    assert!(reported.contains(&"one".into()), "{reported:?}");
    sandbox.json(&["restart"]);
    say("two");
    let (reported, cursor) = read(Some(cursor));
    assert!(
        reported.contains(&"a window is being launched".into()) && reported.contains(&"two".into()),
        "{reported:?}"
    );
    assert!(!reported.contains(&"one".into()), "{reported:?}");
    assert!(read(Some(cursor)).0.is_empty());

    // After the window's exit its console is still readable.
    say("famous last words");
    let pid = sandbox.status()["pid"].as_u64().unwrap() as u32;
    kill(pid, Signal::KILL);
    wait_for_end(pid);
    assert!(read(Some(cursor)).0.contains(&"famous last words".into()));
    // Another supervisor starts a new history, and reports the gap.
    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
    let since = cursor.to_string();
    let answer = sandbox.json(&["console", "--since", &since]);
    assert!(answer["note"].as_str().unwrap().contains("from another supervisor"), "{answer}");
}

#[test]
fn the_command_line_names_what_it_does_not_understand() {
    let sandbox = Sandbox::new();
    sandbox.tether(&["input", "jump e1"]).fails(2, &["there is no action \"jump\""]);
    sandbox.tether(&["input"]).fails(2, &["ACTION"]);
    sandbox.tether(&["input", r#"{"do": "wait"}"#]).fails(2, &["wait needs `text`, `ref` or `timeoutMs`"]);
    sandbox.tether(&["snapshot"]).fails(3, &["there is no window", "tether start"]);
    sandbox.tether(&["console"]).ok();
}
