//! A Ruby program that rdbg was attached to runs on as without a debugger after a detach, whatever breakpoints were set.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::scenario_sandbox::{ScenarioSandbox, found};
use crate::support::{eventually, kill};

/// Waits for the file `go`; then it runs through breakpoints in each way that rdbg has, and prints what it has counted.
const PROGRAM: &str = r#"
def count(n) # DEF
  n + 1
end
rounds = 0
until File.exist?('go')
  rounds = count(rounds)
  sleep 0.005 # LOOP
end
total = 0
lock = Mutex.new
threads = (1..4).map do
  Thread.new do
    100.times do
      lock.synchronize { total = count(total) } # THREAD
    end
  end
end
threads.each(&:join)
raised = begin
  Integer('x')
rescue ArgumentError => error
  error.class
end
load 'loaded.rb'
printed = `ruby -e 'print 6 * 7'`
puts [total, raised, $loaded, printed].inspect # AFTER
exit 7
"#;

/// Children by `fork`: one that ends at once, and one that lives for longer than rdbg tries to listen anew.
const FORKS: &str = r#"
until File.exist?('go')
  sleep 0.005 # LOOP
end
def child(seconds)
  total = 0
  3.times { |it| total += it } # CHILD
  sleep seconds
  puts "child #{total}"
end
codes = [0, 1.5].map do |seconds|
  Process.wait(fork { child(seconds); exit 9 })
  $?.exitstatus
end
puts codes.inspect # AFTER
exit 7
"#;

/// Is blocked where no signal handler runs, until the file `go` is there.
const BLOCKED: &str = r#"
require 'fiddle'
lock = Fiddle::Pointer.malloc(64)
lock[0, 64] = "\0" * 64
call = ->(name) { Fiddle::Function.new(Fiddle.dlopen(nil)[name], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT) }
acquire, release = call['pthread_mutex_lock'], call['pthread_mutex_unlock']
acquire.call(lock)
Thread.new { sleep 0.005 until File.exist?('go'); release.call(lock) }
acquire.call(lock)
puts 'it goes on'
exit 7
"#;

/// A program that listens for debuggers; killed on drop.
struct Listening {
    child: Child,
    port: String,
}

impl Listening {
    fn start(stage: &ScenarioSandbox, rdbg: &Path) -> Listening {
        let mut command = Command::new(rdbg);
        command.args(["--open", "--nonstop", "--host", "127.0.0.1", "--port", "0", "--", stage.file]);
        command.current_dir(&stage.sandbox.workspace).envs(stage.sandbox.variables()).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it does not listen");
        let port = line.split("127.0.0.1:").nth(1).unwrap_or_else(|| panic!("{line}"));
        let port = port.trim_end().trim_end_matches(')').to_owned();
        // The thread ends with the program.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::stderr()));
        Listening { child, port }
    }

    fn attach(&self, stage: &ScenarioSandbox) {
        stage.json(&["debug", "attach", &self.port, "--adapter", "rdbg"]);
    }

