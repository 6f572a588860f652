//! A module that is edited and loaded again while its program runs: its breakpoints are where their code is in the version that
//! runs, from the first line of it on, and never stop on what is now on the old line.

use serde_json::Value;

use crate::support::scenario_sandbox::ScenarioSandbox;

/// How many lines an edit adds at the top of the module.
const ADDED_LINES: u64 = 11;

const COMMON_JS: &str = "\
const rate = 2; // TOP
exports.total = (order) => {
  const amount = order * rate; // STOP
  return amount;
};
";
const COMMON_JS_PROGRAM: &str = "\
const fs = require('node:fs');
const load = () => {
  delete require.cache[require.resolve('./orders.js')];
  return require('./orders.js');
};
let orders = load();
setInterval(() => {
  if (fs.existsSync('again')) {
    fs.rmSync('again');
    const before = orders;
    orders = load();
    before.total(1); // OLD
  }
  orders.total(21);
}, 20);
";
const ES_MODULE: &str = "\
const rate = 2; // TOP
export const total = (order) => {
  const amount = order * rate; // STOP
  return amount;
};
";
const ES_MODULE_PROGRAM: &str = "\
import fs from 'node:fs';
let version = 0;
const load = () => import(`./orders.mjs?v=${(version += 1)}`);
let orders = await load();
setInterval(async () => {
  if (fs.existsSync('again')) {
    fs.rmSync('again');
    const before = orders;
    orders = await load();
    before.total(1); // OLD
  }
  orders.total(21);
}, 20);
";

fn line_of(stop: &Value) -> u64 {
    assert_eq!(stop["stopReason"]["type"], "BREAKPOINT_HIT", "{stop:#}");
    stop["stopReason"]["location"]["lineNumber"].as_u64().unwrap_or_else(|| panic!("{stop:#}"))
}

fn reload(module: &'static str, text: &str, main: &str, program: &str) {
    let Some(stage) = ScenarioSandbox::with("node", module, text) else { return };
    stage.sandbox.write(main, program);
    let (top, inside) = (stage.line("TOP"), stage.line("STOP"));
    stage.breaks("TOP");
    stage.breaks("STOP");
    let first = stage.json(&["debug", "launch", main, "--adapter", "node", "--wait", "60"]);
    assert_eq!(line_of(&first), top);
    let continues = || stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(line_of(&continues()), inside);
    for edit in 1..=3 {
        stage.sandbox.write(module, &format!("{}{text}", "debug: 0;\n".repeat((ADDED_LINES * edit) as usize)));
        stage.sandbox.write("again", "");
        let added = ADDED_LINES * edit;
        // The interval may be on its way into the version before.
        let mut stop = continues();
        if line_of(&stop) == inside + added - ADDED_LINES {
            stop = continues();
        }
        assert_eq!(line_of(&stop), top + added, "its first line: {stop:#}");
        assert_eq!(stop["stopReason"]["details"]["hitCount"], edit + 1, "{stop:#}");
        let old = continues();
        assert_eq!(line_of(&old), inside + added - ADDED_LINES, "the function of before: {old:#}");
        assert_eq!(ScenarioSandbox::local(&old, "order"), "1");
        let new = continues();
        assert_eq!(line_of(&new), inside + added, "{new:#}");
        assert_eq!(ScenarioSandbox::local(&new, "order"), "21");
    }
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn a_module_that_is_required_anew_stops_where_its_code_is_now() {
    reload("orders.js", COMMON_JS, "main.js", COMMON_JS_PROGRAM);
}

#[test]
fn a_module_that_is_imported_anew_stops_where_its_code_is_now() {
    reload("orders.mjs", ES_MODULE, "main.mjs", ES_MODULE_PROGRAM);
}

const NEIGHBOURS: &str = "\
exports.total = (order) => {
  const amount = order + 1; // ONE
  const more = amount + 1; // TWO
  return more + 1; // THREE
};
";
const NEIGHBOURS_PROGRAM: &str = "\
const fs = require('node:fs');
const call = () => {
  delete require.cache[require.resolve('./orders.js')];
  require('./orders.js').total(21);
};
call();
setInterval(() => {
  if (fs.existsSync('again')) {
    fs.rmSync('again');
    call();
  }
}, 20);
";

/// Each breakpoint moves to the line that the next one leaves.
#[test]
fn breakpoints_on_neighbouring_lines_all_move_by_one_line() {
    let Some(stage) = ScenarioSandbox::with("node", "orders.js", NEIGHBOURS) else { return };
    stage.sandbox.write("main.js", NEIGHBOURS_PROGRAM);
    let lines = ["ONE", "TWO", "THREE"].map(|mark| {
        stage.breaks(mark);
        stage.line(mark)
    });
    let mut stop = stage.json(&["debug", "launch", "main.js", "--adapter", "node", "--wait", "60"]);
    for edit in 0..4 {
        for line in lines {
            assert_eq!(line_of(&stop), line + edit, "edit {edit}: {stop:#}");
            if line != lines[2] {
                stop = stage.json(&["debug", "continue", "--wait", "60"]);
            }
        }
        stage.sandbox.write("orders.js", &format!("{}{NEIGHBOURS}", "debug: 0;\n".repeat(edit as usize + 1)));
        stage.sandbox.write("again", "");
        stop = stage.json(&["debug", "continue", "--wait", "60"]);
    }
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}
