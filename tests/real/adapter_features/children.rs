//! Which children of a program stop at breakpoints, of all the ways in which a program of its language starts one.

use devtether::debug::Resume;

use crate::adapter_features::project::{Language, Project, ProjectFile};
use crate::adapter_features::sessions::{FeatureSessions, LONG};

const PYTHON: [ProjectFile; 2] = [
    (
        "app.py",
        r#"
import multiprocessing, os, subprocess, sys
import child

def main():
    subprocess.run([sys.executable, child.__file__, "subprocess"])
    process = multiprocessing.get_context("spawn").Process(target=child.run, args=("multiprocessing",))
    process.start()
    process.join()
    forked = os.fork()
    if forked == 0:
        child.run("fork")
        os._exit(0)
    os.waitpid(forked, 0)
    os.execv(sys.executable, [sys.executable, child.__file__, "exec"])

if __name__ == "__main__":
    main()
"#,
    ),
    (
        "child.py",
        r#"
import sys

def run(way):
    print("child", way, flush=True)  # CHILD

if __name__ == "__main__":
    run(sys.argv[1])
"#,
    ),
];

const JAVASCRIPT: [ProjectFile; 2] = [
    (
        "app.js",
        r#"
const { exec, fork, spawn } = require("node:child_process");
const { Worker } = require("node:worker_threads");
const child = require.resolve("./child.js");
const ended = (it) => new Promise((done) => it.on("exit", done));

(async () => {
  await ended(spawn(process.execPath, [child, "spawn"], { stdio: "inherit" }));
  await ended(fork(child, ["fork"]));
  await ended(exec(`"${process.execPath}" "${child}" exec`));
  await ended(new Worker(child, { argv: ["worker"] }));
})();
"#,
    ),
    (
        "child.js",
        r#"
const way = process.argv[2];
console.log("child", way); // CHILD
"#,
    ),
];

const RUBY: [ProjectFile; 2] = [
    (
        "app.rb",
        r#"
require_relative "child"
child = File.join(__dir__, "child.rb")
Process.wait(spawn(RbConfig.ruby, child, "spawn"))
Process.wait(fork { run("fork") })
exec(RbConfig.ruby, child, "exec")
"#,
    ),
    (
        "child.rb",
        r#"
def run(way)
  puts "child #{way}" # CHILD
end

run(ARGV[0]) if $PROGRAM_NAME == __FILE__
"#,
    ),
];

const GO: [ProjectFile; 2] = [
    (
        "app.go",
        r#"
package main

import (
	"os"
	"os/exec"
	"syscall"
)

func main() {
	if len(os.Args) > 1 {
		run(os.Args[1])
		return
	}
	own, _ := os.Executable()
	command := exec.Command(own, "exec.Command")
	command.Stdout = os.Stdout
	command.Run()
	syscall.Exec(own, []string{own, "syscall.Exec"}, os.Environ())
}
"#,
    ),
    (
        "child.go",
        r#"
package main

import "fmt"

func run(way string) {
	fmt.Println("child", way) // CHILD
}
"#,
    ),
];

const CPP: [ProjectFile; 2] = [
    (
        "app.cpp",
        r#"
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

void run(const char *way);

int main(int count, char **arguments) {
  if (count > 1) {
    run(arguments[1]);
    return 0;
  }
  pid_t child = fork();
  if (child == 0) {
    run("fork");
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  char way[] = "posix_spawn";
  char *spawned[] = {arguments[0], way, nullptr};
  posix_spawn(&child, arguments[0], nullptr, nullptr, spawned, environ);
  waitpid(child, nullptr, 0);
  execl(arguments[0], arguments[0], "exec", nullptr);
}
"#,
    ),
    (
        "child.cpp",
        r#"
#include <cstdio>

void run(const char *way) {
  printf("child %s\n", way); // CHILD
  fflush(stdout);
}
"#,
    ),
];

const JAVA: [ProjectFile; 2] = [
    (
        "App.java",
        r#"
public class App {
  public static void main(String[] arguments) throws Exception {
    String java = System.getProperty("java.home") + "/bin/java";
    String classes = System.getProperty("java.class.path");
    Child.run("loaded");
    new ProcessBuilder(java, "-cp", classes, "Child", "ProcessBuilder").inheritIO().start().waitFor();
  }
}
"#,
    ),
    (
        "Child.java",
        r#"
public class Child {
  static void run(String way) {
    System.out.println("child " + way); // CHILD
  }

  public static void main(String[] arguments) {
    run(arguments[0]);
  }
}
"#,
    ),
];

/// The files, and the ways in which the program starts its children, in that order.
fn program(language: Language) -> ([ProjectFile; 2], &'static [&'static str]) {
    match language {
        Language::Python => (PYTHON, &["subprocess", "multiprocessing", "fork", "exec"]),
        Language::JavaScript => (JAVASCRIPT, &["spawn", "fork", "exec", "worker"]),
        Language::Ruby => (RUBY, &["spawn", "fork", "exec"]),
        Language::Go => (GO, &["exec.Command", "syscall.Exec"]),
        Language::Cpp => (CPP, &["fork", "posix_spawn", "exec"]),
        Language::Java => (JAVA, &["ProcessBuilder"]),
    }
}

/// Names the children that stop, and those that do not.
pub async fn stop_in_children(adapter: &'static str) -> String {
    let (files, ways) = program(Language::of(adapter));
    let module = ("go.mod", "module example.com/app\n\ngo 1.19\n");
    let project = Project::with_files(adapter, &[files[0], files[1], module]);
    let names = files.map(|(name, _)| name);
    let program = project.program("", &names);
    let stage = FeatureSessions::of(&project.workspace);
    project.set(&stage, names[1], "CHILD").await;
    let session = stage.start(project.request(&program)).await;
    let mut stopped = Vec::new();
    loop {
        let waited = session.managed.session.wait_for_stop(LONG).await;
        let Some((_, stop)) = waited.stop else {
            assert!(session.managed.session.snapshot().is_ended(), "{adapter}: {waited:?}");
            break;
        };
        // Some stop by themselves where a program replaces itself.
        if !stop.hits.is_empty() {
            let way = session.evaluate("way").await;
            stopped.extend(ways.iter().find(|it| way.contains(**it)));
        }
        session.resume(Resume::Continue).await;
    }
    session.managed.wait_until_ended().await;
    stage.end().await;
    let list = |ways: Vec<&str>| ways.join(", ");
    let (yes, no): (Vec<&str>, Vec<&str>) = ways.iter().partition(|way| stopped.contains(way));
    match (yes.is_empty(), no.is_empty()) {
        (_, true) => format!("yes ({})", list(yes)),
        (true, _) => format!("– (not {})", list(no)),
        _ => format!("{}; not {}", list(yes), list(no)),
    }
}
