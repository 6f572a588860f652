//! Java's virtual threads: listed, named, read while they hang; what the virtual machine does not do with them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::requirements::installed_jdk;
use crate::support::scenario_sandbox::ScenarioSandbox;
use crate::support::{JDWP_PORT, run_command};

const VIRTUAL: &str = "\
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

public class Virtual {
  static final Object LOCK = new Object();

  static int work(int order) {
    int total = order * 2;
    return total; // WORK
  }

  static int call(int order) {
    int mine = order + 1;
    return work(mine); // CALL
  }

  static void hang() {
    int held = 7;
    synchronized (LOCK) { // HANG
      held++;
    }
  }

  public static void main(String[] arguments) throws Exception {
    int count = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 5;
    CountDownLatch ready = new CountDownLatch(count);
    for (int number = 0; number < count; number++) {
      Thread.startVirtualThread(() -> {
        ready.countDown();
        LockSupport.park();
      });
    }
    ready.await();
    synchronized (LOCK) {
      Thread hanging = Thread.ofVirtual().name(\"hanging\").start(Virtual::hang);
      Runnable worker = () -> call(20);
      Thread.ofVirtual().name(\"worker\").start(worker).join();
      System.out.println(\"up\");
      hanging.join();
    }
  }
}
";

fn sandbox_on(jdk: &Path) -> Option<ScenarioSandbox> {
    let mut stage = ScenarioSandbox::with("java", "Virtual.java", VIRTUAL)?;
    stage.sandbox.more_variables.push(("JAVA_HOME", jdk.into()));
    Some(stage)
}

fn jdks() -> impl Iterator<Item = PathBuf> {
    [21, 25].into_iter().filter_map(installed_jdk)
}

fn thread_named<'a>(threads: &'a Value, name: &str) -> &'a Value {
    let found = threads.as_array().unwrap().iter().find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {threads:#}"))
}

#[test]
fn virtual_threads_are_listed_and_what_their_lower_frames_refuse_is_said() {
    for jdk in jdks() {
        let Some(stage) = sandbox_on(&jdk) else { return };
        stage.breaks("WORK");
        let stopped = stage.json(&["debug", "launch", "Virtual.java", "--wait", "60"]);
        stage.check(&stopped, "BREAKPOINT_HIT", "WORK");
        assert_eq!(stopped["stopReason"]["threadName"], "worker");
        // The class that the JDK makes of the lambda is folded with the JDK's own frames.
        let frames = stopped["snapshot"]["frames"].to_string();
        assert!(frames.contains("Virtual.lambda$main$") && !frames.contains("$$Lambda"), "{frames}");
        let status = stage.json(&["debug", "status"]);
        let unnamed = status["runningThreads"].as_array().unwrap().iter();
        let unnamed = unnamed.filter(|it| it["name"].as_str().unwrap().starts_with("virtual thread #"));
        assert_eq!(unnamed.filter(|it| it["state"] == "waiting").count(), 5, "{status:#}");

        stage.json(&["debug", "set", "total", "7"]);
        assert_eq!(stage.json(&["debug", "evaluate", "total"])["result"], "7");
        let caller = stage.json(&["debug", "stack"])["frames"][1]["frameId"].to_string();
        let refused = stage.sandbox.tether(&["debug", "set", "mine", "5", "--frame", &caller]);
        refused.fails(1, &["a lower frame of a virtual thread", "only the innermost frame"]);
        stage.json(&["debug", "stop"]);
        stage.nothing_is_left();
    }
}

#[test]
fn a_virtual_thread_that_hangs_is_seen_with_its_stack_and_what_it_waits_for() {
    for jdk in jdks() {
        let Some(stage) = sandbox_on(&jdk) else { return };
        stage.json(&["debug", "launch", "Virtual.java"]);
        crate::support::eventually("up", || {
            stage.json(&["debug", "output"])["entries"].to_string().contains("up").then_some(())
        });
        stage.json(&["debug", "pause", "--wait", "60"]);
        let status = stage.json(&["debug", "status"]);
        let hanging = thread_named(&status["suspendedThreads"], "hanging");
        assert_eq!(hanging["state"], "blocked", "{hanging:#}");
        let waits_for = hanging["waitsFor"].as_str().unwrap_or_default();
        assert!(waits_for.starts_with("Object (id="), "{hanging:#}");
        let id = hanging["threadId"].to_string();
        let frames = stage.json(&["debug", "stack", "--thread", &id])["frames"].clone();
        // It may go on behind the instruction that waits.
        let is_there = frames[0]["line"].as_u64().is_some_and(|line| (0..2).contains(&(line - stage.line("HANG"))));
        assert_eq!((&frames[0]["name"], is_there), (&json!("Virtual.hang"), true), "{frames:#}");
        stage.json(&["debug", "stop"]);
        stage.nothing_is_left();
    }
}

/// How many virtual threads there are, and within which time they are listed, also on a busy machine.
const MANY: usize = 100_000;
const LISTED_WITHIN: Duration = Duration::from_secs(3);

#[test]
fn of_many_virtual_threads_the_first_are_listed_at_once_and_the_others_counted() {
    for jdk in jdks() {
        let Some(stage) = sandbox_on(&jdk) else { return };
        let mut compile = Command::new(jdk.join("bin/javac"));
        compile.arg("-g").arg("-d").arg(&stage.sandbox.workspace).arg(stage.sandbox.path("Virtual.java"));
        run_command(compile).ok();
        let mut command = Command::new(jdk.join("bin/java"));
        command
            .arg("-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0,includevirtualthreads=y");
        command.arg("-classpath").arg(&stage.sandbox.workspace).args(["Virtual", &MANY.to_string()]);
        let (mut running, line) = stage.starts(command, JDWP_PORT);
        let port = line.strip_prefix(JDWP_PORT).unwrap();
        let begun = Instant::now();
        stage.json(&["debug", "attach", port, "--language", "java"]);
        let attached = begun.elapsed();
        let status = crate::support::eventually("all have started", || {
            let begun = Instant::now();
            let status = stage.json(&["debug", "status"]);
            let listed = begun.elapsed();
            assert!(listed < LISTED_WITHIN, "{listed:?}");
            let unlisted = status["unlistedThreads"].as_u64().unwrap_or(0);
            (unlisted as usize + 400 > MANY).then_some((listed, status))
        });
        let (listed, status) = status;
        eprintln!("{}: attached within {attached:?}, {MANY} threads listed within {listed:?}", jdk.display());
        let threads = status["runningThreads"].as_array().unwrap();
        assert!(threads.len() <= 301 && threads.iter().any(|it| it["name"] == "main"), "{}", threads.len());
        let paused = stage.json(&["debug", "pause", "--wait", "60"]);
        assert_eq!(paused["stopReason"]["type"], "USER_SUSPEND", "{paused:#}");
        stage.json(&["debug", "stop"]);
        let text = "the program runs on";
        assert!(running.0.try_wait().unwrap().is_none(), "{text}");
    }
}
