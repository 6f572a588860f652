//! Java: a source file, a class of a project, a jar, a module's class; a program that listens.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use devtether::adapters::{Address, DebugTargetKind, FoundAdapter};
use devtether::vocabulary::StopKind;

use serde_json::json;

use crate::adapters::adapter_session::{AdapterSession, ProgramFolder, found, stops_and_ends};
use crate::adapters::start_failures::Started;
use crate::support::{JDWP_PORT, compile_java, java_listening};

const APP: &str = "\
public class App {
  static int twice(int order) {
    int total = order * 2;
    return total; // STOP
  }

  public static void main(String[] arguments) {
    System.out.println(twice(21));
  }
}
";

const SERVER: &str = "\
public class Server {
  public static void main(String[] arguments) throws InterruptedException {
    System.out.println(\"up\");
    for (int total = 0; ; total++) {
      Thread.sleep(10); // STOP
    }
  }
}
";

fn configuration(fields: serde_json::Value) -> serde_json::Map<String, serde_json::Value> {
    fields.as_object().unwrap().clone()
}

#[tokio::test]
async fn a_file_is_compiled_and_debugged_and_nothing_is_left_beside_it() {
    let place = ProgramFolder::new();
    // In the folder of its package; a public class has the name of its file.
    let text = format!("package org.example;\n\n{APP}");
    let (app, line) = place.file("org/example/App.java", &text);
    stops_and_ends("java", &place.wants(DebugTargetKind::Program(app.clone())), (&app, line), "total = 42").await;
    let names = std::fs::read_dir(app.parent().unwrap()).unwrap().count();
    assert_eq!(names, 1);
}

/// A JDK in a folder whose compiler writes a line for each of its runs into `runs`.
fn counting_jdk(folder: &Path, real: &FoundAdapter) -> FoundAdapter {
    let script = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    script("javac", format!("echo run >> '{}'; exec javac \"$@\"", folder.join("runs").display()));
    let java = script("java", format!("exec '{}' \"$@\"", real.path.display()));
    FoundAdapter { path: java, ..real.clone() }
}

#[tokio::test]
async fn a_source_is_compiled_once_for_its_text_and_not_at_all_where_a_newer_class_lies_beside_it() {
    let Some((row, found)) = found("java") else { return };
    let (jdk, place) = (tempfile::tempdir().unwrap(), ProgramFolder::new());
    let counting = counting_jdk(jdk.path(), &found);
    let runs = || std::fs::read_to_string(jdk.path().join("runs")).unwrap_or_default().lines().count();
    let text = APP.replace("order * 2", "Factor.two() * order");
    let (app, line) = place.file("App.java", &text);
    let factor =
        |two: &str| place.file("Factor.java", &format!("class Factor {{ static int two() {{ return {two}; }} }}\n")).0;
    factor("2");
    let requested = place.wants(DebugTargetKind::Program(app.clone()));
    let total_of_run = async || {
        let play = AdapterSession::open(row, &counting, &requested, &[(&app, line)]).await;
        assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
        let total = play.evaluate("total").await;
        play.end().await;
        total
    };
    assert_eq!((total_of_run().await.as_str(), runs()), ("42", 1));
    assert_eq!((total_of_run().await.as_str(), runs()), ("42", 1), "the same text");
    let changed = factor("3");
    assert_eq!((total_of_run().await.as_str(), runs()), ("63", 2), "a source that it needs has changed");
    factor("2");
    assert_eq!((total_of_run().await.as_str(), runs()), ("42", 3), "the newest compilation is kept");

    // Without the tables of a debugger, a class beside its source is of no use.
    let compile = |options: &[&str], source: &Path| {
        let mut compiled = Command::new("javac");
        compiled.args(options).arg("-d").arg(place.path()).arg("-cp").arg(place.path());
        assert!(compiled.arg(source).env("LC_ALL", "C.UTF-8").status().unwrap().success());
    };
    factor("4");
    compile(&["-g:lines"], &changed);
    compile(&["-g:lines"], &app);
    assert_eq!((total_of_run().await.as_str(), runs()), ("84", 4));
    factor("5");
    compile(&["-g"], &changed);
    compile(&["-g"], &app);
    assert_eq!((total_of_run().await.as_str(), runs()), ("105", 4), "the classes beside the sources");
    factor("6");
    std::fs::File::open(place.path().join("Factor.class"))
        .unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    assert_eq!((total_of_run().await.as_str(), runs()), ("126", 5), "a class beside is older than its source");
}

