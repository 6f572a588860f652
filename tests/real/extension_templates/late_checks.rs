//! A window that is fresh when its builder is done: the type checker and the linter report later.

use std::fs;

use super::{ESBUILD, generate, install, installed_tools, printed};
use crate::support::{Sandbox, eventually};

const WRONG: &str = "\nexport const wrong: number = 'text';\n";

fn notes(sandbox: &Sandbox) -> String {
    sandbox.status()["notes"].to_string()
}

/// New code with a type error is shown; the error is told when the checker has ended, and forgotten when it is mended.
fn a_type_error_is_told_later(sandbox: &Sandbox, greeting: [&str; 2]) {
    let source = fs::read_to_string(sandbox.path(ESBUILD.source)).unwrap();
    let fresh = source.replace(greeting[0], greeting[1]);
    sandbox.write(ESBUILD.source, &format!("{fresh}{WRONG}"));
    assert_eq!(printed(sandbox).0, format!("Info: {} from Hello Tether!", greeting[1]));
    assert_eq!(sandbox.status()["lastBuild"]["ok"], true);
    eventually("the type error is told", || notes(sandbox).contains("TS2322").then_some(()));
    let evaluated = sandbox.json(&["evaluate", "1"]);
    assert!(evaluated["notes"].to_string().contains("TS2322"), "{evaluated:#}");
    assert_eq!(sandbox.status()["state"], "ready");
    sandbox.write(ESBUILD.source, &fresh);
    assert_eq!(printed(sandbox).0, format!("Info: {} from Hello Tether!", greeting[1]));
    eventually("the checks have ended well", || {
        let notes = notes(sandbox);
        (!notes.contains("TS2322") && !notes.contains("still runs")).then_some(())
    });
    // What cannot be built is an error all the same.
    sandbox.write(ESBUILD.source, &format!("{fresh}\nconst = ;\n"));
    sandbox.tether(&["evaluate", "1"]).fails(4, &["ERROR"]);
    sandbox.write(ESBUILD.source, &fresh);
    assert_eq!(printed(sandbox).0, format!("Info: {} from Hello Tether!", greeting[1]));
}

#[test]
fn the_window_waits_for_the_builder_and_not_for_the_type_checker() {
    let Some(tools) = installed_tools(&ESBUILD) else { return };
    let sandbox = Sandbox::new();
    generate(&tools, &ESBUILD, &sandbox.workspace);
    install(&tools.join(ESBUILD.name), &sandbox.workspace);
    sandbox.tether(&["trust", "--yes"]).ok();
    let shown = sandbox.tether(&["start", "--print-config"]).ok().stdout;
    assert!(shown.contains("checked after it, while the window is used: `npm: watch:tsc`"), "{shown}");
    sandbox.json(&["start"]);
    a_type_error_is_told_later(&sandbox, ["Hello World", "Good day"]);
    sandbox.json(&["stop"]);
    // Without tasks, by the script `compile`, which checks and lints before it builds.
    fs::remove_dir_all(sandbox.path(".vscode")).unwrap();
    sandbox.tether(&["trust", "--yes"]).ok();
    let shown = sandbox.tether(&["start", "--print-config"]).ok().stdout;
    assert!(shown.contains("`npm run check-types`, `npm run lint`"), "{shown}");
    sandbox.json(&["start"]);
    a_type_error_is_told_later(&sandbox, ["Good day", "Good evening"]);
}
