//! kill -9 on a front end or the supervisor, at random moments, again and again: the window stays the same.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::mcp_client::McpClient;
use crate::support::{Sandbox, is_alive, kill};

/// The default; the design requires a run with `TETHER_CHAOS_CYCLES=200`.
const CYCLES: u64 = 20;

/// A reproducible random sequence (Numerical Recipes' generator).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn chromium() -> Sandbox {
    let page = "data:text/html,<title>here</title>";
    Sandbox::with(&[("devtools.toml", &format!("[window]\nkind = 'browser'\nurl = '{page}'\n"))])
}

/// Asserts the invariants of a workspace with a running supervisor.
fn check(sandbox: &Sandbox, window: u64) {
    let supervisors: Vec<_> =
        sandbox.processes().into_iter().filter(|(_, line)| line.contains(" supervise ")).collect();
    assert!(supervisors.len() <= 1, "{supervisors:?}");
    // `session` panics on a partial file.
    assert_eq!(sandbox.session().expect("it is never missing")["electronPid"], window);
    assert!(is_alive(window as u32));
}

#[tokio::test]
async fn the_window_outlives_every_kill() {
    let cycles = std::env::var("TETHER_CHAOS_CYCLES").ok().and_then(|n| n.parse().ok()).unwrap_or(CYCLES);
    let seed = std::env::var("TETHER_CHAOS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(20_261_121);
    eprintln!("{cycles} cycles, seed {seed}");
    let (sandbox, mut dice) = (chromium(), Dice(seed));
    let agent = McpClient::start(&sandbox).await;
    agent.call("window_start", json!({})).await;
    let window = sandbox.arrived()["pid"].as_u64().unwrap();
    agent.leave().await;
    for cycle in 0..cycles {
        let agent = McpClient::start(&sandbox).await;
        let front_end = agent.child.id().unwrap();
        // A request runs while a process is killed.
        let moment = Duration::from_micros(dice.below(8_000));
        let victims = dice.below(3);
        let asking = async { agent.ask("window_evaluate", json!({"expression": "document.title"})).await };
        let killing = async {
            tokio::time::sleep(moment).await;
            if victims != 0
                && let Some(supervisor) = sandbox.supervisor()
            {
                kill(supervisor, Signal::KILL);
            }
            if victims != 1 {
                kill(front_end, Signal::KILL);
            }
        };
        tokio::select! {
            _ = asking => {}
            () = async { killing.await; if victims != 1 { return } std::future::pending().await } => {}
        }
        check(&sandbox, window);
        // Every later call is answered by the same window.
        let later = McpClient::start(&sandbox).await;
        let status = sandbox.once_it_answers(later.call("window_status", json!({})).await);
        assert_eq!((&status["state"], &status["pid"]), (&json!("ready"), &json!(window)), "cycle {cycle}: {status}");
        let answer: Value = later.call("window_evaluate", json!({"expression": "document.title"})).await;
        assert_eq!(answer["value"], "here", "cycle {cycle}");
        later.leave().await;
        agent.end_by(Signal::KILL).await; // if it was not the victim
        check(&sandbox, window);
    }
}
