//! debugpy: direct, through its adapter, and attached.

use devtether::adapters::{Address, DebugTargetKind};
use devtether::vocabulary::{RunState, StopKind};

use serde_json::json;

use crate::adapters::adapter_session::{AdapterSession, LONG, ProgramFolder, found, stops_and_ends};
use crate::support::requirements::installed_tool;

const APP: &str = "\
import sys

def double(order):
    total = order * 2
    return total  # STOP

print(double(21), sys.argv[1:], flush=True)
";

#[tokio::test]
async fn a_program_is_debugged_directly() {
    let place = ProgramFolder::new();
    let (app, line) = place.file("äpp one.py", APP);
    stops_and_ends("debugpy", &place.wants(DebugTargetKind::Program(app.clone())), (&app, line), "total = 42").await;
}

#[tokio::test]
async fn a_program_without_subprocess_debugging_is_debugged_directly() {
    let place = ProgramFolder::new();
    let (app, line) = place.file("äpp one.py", APP);
    let mut requested = place.wants(DebugTargetKind::Program(app.clone()));
    requested.fields.insert("subProcess".to_owned(), json!(false));
    stops_and_ends("debugpy", &requested, (&app, line), "total = 42").await;
}

#[tokio::test]
async fn a_subprocess_is_a_target_of_the_same_session() {
    let Some((row, found)) = found("debugpy") else { return };
    let place = ProgramFolder::new();
    let (child, line) = place.file("chïld.py", "total = 6 * 7\nprint('child')  # STOP\n");
    let text = "import subprocess, sys\nsubprocess.run([sys.executable, sys.argv[1]], check=True)\n";
    let (parent, _) = place.file("pärent.py", text);
    let mut requested = place.wants(DebugTargetKind::Program(parent));
    requested.args = vec![child.display().to_string()];
    let play = AdapterSession::open(row, &found, &requested, &[(&child, line)]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
    assert_eq!(play.session.snapshot().targets.len(), 2);
    assert_eq!(play.evaluate("total").await, "42");
    assert_eq!(play.finished().await.state, RunState::Terminated);
    play.end().await;
}

#[tokio::test]
async fn a_module_is_debugged_with_its_arguments_and_environment() {
    let Some((row, found)) = found("debugpy") else { return };
    let place = ProgramFolder::new();
    let text = "import os, sys\ntotal = sys.argv[1:] + [os.environ.get('WÖRD'), os.environ.get('HOME')]\nprint('up')  # STOP\n";
    let (main, line) = place.file("päckage/__main__.py", text);
    let mut requested = place.wants(DebugTargetKind::Module("päckage".to_owned()));
    requested.args = vec!["a b".to_owned(), "ç".to_owned()];
    requested.env = [("WÖRD".to_owned(), Some("grün".to_owned())), ("HOME".to_owned(), None)].into();
    let play = AdapterSession::open(row, &found, &requested, &[(&main, line)]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
    assert_eq!(play.evaluate("total").await, "['a b', 'ç', 'grün', None]");
    play.end().await;
}

#[tokio::test]
async fn it_stops_on_entry_and_ends_when_it_is_stopped_in_the_middle() {
    let Some((row, found)) = found("debugpy") else { return };
    let place = ProgramFolder::new();
    let (app, _) = place.file("wait.py", "import time\nwhile True:\n    time.sleep(1)\n");
    let mut requested = place.wants(DebugTargetKind::Program(app));
    requested.stop_on_entry = true;
    let play = AdapterSession::open(row, &found, &requested, &[]).await;
    assert_eq!(play.stopped().await, (StopKind::Entry, 1));
    play.end().await;
}

#[tokio::test]
async fn a_listening_program_keeps_running_after_detach() {
    let Some((row, found)) = found("debugpy") else { return };
    let place = ProgramFolder::new();
    let text =
        "import time\nprint('up', flush=True)\ntotal = 0\nwhile True:\n    total += 1\n    time.sleep(0.01)  # STOP\n";
    let (app, line) = place.file("sërver.py", text);
    // debugpy's function returns the port; its command line does not print it.
    let script = "import sys, runpy, debugpy; print('port', debugpy.listen(('127.0.0.1', 0))[1], flush=True); \
                  runpy.run_path(sys.argv[1])";
    let python = found.interpreter.clone().unwrap();
    let argv = [python.as_os_str(), "-c".as_ref(), script.as_ref(), app.as_os_str()];
    let packages = found.path.parent().unwrap();
    let mut program = crate::adapters::start_failures::Started::of(&argv, &[("PYTHONPATH", packages.as_os_str())]);
    let port: u16 = program.line(|line| line.strip_prefix("port ")?.parse().ok()).await;
    let requested = place.wants(DebugTargetKind::Listener(Address::loopback(port)));
    for _ in 0..2 {
        let mut play = AdapterSession::open(row, &found, &requested, &[(&app, line)]).await;
        for _ in 0..10 {
            if play.session.wait_for_stop(LONG).await.stop.is_some() {
                break;
            }
            // On a busy machine debugpy has not closed the previous connection yet, and closes this one.
            play.let_go().await;
            play = AdapterSession::open(row, &found, &requested, &[(&app, line)]).await;
        }
        assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
        play.let_go().await;
    }
    assert!(program.is_alive());
}

#[tokio::test]
async fn a_running_process_is_attached_to() {
    let Some((row, found)) = found("debugpy") else { return };
    let place = ProgramFolder::new();
    let text =
        "import time\nprint('up', flush=True)\ntotal = 0\nwhile True:\n    total += 1\n    time.sleep(0.01)  # STOP\n";
    let (app, line) = place.file("wörker.py", text);
    // The gdb of a distribution may end the program on a newer processor: ours is found first.
    if installed_tool("gdb/bin/python").is_some() {
        let search_path = found.search_path.as_deref().unwrap_or_default();
        assert!(search_path.split(':').next().is_some_and(|first| first.contains("gdb_for_pwndbg")), "{search_path}");
    }
    let python = found.interpreter.clone().unwrap();
    let mut program = crate::adapters::start_failures::Started::of(&[python.as_os_str(), app.as_os_str()], &[]);
    program.line(|line| (line == "up").then_some(())).await;
    let requested = place.wants(DebugTargetKind::Pid(program.pid()));
    let play = AdapterSession::open(row, &found, &requested, &[(&app, line)]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
    assert!(play.evaluate("total").await.parse::<u64>().unwrap() > 0);
    play.let_go().await;
    assert!(program.is_alive());
}

#[tokio::test]
async fn a_program_that_fails_at_once_reports_why() {
    let Some((row, found)) = found("debugpy") else { return };
    let place = ProgramFolder::new();
    let (app, _) = place.file("broken.py", "def f(:\n");
    let mut play = AdapterSession::open(row, &found, &place.wants(DebugTargetKind::Program(app)), &[]).await;
    let waited = play.session.wait_for_stop(LONG).await;
    assert!(waited.stop.is_none(), "{waited:?}");
    let words = async {
        while play.running.exit_summary().await.is_none() {
            play.running.exited().await;
        }
        play.running.exit_summary().await
    };
    let words = words.await.unwrap();
    assert!(words.contains("exited with code 1") && words.contains("SyntaxError"), "{words}");
    assert!(play.output().contains("SyntaxError"));
    play.end().await;
}
