//! The children of a Ruby program: they inherit nothing of its debugger, run as without one, and the session says so.

use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::requirements::{has_program, report_missing};
use crate::support::scenario_sandbox::ScenarioSandbox;

/// Runs itself in the way that its argument names; the child prints its environment as far as Ruby or its debugger read it.
const RUNS_RUBY: &str = r##"
if ARGV[0] == "child"
  puts "child #{ARGV[1]} #{ENV["RUBYOPT"].inspect} #{ENV.keys.grep(/RUBY_DEBUG|DEVTETHER_RUBY/)} #{defined?(DEBUGGER__).inspect}"
  exit 3
end
child = ["ruby", __FILE__, "child", how = ARGV[0]]
case how
when "system" then system(*child)
when "shell" then system("true; ruby '#{__FILE__}' child shell; exit $?")
when "backticks" then print `ruby '#{__FILE__}' child backticks`
when "captured" then print IO.popen(child, err: [:child, :out], &:read)
when "spawn" then Process.wait(Process.spawn(*child))
when "fork" then Process.wait(fork { exec(*child) })
when "exec" then exec(*child)
end
after = how
puts "#{after} #{$?.exitstatus}"
exit 4 # STOP
"##;

const WAYS: [&str; 6] = ["system", "shell", "backticks", "captured", "spawn", "fork"];

fn printed(stage: &ScenarioSandbox) -> String {
    let output = stage.json(&["debug", "output"]);
    let entries = output["entries"].as_array().unwrap_or_else(|| panic!("{output:#}"));
    entries.iter().map(|it| it["text"].as_str().unwrap()).collect()
}

/// What the answers have said so far about children: each result carries the notices since the one before.
fn notes(answers: &[&Value]) -> String {
    answers.iter().map(|it| it["notes"].to_string()).collect()
}

fn ends_with(answer: &Value, code: i64) {
    assert_eq!((&answer["state"], &answer["exitCode"]), (&json!("TERMINATED"), &json!(code)), "{answer:#}");
}

#[test]
fn a_ruby_program_that_runs_ruby_goes_on_and_each_child_is_named() {
    for how in WAYS {
        let Some(stage) = ScenarioSandbox::with("rdbg", "runs_ruby.rb", RUNS_RUBY) else { return };
        stage.breaks("STOP");
        let stop = stage.json(&["debug", "launch", "runs_ruby.rb", "--wait", "100", "--", how]);
        stage.check(&stop, "BREAKPOINT_HIT", "STOP");
        let ended = stage.json(&["debug", "continue", "--wait", "100"]);
        ends_with(&ended, 4);
        let printed = printed(&stage);
        assert!(printed.contains(&format!("child {how} nil [] nil\n{how} 3\n")), "{printed}");
        let notes = notes(&[&stop, &ended]);
        let why = "is not debugged (rdbg debugs only the children that a program forks): ruby ";
        assert!(notes.contains(why) && notes.contains(&format!("child {how}")), "{how}: {notes}");
        stage.nothing_is_left();
    }
}

#[test]
fn a_ruby_program_that_replaces_itself_runs_on_to_its_own_end() {
    let Some(stage) = ScenarioSandbox::with("rdbg", "runs_ruby.rb", RUNS_RUBY) else { return };
    let ended = stage.json(&["debug", "launch", "runs_ruby.rb", "--wait", "100", "--", "exec"]);
    ends_with(&ended, 3);
    assert!(printed(&stage).contains("child exec nil"), "{}", printed(&stage));
    stage.nothing_is_left();
    // It takes longer than the end of a session may.
    let text = "exec('sh', '-c', 'sleep 4; echo replaced; exit 5')\n";
    stage.sandbox.write("becomes_shell.rb", text);
    let ended = stage.json(&["debug", "launch", "becomes_shell.rb", "--wait", "100"]);
    ends_with(&ended, 5);
    assert!(printed(&stage).contains("replaced"), "{}", printed(&stage));
    assert!(notes(&[&ended]).contains("continues without it"), "{ended:#}");
    stage.nothing_is_left();
}

#[test]
fn a_program_that_has_replaced_itself_can_be_detached_from_and_stopped() {
    let Some(stage) = ScenarioSandbox::with("rdbg", "sleeps.rb", "exec('sleep', '100')\n") else { return };
    for end in [&["debug", "stop"][..], &["debug", "stop", "--detach"]] {
        stage.json(&["debug", "launch", "sleeps.rb"]);
        eventually("it is replaced", || {
            stage.others().iter().any(|(_, line)| line.starts_with("sleep 100")).then_some(())
        });
        stage.json(end);
        match end.len() {
            2 => stage.nothing_is_left(),
            _ => {
                // Beside it, what reads its output.
                let left = stage.others().into_iter().find(|(_, line)| line.starts_with("sleep 100"));
                crate::support::kill(left.expect("it runs on").0, rustix::process::Signal::KILL);
                stage.nothing_is_left();
            }
        }
    }
}

