//! E1, E3: the end of a program during a wait; resuming and waiting in quick succession.

use rustix::process::Signal;
use serde_json::json;

use crate::support::mcp_client::McpClient;
use crate::support::scenario_sandbox::ScenarioSandbox;
use crate::support::{kill, run_command};

#[test]
fn the_end_of_the_program_or_of_its_connection_ends_a_wait_and_is_named() {
    let text = "import time\ntime.sleep(1)\nraise SystemExit(3)\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "ends.py", text) else { return };
    stage.json(&["debug", "launch", "ends.py"]);
    let ended = stage.json(&["debug", "wait", "60"]);
    assert_eq!((ended["stopped"].as_bool(), ended["state"].as_str()), (Some(false), Some("TERMINATED")), "{ended}");
    assert!(ended["message"].as_str().unwrap().contains("the program has ended"), "{ended}");

    stage.sandbox.write("spins.py", "import time\nwhile True:\n    time.sleep(0.01)\n");
    let launched = stage.json(&["debug", "launch", "spins.py"]);
    let mut waiting = stage.sandbox.command(["--json", "debug", "wait", "60"]);
    let waiting = std::thread::spawn(move || {
        waiting.stdin(std::process::Stdio::null());
        run_command(waiting)
    });
    kill(launched["pid"].as_u64().unwrap() as u32, Signal::KILL);
    let lost = waiting.join().unwrap().ok().json();
    assert_eq!(lost["stopped"], false);
    let state = lost["state"].as_str().unwrap();
    assert!(["DISCONNECTED", "TERMINATED"].contains(&state), "{lost}");
    assert!(lost["message"].is_string(), "{lost}");
    stage.nothing_is_left();
}

/// By an MCP client, whose calls follow each other faster than command lines.
#[tokio::test]
async fn a_thousand_resumes_and_waits_never_see_the_old_stop_and_never_lose_one() {
    let text = "number = 0\nwhile number < 5000:\n    number += 1  # STOP\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "counts.py", text) else { return };
    stage.breaks("STOP");
    let agent = McpClient::start(&stage.sandbox).await;
    agent.call("debug_launch", json!({"program": "counts.py", "wait": 60})).await;
    for hit in 2..=1001 {
        agent.call("debug_continue", json!({"budget": 0})).await;
        let waited = agent.call("wait_for_stop", json!({"timeout": 60, "budget": 0})).await;
        stage.check(&waited, "BREAKPOINT_HIT", "STOP");
        assert_eq!(waited["stopReason"]["details"]["hitCount"], hit, "{waited}");
    }
    assert_eq!(agent.call("debug_evaluate", json!({"expression": "number"})).await["result"], "1000");
    agent.call("debug_stop", json!({})).await;
    agent.leave().await;
}
