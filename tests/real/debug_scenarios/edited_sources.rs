//! A source that is edited while its program is stopped: what is shown is what runs.

use serde_json::Value;

use crate::support::scenario_sandbox::ScenarioSandbox;

/// How many lines an edit adds at the top of a file.
const EDITED_LINES: usize = 11;

/// The marked line of a source, and its note.
fn marked(source: &Value) -> (&str, &str) {
    let text = source["text"].as_str().unwrap_or_else(|| panic!("{source:#}"));
    let line = text.lines().find(|line| line.starts_with('→')).unwrap_or_else(|| panic!("{source:#}"));
    (line, source["note"].as_str().unwrap_or_default())
}

/// The program `main` calls the function in the sandbox's file.
fn edit_while_stopped(stage: &ScenarioSandbox, main: &str, caller: &str) {
    let text = std::fs::read_to_string(stage.sandbox.workspace.join(stage.file)).unwrap();
    stage.sandbox.write(main, caller);
    stage.breaks("STOP");
    let stopped = stage.json(&["debug", "launch", main, "--wait", "60"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "STOP");
    let (line, note) = marked(&stopped["snapshot"]["source"]);
    assert!(line.ends_with("STOP") && note.is_empty(), "{stopped:#}");

    // Both files are written anew: that of the stop, and that of its caller.
    let edited = |text: &str| format!("{}{text}", "\n".repeat(EDITED_LINES));
    stage.sandbox.write(stage.file, &edited(&text));
    stage.sandbox.write(main, &edited(caller));
    let stepped = stage.json(&["debug", "step", "over", "--wait", "60"]);
    let (line, note) = marked(&stepped["snapshot"]["source"]);
    assert!(line.ends_with("NEXT"), "{stepped:#}");
    let id = stopped["sessionId"].as_str().unwrap();
    assert!(note.starts_with(&format!("the file has changed since {id} loaded it")), "{stepped:#}");
    let (line, note) = (line.to_owned(), note.to_owned());
    for words in [&["debug", "source"][..], &["debug", "source", &format!("{}:{}", stage.file, stage.line("NEXT"))]] {
        let source = stage.json(words);
        assert_eq!(marked(&source), (line.as_str(), note.as_str()), "{words:?}");
    }
    let text_shown = stage.sandbox.tether(&["debug", "source"]).ok().stdout;
    assert!(text_shown.contains(&format!("note: {note}")), "{text_shown}");

    // The caller's file was seen in the stack before it was edited.
    let out = stage.json(&["debug", "step", "out", "--wait", "60"]);
    let (line, note) = marked(&out["snapshot"]["source"]);
    assert!(line.ends_with("CALL") && note.contains("has changed since"), "{out:#}");

    // The next session runs the new text.
    stage.json(&["debug", "stop"]);
    stage.json(&["break", "remove", "--all"]);
    let at = format!("{}:{}", stage.file, stage.line("STOP") + EDITED_LINES as u64);
    let again = stage.json(&["debug", "launch", main, "--break", &at, "--wait", "60"]);
    let (line, note) = marked(&again["snapshot"]["source"]);
    assert!(line.ends_with("STOP") && note.is_empty(), "{again:#}");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn debugpy_shows_the_lines_that_run_and_not_the_edited_ones() {
    let text = "def total(order):\n    amount = order * 2  # STOP\n    return amount  # NEXT\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "orders.py", text) else { return };
    edit_while_stopped(&stage, "app.py", "import orders\n\nprint(orders.total(21))  # CALL\nprint('end')\n");
}

#[test]
fn js_debug_shows_the_lines_that_run_and_not_the_edited_ones() {
    let text = "exports.total = (order) => {\n  const amount = order * 2; // STOP\n  return amount; // NEXT\n};\n";
    let Some(stage) = ScenarioSandbox::with("js-debug", "orders.js", text) else { return };
    let main = "const { total } = require('./orders.js');\nconst amount = total(21);\nconsole.log(amount); // CALL\n";
    edit_while_stopped(&stage, "app.js", main);
}

#[test]
fn a_file_that_was_edited_before_it_was_seen_is_not_taken_for_what_runs() {
    let text = "import time\nprint('up', flush=True)\nwhile True:\n    time.sleep(0.01)  # SPIN\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "spins.py", text) else { return };
    stage.json(&["debug", "launch", "spins.py"]);
    crate::support::eventually("output", || {
        stage.json(&["debug", "output"])["entries"].to_string().contains("up").then_some(())
    });
    stage.sandbox.write("spins.py", &format!("# new\n{text}"));
    let paused = stage.json(&["debug", "pause"]);
    let note = marked(&paused["snapshot"]["source"]).1;
    assert!(note.ends_with("what runs may be an earlier text of it"), "{paused:#}");
    stage.json(&["debug", "stop"]);
}