#[tokio::test]
async fn a_class_of_a_maven_project_is_debugged_by_its_name_and_by_its_file() {
    let Some((row, found)) = found("java") else { return };
    let place = ProgramFolder::new();
    place.file("pom.xml", "<project/>");
    let (app, line) = place.file("src/main/java/org/example/App.java", &format!("package org.example;\n\n{APP}"));
    let classes = place.path().join("target/classes");
    let compiled = Command::new("javac").args(["-g", "-d"]).args([&classes, &app]).env("LC_ALL", "C.UTF-8").status();
    assert!(compiled.unwrap().success());
    let mut by_class = place.wants(DebugTargetKind::Configuration);
    by_class.fields = configuration(json!({"request": "launch", "mainClass": "org.example.App"}));
    for requested in [by_class, place.wants(DebugTargetKind::Program(app.clone()))] {
        let play = AdapterSession::open(row, &found, &requested, &[(&app, line)]).await;
        assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
        assert_eq!(play.evaluate("order").await, "21");
        play.end().await;
    }
}

#[tokio::test]
async fn a_jar_is_debugged_with_its_arguments_and_environment() {
    let Some((row, found)) = found("java") else { return };
    let place = ProgramFolder::new();
    let text = APP
        .replace("twice(21)", "arguments[0] + System.getenv(\"GREETING\") + System.getProperty(\"own\") + twice(21)");
    let (app, line) = place.file("App.java", &text);
    compile_java(&app);
    let jar = place.path().join("app.jar");
    let made = Command::new("jar")
        .args(["--create", "--main-class", "App", "--file"])
        .arg(&jar)
        .arg("-C")
        .arg(place.path())
        .arg("App.class")
        .env("LC_ALL", "C.UTF-8")
        .status();
    assert!(made.unwrap().success());
    std::fs::remove_file(place.path().join("App.class")).unwrap();
    let mut requested = place.wants(DebugTargetKind::Program(jar));
    requested.args = vec!["a b".to_owned()];
    requested.env.insert("GREETING".to_owned(), Some("hello".to_owned()));
    requested.fields = configuration(json!({"vmArgs": "-Down=property"}));
    let mut play = AdapterSession::open(row, &found, &requested, &[(&app, line)]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
    play.finished().await;
    play.left(true).await;
    let output = play.output();
    play.end().await;
    assert!(output.contains("a bhelloproperty42"), "{output}");
}

#[tokio::test]
async fn a_program_that_listens_is_attached_to_left_and_attached_to_again() {
    let Some((row, found)) = found("java") else { return };
    let place = ProgramFolder::new();
    let (server, line) = place.file("Server.java", SERVER);
    compile_java(&server);
    let mut running = started(&place.path(), "Server");
    for _ in 0..2 {
        // After each debugger it prints a new port.
        let port = running.line(port_of).await;
        let requested = place.wants(DebugTargetKind::Listener(Address::loopback(port)));
        let play = AdapterSession::open(row, &found, &requested, &[(&server, line)]).await;
        play.stopped_at(line).await;
        assert!(play.evaluate("total").await.parse::<u64>().is_ok());
        play.let_go().await;
        assert!(running.is_alive());
    }
}

fn started(folder: &Path, class: &str) -> Started {
    let command = java_listening(folder, class, false);
    let argv: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    Started::of(&argv, &[("LC_ALL", OsStr::new("C.UTF-8"))])
}

fn port_of(line: &str) -> Option<u16> {
    line.strip_prefix(JDWP_PORT)?.parse().ok()
}
