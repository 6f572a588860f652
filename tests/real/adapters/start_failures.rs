//! Adapters that are missing, exit at once or never listen; and programs to attach to.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use devtether::adapters::{AdapterHost, ConnectMethod, LaunchPlan, ProcessPlan, start_adapter};
use tether_base::error::{Error, ErrorKind};
use tether_dap::types::{Fields, StartRequest};
use tether_process::{LAUNCH_ID, PipedProcess, clean_environment, spawn_piped};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Lines};

use crate::adapters::adapter_session::LONG;

/// A program that `tether` did not start; killed on drop.
pub struct Started {
    process: tether_process::Process,
    out: Lines<BufReader<Box<dyn AsyncRead + Unpin>>>,
    err: Lines<BufReader<Box<dyn AsyncRead + Unpin>>>,
}

impl Started {
    pub fn of(argv: &[&OsStr], env: &[(&str, &OsStr)]) -> Started {
        let argv: Vec<OsString> = argv.iter().map(|word| (*word).to_owned()).collect();
        let env = clean_environment(env.iter().map(|(name, value)| (*name, *value)));
        let PipedProcess { process, stdout, stderr, .. } =
            spawn_piped(&argv, &std::env::temp_dir(), &env, false).unwrap();
        let lines = |pipe: Box<dyn AsyncRead + Unpin>| BufReader::new(pipe).lines();
        Started { process, out: lines(Box::new(stdout)), err: lines(Box::new(stderr)) }
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn is_alive(&self) -> bool {
        self.process.is_alive()
    }

    /// The first line for which the parser returns a value.
    pub async fn line<T>(&mut self, spec: impl Fn(&str) -> Option<T>) -> T {
        loop {
            let line = async {
                tokio::select! {
                    Ok(Some(line)) = self.out.next_line() => Some(line),
                    Ok(Some(line)) = self.err.next_line() => Some(line),
                    else => None,
                }
            };
            let line = tokio::time::timeout(LONG, line).await.unwrap().expect("it ended");
            if let Some(found) = spec(&line) {
                return found;
            }
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.process.signal_group(rustix::process::Signal::KILL);
    }
}

fn begin(reach: ConnectMethod, argv: &[&str]) -> LaunchPlan {
    let argv = argv.iter().map(OsString::from).collect();
    let run = ProcessPlan { argv, cwd: std::env::temp_dir(), env: BTreeMap::new() };
    LaunchPlan::start_adapter(run, reach, StartRequest::Launch(Fields::new()))
}

async fn fails(reach: ConnectMethod, argv: &[&str], within: Duration) -> Error {
    let mark = format!("faults-{}-{}", std::process::id(), argv.join(" "));
    let Err(error) = start_adapter("xdbg", begin(reach, argv), &mark, within).await else { panic!("{argv:?} began") };
    assert_eq!(crate::support::carrying(LAUNCH_ID, &mark), [], "{argv:?}");
    error
}

fn says(error: &Error, parts: &[&str]) {
    let reported = error.to_string();
    for part in parts {
        assert!(reported.contains(part), "{part:?} is not in {reported}");
    }
}

const READY: ConnectMethod = ConnectMethod::UnixSocket { is_ready: |line| line == "ready" };
const PORT: ConnectMethod = ConnectMethod::TcpPort { parse_address: |line| line.parse().ok() };

#[tokio::test]
async fn a_missing_adapter_is_a_missing_tool() {
    for reach in [ConnectMethod::Pipes, ConnectMethod::ConnectBack, READY, PORT] {
        let error = fails(reach, &["no-such-adapter-here", "{address}"], LONG).await;
        assert_eq!(error.kind, ErrorKind::MissingTool);
        says(&error, &["adapter xdbg", "no-such-adapter-here", "there is no such program"]);
    }
}

#[tokio::test]
async fn an_adapter_that_exits_at_once_is_an_error_with_its_code_and_last_output() {
    let script = "echo one; echo no module named xdbg >&2; exit 3";
    for reach in [ConnectMethod::ConnectBack, READY, PORT] {
        let error = fails(reach, &["sh", "-c", script], LONG).await;
        says(
            &error,
            &["xdbg exited before it had", "exited with code 3", "one", "no module named xdbg", "run `sh -c '"],
        );
    }
    says(&fails(READY, &["sh", "-c", "exit 0"], LONG).await, &["exited with code 0 and printed nothing"]);
}

#[tokio::test]
async fn an_adapter_on_pipes_that_exits_at_once_is_reported_by_its_connection() {
    for script in ["echo no such thing >&2; exit 3", "cat > /dev/null & echo no such thing >&2; kill -SEGV $$"] {
        let running = start_adapter("xdbg", begin(ConnectMethod::Pipes, &["sh", "-c", script]), "faults-pipes", LONG)
            .await
            .unwrap();
        let (client, _inbox, driver) = tether_dap::DapClient::over((running.connect)().await.unwrap());
        let driver = tokio::spawn(driver);
        let requested = client.request(&tether_dap::types::ThreadsArguments {}, LONG).await;
        let reported = requested.unwrap_err().to_string();
        assert!(reported.contains("the adapter ") && reported.contains("no such thing"), "{reported}");
        assert!(running.exit_summary().await.unwrap().contains("no such thing"));
        drop(client);
        driver.await.unwrap();
        running.stop().await.unwrap();
    }
    assert_eq!(crate::support::carrying(LAUNCH_ID, "faults-pipes"), []);
}

#[tokio::test]
async fn an_adapter_that_never_listens_times_out_with_its_output() {
    let script = "echo thinking; trap '' TERM; sleep 600 & wait; wait";
    for reach in [ConnectMethod::ConnectBack, READY, PORT] {
        let began = Instant::now();
        // Long enough for the shell to set its trap and print on a busy machine.
        let error = fails(reach, &["sh", "-c", script], Duration::from_secs(3)).await;
        assert!(error.kind == ErrorKind::TimedOut && began.elapsed() < Duration::from_secs(60), "{error}");
        says(&error, &["xdbg has not", "within 3s", "thinking", "by hand"]);
    }
}

async fn runs(script: &str, mark: &str) -> AdapterHost {
    start_adapter("xdbg", begin(PORT, &["sh", "-c", script]), mark, LONG).await.unwrap()
}

#[tokio::test]
async fn a_dropped_adapter_is_killed_with_all_its_processes_and_a_detached_one_keeps_running() {
    let script = "setsid sleep 601 & sleep 602 & echo 127.0.0.1:9; wait";
    let running = runs(script, "faults-dropped").await;
    // During exec a process has no readable environment.
    crate::support::eventually("all are seen", || {
        (crate::support::carrying(LAUNCH_ID, "faults-dropped").len() >= 3).then_some(())
    });
    drop(running);
    crate::support::eventually("all are gone", || {
        crate::support::carrying(LAUNCH_ID, "faults-dropped").is_empty().then_some(())
    });

    runs(script, "faults-ended").await.stop().await.unwrap();
    assert_eq!(crate::support::carrying(LAUNCH_ID, "faults-ended"), []);

    // The adapter exits, the program keeps running.
    runs(script, "faults-let-go").await.detach().await;
    let left = || crate::support::carrying(LAUNCH_ID, "faults-let-go");
    let both = crate::support::eventually("the adapter is gone, and both its programs are seen", || {
        Some(left()).filter(|left| left.len() == 2 && left.iter().all(|(_, line)| line.starts_with("sleep")))
    });
    for (pid, _) in both {
        crate::support::kill(pid, rustix::process::Signal::KILL);
    }
}

#[tokio::test]
async fn a_socket_printed_before_it_exists_is_awaited() {
    let python = "import os, socket, sys, threading; listening = socket.socket(socket.AF_UNIX); print('ready', flush=True); \
                  listening.bind(sys.argv[1]); os.sched_yield(); listening.listen(); listening.accept()[0].recv(9)";
    let running =
        start_adapter("xdbg", begin(READY, &["python3", "-c", python, "{socket}"]), "faults-late", LONG).await.unwrap();
    drop((running.connect)().await.unwrap());
    running.exited().await;
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_second_connection_to_a_single_client_debuggee_is_refused() {
    let running = start_adapter("xdbg", begin(ConnectMethod::Pipes, &["cat"]), "faults-second", LONG).await.unwrap();
    (running.connect)().await.unwrap();
    let error = (running.connect)().await.unwrap_err().to_string();
    assert!(error.contains("its pipes") && error.contains("one connection only"), "{error}");
    running.stop().await.unwrap();
}