#[test]
fn rake_runs_its_tests_to_the_end() {
    if !has_program("rake") {
        return report_missing("rake");
    }
    let rakefile = "require 'rake/testtask'\nRake::TestTask.new { |it| it.pattern = 'test_*.rb' }\n";
    let Some(stage) = ScenarioSandbox::with("rdbg", "Rakefile", rakefile) else { return };
    stage.sandbox.write("test_sum.rb", "puts \"ran the tests, #{2 + 2}\"\n");
    let configuration = json!({"name": "rake", "type": "rdbg", "request": "launch", "command": "rake", "script": "test",
        "args": [], "cwd": "${workspaceFolder}"});
    let launch = json!({"version": "0.2.0", "configurations": [configuration]});
    stage.sandbox.write(".vscode/launch.json", &launch.to_string());
    stage.sandbox.tether(&["trust", "--yes", "--config", "rake"]).ok();
    let ended = stage.json(&["debug", "launch", "--config", "rake", "--wait", "100"]);
    ends_with(&ended, 0);
    assert!(printed(&stage).contains("ran the tests, 4"), "{}", printed(&stage));
    assert!(notes(&[&ended]).contains("test_sum.rb"), "{ended:#}");
    stage.nothing_is_left();
}

#[test]
fn a_ruby_program_that_was_detached_from_still_runs_ruby() {
    const WAITS: &str = "\
until File.exist?('go')
  sleep 0.02
end
threads = (1..4).map { |number| Thread.new { (0...100_000).sum { |it| it % number } } }.map(&:value)
printed = `ruby -e 'print 6 * 7'`
system('ruby', '-e', 'exit 5')
system_code = $?.exitstatus
Process.wait(fork { sleep 1.5; exit! 9 }) # FORK
File.write('result.new', [threads, printed, system_code, $?.exitstatus, ENV.keys.grep(/RUBYOPT|RUBY_DEBUG/)].inspect)
File.rename('result.new', 'result')
";
    let Some(stage) = ScenarioSandbox::with("rdbg", "waits.rb", WAITS) else { return };
    stage.breaks("FORK");
    for stops in [false, true] {
        let wait: &[&str] = if stops { &["--break", "waits.rb:2", "--wait", "100"] } else { &[] };
        let launched = stage.json(&[&["debug", "launch", "waits.rb"], wait].concat());
        assert_eq!(launched["stopped"] == true, stops, "{launched:#}");
        let stopped = stage.json(&["debug", "stop", "--detach"]);
        assert!(stopped["message"].is_null(), "{stopped:#}");
        stage.sandbox.write("go", "");
        let result = stage.sandbox.path("result");
        let text = eventually("its children have run", || std::fs::read_to_string(&result).ok());
        assert_eq!(text, r#"[[0, 50000, 99999, 150000], "42", 5, 9, []]"#);
        stage.nothing_is_left();
        std::fs::remove_file(result).unwrap();
        std::fs::remove_file(stage.sandbox.path("go")).unwrap();
    }
}

/// Two workers that wait for a line before they work, as those of a server do.
const WORKERS: &str = "\
def work(number)
  total = number * 2
  total # WORK
end

writers = []
2.times do |number|
  reader, writer = IO.pipe
  writers << writer
  fork do
    writers.each(&:close)
    work(number + 20) while reader.gets
  end
  reader.close
end
puts 'up'
until File.exist?('go')
  sleep 0.02
end
writers.each do |writer|
  writer.puts 'work'
  writer.close
end
Process.waitall
work(1)
";

#[test]
fn a_breakpoint_that_is_set_after_workers_were_forked_stops_each_and_says_its_process() {
    let Some(stage) = ScenarioSandbox::with("rdbg", "workers.rb", WORKERS) else { return };
    stage.json(&["debug", "launch", "workers.rb"]);
    eventually("both are forked", || (printed(&stage).matches("Connected.").count() == 3).then_some(()));
    stage.breaks("WORK");
    stage.sandbox.write("go", "");
    let mut stopped = stage.json(&["debug", "wait", "60"]);
    let mut found = Vec::new();
    for _ in 0..3 {
        stage.check(&stopped, "BREAKPOINT_HIT", "WORK");
        let process = stage.json(&["debug", "evaluate", "Process.pid"])["result"].as_str().unwrap().to_owned();
        let thread = stopped["stopReason"]["threadName"].as_str().unwrap();
        let is_child = thread.contains(&format!("of the child process {process}"));
        found.push((ScenarioSandbox::local(&stopped, "total").to_owned(), is_child));
        stopped = stage.json(&["debug", "continue", "--wait", "60"]);
    }
    found.sort();
    assert_eq!(found, [("2".to_owned(), false), ("40".to_owned(), true), ("42".to_owned(), true)]);
    assert_eq!(stopped["state"], "TERMINATED", "{stopped:#}");
    stage.nothing_is_left();
}
