//! A browser is started while the window before closes; its page is loaded afterwards.

use devtether::process::{read_facts, read_ticks_since_boot};
use serde_json::json;

use crate::support::requirements::has_program;
use crate::support::{Sandbox, browser, is_alive, wait_for_end};

fn pid_of(sandbox: &Sandbox) -> u32 {
    sandbox.status()["pid"].as_u64().expect("a window").try_into().unwrap()
}

#[test]
fn a_browser_is_started_while_the_one_before_closes() {
    if !has_program("chromium") {
        return;
    }
    let sandbox = browser("<title>0</title>");
    sandbox.json(&["start"]);
    for _ in 0..5 {
        let old = pid_of(&sandbox);
        let ended = std::thread::spawn(move || {
            wait_for_end(old);
            read_ticks_since_boot()
        });
        sandbox.json(&["restart"]);
        let new = read_facts(pid_of(&sandbox)).unwrap();
        assert!(new.start_ticks < ended.join().unwrap());
        assert_eq!(sandbox.json(&["evaluate", "document.title"])["value"], "0");
    }
}

#[test]
fn what_follows_a_launch_in_the_console_is_of_the_new_page() {
    if !has_program("chromium") {
        return;
    }
    let page = |round: u32| {
        let says = format!("console.log('page {round}')");
        format!("<script>said = new Promise((done) => setInterval(() => {{ {says}; done(); }}, 10));</script>")
    };
    let sandbox = browser(&page(0));
    sandbox.json(&["start"]);
    for round in 1..=5 {
        sandbox.write("page.html", &page(round));
        sandbox.json(&["restart"]);
        let shown = sandbox.json(&["evaluate", "said"]);
        assert_eq!(shown["relaunched"], json!(null), "{shown:#}");
        let console = sandbox.json(&["console", "--limit", "1000"]);
        let texts: Vec<&str> =
            console["entries"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect();
        let launched = texts.iter().rposition(|text| *text == "a window is being launched").expect("it is recorded");
        let of_now = &texts[launched + 1..];
        assert!(!of_now.is_empty() && of_now.iter().all(|text| *text == format!("page {round}")), "{texts:#?}");
    }
}

#[test]
fn a_window_whose_successor_cannot_be_started_is_closed_all_the_same() {
    if !has_program("chromium") {
        return;
    }
    let sandbox = browser("<title>0</title>");
    sandbox.json(&["start"]);
    let old = pid_of(&sandbox);
    sandbox.write("devtools.toml", "[window]\nkind = 'browser'\nbrowser = '/nowhere/chromium'\n");
    sandbox.tether(&["trust", "--yes"]).ok();
    let failed = sandbox.tether(&["restart", "--json"]);
    assert!(failed.code != 0 && failed.stdout.contains("/nowhere/chromium"), "{failed:?}");
    assert!(!is_alive(old));
    assert_eq!((sandbox.session(), &sandbox.status()["state"]), (None, &json!("absent")));
}
