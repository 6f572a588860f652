//! Delve: a source file, a package of a module, its tests, a built program, a process.

use std::path::{Path, PathBuf};
use std::process::Command;

use devtether::adapters::{Address, DebugTargetKind};
use devtether::vocabulary::StopKind;

use crate::adapters::adapter_session::{AdapterSession, ProgramFolder, found, stops_and_ends};

const APP: &str = "\
package main

import \"fmt\"

func double(order int) int {
\ttotal := order * 2
\treturn total // STOP
}

func main() {
\tfmt.Println(double(21))
}
";

fn module(place: &ProgramFolder) -> (PathBuf, u32) {
    place.file("möd/go.mod", "module example.org/mod\n\ngo 1.19\n");
    place.file("möd/äpp one.go", APP)
}

fn nothing_is_left_beside(source: &Path) {
    let names = std::fs::read_dir(source.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    let built: Vec<_> = names.filter(|name| name.to_string_lossy().contains("debug")).collect();
    assert!(built.is_empty(), "{built:?}");
}

#[tokio::test]
async fn a_file_without_a_module_is_debugged() {
    let place = ProgramFolder::new();
    let (app, line) = place.file("äpp one.go", APP);
    stops_and_ends("dlv", &place.wants(DebugTargetKind::Program(app.clone())), (&app, line), "total = 42").await;
    nothing_is_left_beside(&app);
}

#[tokio::test]
async fn the_package_of_a_file_or_of_a_folder_is_debugged() {
    let place = ProgramFolder::new();
    let (app, line) = module(&place);
    // A file without which the package does not build.
    place.file("möd/more.go", "package main\n\nfunc init() { double(more) }\n\nconst more = 0\n");
    let (folder, _) = (app.parent().unwrap().to_owned(), ());
    let Some((row, found)) = found("dlv") else { return };
    for program in [app.clone(), folder] {
        let play =
            AdapterSession::open(row, &found, &place.wants(DebugTargetKind::Program(program)), &[(&app, line)]).await;
        assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
        assert_eq!(play.evaluate("order").await, "0");
        play.end().await;
    }
    nothing_is_left_beside(&app);
}

#[tokio::test]
async fn a_test_is_debugged_by_its_file() {
    let Some((row, found)) = found("dlv") else { return };
    let place = ProgramFolder::new();
    let (app, line) = module(&place);
    let text = "package main\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {\n\tif double(4) != 8 {\n\t\tt.Fatal()\n\t}\n}\n";
    let (test, _) = place.file("möd/app_test.go", text);
    let mut requested = place.wants(DebugTargetKind::Program(test));
    requested.args = vec!["-test.run".to_owned(), "^TestIt$".to_owned()];
    let play = AdapterSession::open(row, &found, &requested, &[(&app, line)]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
    assert_eq!(play.evaluate("order").await, "4");
    play.end().await;
    nothing_is_left_beside(&app);
}

#[tokio::test]
async fn a_program_that_is_built_and_a_process_are_debugged() {
    let Some((row, found)) = found("dlv") else { return };
    let place = ProgramFolder::new();
    let text = "package main\n\nimport \"fmt\"\nimport \"time\"\n\nfunc main() {\n\tfmt.Println(\"up\")\n\tfor total := 0; ; total++ {\n\t\ttime.Sleep(10 * time.Millisecond) // STOP\n\t}\n}\n";
    let (app, line) = place.file("sërver.go", text);
    let program = place.path().join("sërver built");
    let built = Command::new("go")
        .args(["build", "-gcflags=all=-N -l", "-o"])
        .arg(&program)
        .arg(&app)
        .current_dir(place.path())
        .status();
    assert!(built.unwrap().success());
    let requested = place.wants(DebugTargetKind::Program(program.clone()));
    let play = AdapterSession::open(row, &found, &requested, &[(&app, line)]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
    play.end().await;

    let words = ["exec", "--headless", "--listen=127.0.0.1:0"].map(std::ffi::OsStr::new);
    let argv = [&[found.path.as_os_str()], &words[..], &[program.as_os_str()]].concat();
    let mut server = crate::adapters::start_failures::Started::of(&argv, &[]);
    let port: u16 = server.line(|line| line.split("listening at: 127.0.0.1:").nth(1)?.parse().ok()).await;
    let requested = place.wants(DebugTargetKind::Listener(Address::loopback(port)));
    let play = AdapterSession::open(row, &found, &requested, &[(&app, line)]).await;
    play.stopped_at(line).await;
    play.end().await;

    let mut running = crate::adapters::start_failures::Started::of(&[program.as_os_str()], &[]);
    running.line(|line| (line == "up").then_some(())).await;
    let play =
        AdapterSession::open(row, &found, &place.wants(DebugTargetKind::Pid(running.pid())), &[(&app, line)]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
    assert!(play.evaluate("total").await.parse::<u64>().is_ok());
    play.let_go().await;
    assert!(running.is_alive());
}
