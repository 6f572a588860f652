//! An MCP server is killed while its program is stopped: the next server finds the same stop.

use rustix::process::Signal;
use serde_json::json;

use crate::debug_survival::surviving_debuggees::{PYTHON, found, line};
use crate::support::Sandbox;
use crate::support::mcp_client::McpClient;

const TIMES: usize = 100;

#[tokio::test]
async fn a_hundred_servers_are_killed_and_each_next_one_finds_the_same_stop_with_its_variables() {
    if found("debugpy").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app ö.py", PYTHON)]);
    let mut agent = McpClient::start(&sandbox).await;
    let at = crate::debug_survival::surviving_debuggees::stop("app ö.py", PYTHON);
    let launched = agent.call("debug_launch", json!({"program": "app ö.py", "breakpoints": [at], "wait": 60})).await;
    let (session, stopped_at, pid) = (launched["sessionId"].clone(), line(&launched), launched["pid"].clone());
    for round in 0..TIMES {
        agent.end_by(Signal::KILL).await;
        agent = McpClient::start(&sandbox).await;
        let status = agent.call("debug_status", json!({})).await;
        assert_eq!((&status["sessionId"], &status["state"]), (&session, &json!("STOPPED")), "{round}: {status}");
        assert_eq!((line(&status), &status["pid"]), (stopped_at, &pid), "{round}: {status}");
        let reported = agent.call("debug_variables", json!({"names": ["total", "word"]})).await;
        let values: Vec<_> = reported["variables"].as_array().unwrap().iter().map(|it| it["value"].as_str()).collect();
        assert_eq!(values, [Some("1"), Some("'hello'")], "{round}: {reported}");
    }
    // It resumes where it was stopped.
    let next = agent.call("debug_continue", json!({"wait": 60})).await;
    assert_eq!((line(&next), &next["stopped"]), (stopped_at, &json!(true)));
    assert_eq!(agent.call("debug_evaluate", json!({"expression": "total"})).await["result"], "2");
    agent.call("debug_stop", json!({})).await;
    agent.leave().await;
}