    /// Lets it go on to its end. Returns its exit code and its output.
    fn finish(mut self, stage: &ScenarioSandbox) -> (Option<i32>, String) {
        stage.sandbox.write("go", "");
        let mut output = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        let code = self.child.wait().unwrap().code();
        std::fs::remove_file(stage.sandbox.path("go")).unwrap();
        (code, output)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The exit code and the output of the program without a debugger.
fn run_alone(stage: &ScenarioSandbox) -> (Option<i32>, String) {
    stage.sandbox.write("go", "");
    let output = Command::new("ruby").arg(stage.file).current_dir(&stage.sandbox.workspace).output().unwrap();
    std::fs::remove_file(stage.sandbox.path("go")).unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn scenario(file: &'static str, text: &str) -> Option<(ScenarioSandbox, std::path::PathBuf)> {
    let rdbg = found("rdbg")?.path;
    let stage = ScenarioSandbox::with("rdbg", file, text)?;
    stage.sandbox.write("loaded.rb", "$loaded = 1\n");
    Some((stage, rdbg))
}

fn set_all_breakpoints(stage: &ScenarioSandbox, markers: &[&str]) {
    for marker in markers {
        stage.breaks(marker);
    }
    stage.json(&["break", "set", "loaded.rb:1"]);
    stage.json(&["break", "exceptions", "--caught"]);
}

/// Continues from the pauses of an attach, of which rdbg reports up to two, to the first breakpoint.
fn continue_to_breakpoint(stage: &ScenarioSandbox) -> Value {
    eventually("it stops at a breakpoint", || {
        let stop = stage.json(&["debug", "continue", "--wait", "60"]);
        (stop["stopReason"]["type"] == "BREAKPOINT_HIT").then_some(stop)
    })
}

/// Continues from the pauses of an attach.
fn continue_and_run(stage: &ScenarioSandbox) {
    eventually("it runs", || {
        let running = stage.json(&["debug", "status"])["state"] == "RUNNING";
        // In vain where it runs meanwhile.
        if !running {
            stage.tether(&["debug", "continue"]);
        }
        running.then_some(())
    });
}

/// Detaches; it must be certain that the program runs on.
fn detach(stage: &ScenarioSandbox) {
    let stopped = stage.json(&["debug", "stop", "--detach"]);
    assert!(stopped["message"].is_null(), "{stopped:#}");
}

#[test]
fn a_running_ruby_program_runs_to_its_end_after_a_detach_with_breakpoints() {
    let Some((stage, rdbg)) = scenario("counts.rb", PROGRAM) else { return };
    set_all_breakpoints(&stage, &["THREAD", "AFTER"]);
    let listening = Listening::start(&stage, &rdbg);
    listening.attach(&stage);
    continue_and_run(&stage);
    detach(&stage);
    assert_eq!(listening.finish(&stage), run_alone(&stage));
}

#[test]
fn a_stopped_ruby_program_runs_to_its_end_after_a_detach_with_breakpoints() {
    let Some((stage, rdbg)) = scenario("counts.rb", PROGRAM) else { return };
    set_all_breakpoints(&stage, &["DEF", "LOOP", "THREAD", "AFTER"]);
    let listening = Listening::start(&stage, &rdbg);
    listening.attach(&stage);
    continue_to_breakpoint(&stage);
    // A step that is under way is left, too.
    stage.json(&["debug", "step", "over", "--wait", "60"]);
    detach(&stage);
    assert_eq!(listening.finish(&stage), run_alone(&stage));
}

#[test]
fn a_ruby_program_forks_children_after_a_detach_with_breakpoints() {
    let Some((stage, rdbg)) = scenario("forks.rb", FORKS) else { return };
    for stops in [false, true] {
        set_all_breakpoints(&stage, &["CHILD", "AFTER"]);
        if stops {
            stage.breaks("LOOP");
        }
        let listening = Listening::start(&stage, &rdbg);
        listening.attach(&stage);
        match stops {
            true => drop(continue_to_breakpoint(&stage)),
            false => continue_and_run(&stage),
        }
        detach(&stage);
        assert_eq!(listening.finish(&stage), run_alone(&stage));
    }
}

#[test]
fn a_ruby_program_is_attached_to_and_detached_from_again_and_again() {
    let Some((stage, rdbg)) = scenario("counts.rb", PROGRAM) else { return };
    set_all_breakpoints(&stage, &["LOOP", "THREAD", "AFTER"]);
    let listening = Listening::start(&stage, &rdbg);
    for _ in 0..3 {
        listening.attach(&stage);
        stage.check(&continue_to_breakpoint(&stage), "BREAKPOINT_HIT", "LOOP");
        detach(&stage);
    }
    assert_eq!(listening.finish(&stage), run_alone(&stage));
}

#[test]
fn a_ruby_program_that_was_attached_to_outlives_a_supervisor_and_a_host_that_are_killed() {
    let Some((stage, rdbg)) = scenario("counts.rb", PROGRAM) else { return };
    set_all_breakpoints(&stage, &["LOOP", "THREAD", "AFTER"]);
    let listening = Listening::start(&stage, &rdbg);
    listening.attach(&stage);
    stage.check(&continue_to_breakpoint(&stage), "BREAKPOINT_HIT", "LOOP");
    let supervisor = stage.sandbox.processes().into_iter().find(|(_, line)| line.contains(" supervise ")).unwrap().0;
    kill(supervisor, Signal::KILL);
    stage.sandbox.kill_session_hosts();
    eventually("it is gone", || stage.sandbox.processes().iter().all(|(pid, _)| *pid != supervisor).then_some(()));
    assert_eq!(listening.finish(&stage), run_alone(&stage));
}

#[test]
fn a_detach_says_that_a_ruby_program_which_could_not_be_stopped_keeps_its_breakpoints() {
    let Some((stage, rdbg)) = scenario("blocked.rb", BLOCKED) else { return };
    let listening = Listening::start(&stage, &rdbg);
    eventually("it is blocked", || {
        let tasks = format!("/proc/{0}/task/{0}/syscall", listening.child.id());
        // In futex.
        std::fs::read_to_string(tasks).unwrap().starts_with("202 ").then_some(())
    });
    listening.attach(&stage);
    let stopped = stage.json(&["debug", "stop", "--detach"]);
    let message = stopped["message"].as_str().unwrap_or_else(|| panic!("{stopped:#}"));
    assert!(message.contains("did not stop within 1s") && message.contains("rdbg keeps the breakpoints"), "{message}");
    assert_eq!(listening.finish(&stage), run_alone(&stage));
}
