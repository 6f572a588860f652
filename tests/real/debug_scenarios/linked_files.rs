//! Files that the user names over a link are shown by the user's name, with where it leads to beside it.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::scenario_sandbox::found;

const APP: &str = "\
import os, sys
sys.path.insert(0, os.path.realpath('libs/shop'))
import price

print(price.total(3))  # CALL
if len(sys.argv) > 9:
    print('never')  # NEVER
";
const PRICE: &str = "\
def total(order):
    result = order * 2  # STOP
    return result
";

struct Linked {
    sandbox: Sandbox,
    elsewhere: tempfile::TempDir,
}

/// `linked` leads to `real` with the program, `libs/shop` to a folder elsewhere with its module.
fn linked() -> Option<Linked> {
    found("debugpy")?;
    let sandbox = Sandbox::with(&[("real/app.py", APP), ("libs/none.py", "")]);
    let elsewhere = tempfile::Builder::new().prefix("tether elsewhere ").tempdir().unwrap();
    std::fs::write(elsewhere.path().join("price.py"), PRICE).unwrap();
    symlink("real", sandbox.path("linked")).unwrap();
    symlink(elsewhere.path(), sandbox.path("libs/shop")).unwrap();
    Some(Linked { sandbox, elsewhere })
}

fn real_price(linked: &Linked) -> String {
    linked.elsewhere.path().canonicalize().unwrap().join("price.py").to_string_lossy().into_owned()
}

#[test]
fn breakpoints_stops_and_reasons_have_the_users_names() {
    let Some(linked) = linked() else { return };
    let (sandbox, price) = (&linked.sandbox, real_price(&linked));
    let text = |arguments: &[&str]| sandbox.tether(arguments).ok().stdout;
    let set = text(&["break", "set", "linked/app.py:5"]);
    assert!(set.starts_with("breakpoint 1 at linked/app.py:5 (links to real/app.py): pending"), "{set}");
    let set = sandbox.json(&["break", "set", "libs/shop/price.py:2"]);
    assert_eq!((&set["file"], &set["realPath"]), (&json!("libs/shop/price.py"), &json!(price)));
    sandbox.json(&["break", "set", "linked/app.py:7"]);

    let stop = sandbox.json(&["debug", "launch", "linked/app.py", "--wait", "60"]);
    let names = |it: &Value, file: &str| (it[file].clone(), it["realPath"].clone());
    let app = (json!("linked/app.py"), json!("real/app.py"));
    assert_eq!(names(&stop["stopReason"]["location"], "sourcePath"), app, "{stop}");
    assert_eq!(stop["stopReason"]["details"]["breakpointId"], 1);
    assert_eq!(stop["snapshot"]["source"]["file"], "linked/app.py");
    assert_eq!(names(&stop["snapshot"]["frames"][0], "file"), app);
    let stopped = text(&["debug", "continue", "--wait", "60"]);
    let words = format!("breakpoint 2 at libs/shop/price.py:2 (links to {price}) in total()");
    assert!(stopped.contains(&words), "{stopped}");
    let stack = &sandbox.json(&["debug", "stack"])["frames"];
    assert_eq!(names(&stack[0], "file"), (json!("libs/shop/price.py"), json!(price)));
    assert_eq!(names(&stack[1], "file"), app);
    let status = sandbox.json(&["debug", "status"]);
    assert_eq!(names(&status["stopReason"]["location"], "sourcePath").0, "libs/shop/price.py");
    // What the stop names can be read.
    let source = text(&["debug", "source", "libs/shop/price.py:2"]);
    assert!(source.contains("STOP"), "{source}");

    let listed = sandbox.json(&["break", "list"])["breakpoints"].clone();
    let files: Vec<&Value> = listed.as_array().unwrap().iter().map(|it| &it["file"]).collect();
    assert_eq!(files, ["linked/app.py", "libs/shop/price.py", "linked/app.py"]);
    assert_eq!(listed[0]["hitCount"], 1, "{listed}");
    let ended = sandbox.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(names(&ended["notReached"][0], "place"), (json!("linked/app.py:7"), json!("real/app.py")), "{ended}");
    assert_eq!(ended["notReached"].as_array().unwrap().len(), 1);

    // Named by its other path, it is the same breakpoint.
    let set = sandbox.json(&["break", "set", "real/app.py:5"]);
    assert_eq!(
        (&set["breakpointId"], &set["file"], &set["realPath"]),
        (&json!(1), &json!("real/app.py"), &Value::Null)
    );
    sandbox.json(&["break", "remove", "--file", "linked/app.py"]);
    assert_eq!(sandbox.json(&["break", "list"])["breakpoints"].as_array().unwrap().len(), 1);
}

/// No breakpoint names the file: the link in the workspace does.
#[test]
fn a_stop_below_a_link_of_the_workspace_has_the_name_of_the_link() {
    let Some(linked) = linked() else { return };
    let sandbox = &linked.sandbox;
    sandbox.json(&["break", "set", "real/app.py:5"]);
    sandbox.json(&["debug", "launch", "real/app.py", "--wait", "60"]);
    let step = sandbox.json(&["debug", "step", "into"]);
    let location = &step["stopReason"]["location"];
    let price = real_price(&linked);
    let expect = (&json!("libs/shop/price.py"), &json!(price));
    assert_eq!((&location["sourcePath"], &location["realPath"]), expect, "{step}");
    sandbox.json(&["debug", "stop"]);
}

#[test]
fn exported_breakpoints_keep_the_users_names() {
    let Some(linked) = linked() else { return };
    let sandbox = &linked.sandbox;
    sandbox.json(&["break", "set", "linked/app.py:5"]);
    sandbox.json(&["break", "export", "breaks.json"]);
    sandbox.json(&["break", "remove", "--all"]);
    let imported = sandbox.json(&["break", "import", "breaks.json"]);
    let it = &imported["breakpoints"][0];
    assert_eq!((&it["file"], &it["realPath"]), (&json!("linked/app.py"), &json!("real/app.py")), "{imported}");
}
