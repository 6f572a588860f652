//! lldb-dap, CodeLLDB and gdb: each launches, attaches to a process, and refuses sources.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use devtether::adapters::{ADAPTERS, Address, DebugTargetKind, FoundAdapter};
use devtether::vocabulary::StopKind;

use crate::adapters::adapter_session::{AdapterSession, ProgramFolder, found, stops_and_ends};
use crate::adapters::start_failures::Started;

/// Prints twice 21; stops in `twice`.
pub const APP: &str = "\
#include <stdio.h>
int twice(int order) {
  int total = order * 2;
  return total; // STOP
}
int main(void) {
  printf(\"%d\\n\", twice(21));
  return 0;
}
";

const SERVER: &str = "\
#include <stdio.h>
#include <unistd.h>
#include <sys/prctl.h>
int main(void) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  puts(\"up\");
  fflush(stdout);
  for (int total = 0;; total++) {
    usleep(10000); // STOP
  }
}
";

fn built(place: &ProgramFolder, name: &str, text: &str) -> (PathBuf, PathBuf, u32) {
    let (source, line) = place.file(&format!("{name}.c"), text);
    let program = place.path().join(format!("{name} built"));
    let run_command = Command::new("cc").args(["-g", "-O0", "-o"]).arg(&program).arg(&source).status().unwrap();
    assert!(run_command.success());
    (program, source, line)
}

async fn launches(adapter: &str) {
    let place = ProgramFolder::new();
    let (program, source, line) = built(&place, "äpp one", APP);
    stops_and_ends(adapter, &place.wants(DebugTargetKind::Program(program)), (&source, line), "total = 42").await;
}

async fn attaches(adapter: &str) {
    let Some((row, found)) = found(adapter) else { return };
    let place = ProgramFolder::new();
    let (program, source, line) = built(&place, "sërver", SERVER);
    let mut running = Started::of(&[program.as_os_str()], &[]);
    running.line(|line| (line == "up").then_some(())).await;
    let play =
        AdapterSession::open(row, &found, &place.wants(DebugTargetKind::Pid(running.pid())), &[(&source, line)]).await;
    play.stopped_at(line).await;
    assert!(play.evaluate("total").await.parse::<u64>().is_ok());
    play.let_go().await;
    assert!(running.is_alive());
}

/// The gdbserver of our installed gdb, and its port.
async fn gdb_stub(program: &Path) -> Option<(Started, u16)> {
    let python = found("gdb")?.1.interpreter?;
    let words = ["-I", "-m", "gdb_for_pwndbg.gdbserver", "--once", "127.0.0.1:0"].map(OsStr::new);
    let mut stub = Started::of(&[&[python.as_os_str()], &words[..], &[program.as_os_str()]].concat(), &[]);
    let port = stub.line(|line| line.strip_prefix("Listening on port ")?.parse().ok()).await;
    Some((stub, port))
}

/// The gdbserver of LLVM that lies beside its adapter, and its port.
fn llvm_stub(adapter: &FoundAdapter, program: &Path) -> Option<(Started, u16)> {
    let server = adapter.path.canonicalize().ok()?.with_file_name("lldb-server");
    let port = tempfile::NamedTempFile::new().unwrap();
    let words = ["gdbserver", "--named-pipe"].map(OsStr::new);
    let rest = [port.path().as_os_str(), "127.0.0.1:0".as_ref(), "--".as_ref(), program.as_os_str()];
    let stub = Started::of(&[&[server.as_os_str()], &words[..], &rest[..]].concat(), &[]);
    let written = || Some(std::fs::read_to_string(port.path()).ok()?.strip_suffix('\0')?.parse().unwrap());
    Some((stub, crate::support::eventually("it has written its port", written)))
}

/// With gdb's stub; LLDB before version 20 does not support its way of reporting breakpoints, and gets LLVM's.
async fn attaches_to_a_stub(adapter: &str) {
    let Some((row, at)) = found(adapter) else { return };
    let place = ProgramFolder::new();
    let (program, source, line) = built(&place, "äpp", APP);
    let real_path = at.path.canonicalize().unwrap().display().to_string();
    let is_old = ["/llvm-17/", "/llvm-18/", "/llvm-19/"].iter().any(|part| real_path.contains(part));
    let stub = if is_old { llvm_stub(&at, &program) } else { gdb_stub(&program).await };
    let Some((_stub, port)) = stub else { return };
    let mut requested = place.wants(DebugTargetKind::Listener(Address::loopback(port)));
    requested.fields.insert("program".to_owned(), program.display().to_string().into());
    let play = AdapterSession::open(row, &at, &requested, &[(&source, line)]).await;
    play.stopped_at(line).await;
    // An LLDB built without XML cannot evaluate expressions over gdbserver.
    let locals = play.locals().await;
    assert!(locals.contains(&"total = 42".to_owned()), "{adapter}: {locals:?}");
    play.end().await;
}

async fn stops_on_entry(adapter: &str) {
    let Some((row, found)) = found(adapter) else { return };
    let place = ProgramFolder::new();
    let (program, ..) = built(&place, "äpp", APP);
    let mut requested = place.wants(DebugTargetKind::Program(program));
    requested.stop_on_entry = true;
    let play = AdapterSession::open(row, &found, &requested, &[]).await;
    let waited = play.session.wait_for_stop(crate::adapters::adapter_session::LONG).await;
    // The reported reason differs: an entry, a breakpoint, a signal.
    assert!(waited.stop.is_some(), "{adapter}: {waited:?}");
    play.end().await;
}

#[tokio::test]
async fn lldb_dap_launches() {
    launches("lldb-dap").await;
}

#[tokio::test]
async fn codelldb_launches() {
    launches("codelldb").await;
}

#[tokio::test]
async fn gdb_launches() {
    launches("gdb").await;
}

/// gdb resumes the program for the call, and sends another `stopped` event.
#[tokio::test]
async fn a_function_that_is_called_leaves_the_stop_as_it_was() {
    let text =
        "int twice(int x) { return 2 * x; }\nint main(void) {\n  int x = twice(1);\n  return x - 2; // STOP\n}\n";
    for adapter in ["lldb-dap", "gdb"] {
        let Some((row, found)) = found(adapter) else { continue };
        let place = ProgramFolder::new();
        let (program, source, line) = built(&place, "cäll", text);
        let play =
            AdapterSession::open(row, &found, &place.wants(DebugTargetKind::Program(program)), &[(&source, line)])
                .await;
        let stopped = play.stopped().await;
        assert_eq!(stopped, (StopKind::BreakpointHit, i64::from(line)), "{adapter}");
        assert!(play.evaluate("twice(x) + 38").await.contains("42"), "{adapter}");
        assert_eq!(play.stopped().await, stopped, "{adapter}");
        assert!(play.locals().await.contains(&"x = 2".to_owned()), "{adapter}");
        play.end().await;
    }
}

/// gdb's `disconnect` does not wait for output, and its output reader waits for ends of lines.
#[tokio::test]
async fn the_last_output_is_received_from_gdb() {
    let Some((row, found)) = found("gdb") else { return };
    let place = ProgramFolder::new();
    let text = "#include <stdio.h>\nint main(void) {\n  puts(\"a line\");\n  fputs(\"and half\", stdout);\n}\n";
    let (program, ..) = built(&place, "läst", text);
    let mut play = AdapterSession::open(row, &found, &place.wants(DebugTargetKind::Program(program)), &[]).await;
    play.ended().await;
    let output = play.output();
    assert!(output.ends_with("a line\nand half"), "{output}");
    play.end().await;
}

#[tokio::test]
async fn each_stops_on_entry() {
    for adapter in ["lldb-dap", "codelldb", "gdb"] {
        stops_on_entry(adapter).await;
    }
}

async fn shows_rust(adapter: &str) {
    let Some((row, found)) = found(adapter) else { return };
    let place = ProgramFolder::new();
    let text = "fn main() {\n    let name = String::from(\"grün\");\n    let list = vec![1, 2, 3];\n    \
                println!(\"{name} {list:?}\"); // STOP\n}\n";
    let (source, line) = place.file("src/mäin.rs", text);
    place.file("Cargo.toml", "");
    let program = place.path().join("target/built");
    std::fs::create_dir(program.parent().unwrap()).unwrap();
    assert!(Command::new("rustc").arg("-g").arg("-o").arg(&program).arg(&source).status().unwrap().success());
    let play =
        AdapterSession::open(row, &found, &place.wants(DebugTargetKind::Program(program)), &[(&source, line)]).await;
    play.stopped_at(line).await;
    let locals = play.locals().await;
    let shown = |start: &str| locals.iter().any(|local| local.starts_with(start));
    assert!(shown("name = \"grün\""), "{adapter}: {locals:?}");
    assert!(shown("list = size=3") || shown("list = Vec(size=3)"), "{adapter}: {locals:?}");
    play.end().await;
}

#[tokio::test]
async fn each_shows_values_of_rust_as_a_reader_expects() {
    for adapter in ["lldb-dap", "codelldb", "gdb"] {
        shows_rust(adapter).await;
    }
}

#[tokio::test]
async fn lldb_dap_attaches() {
    attaches("lldb-dap").await;
}

#[tokio::test]
async fn codelldb_attaches() {
    attaches("codelldb").await;
}

#[tokio::test]
async fn gdb_attaches() {
    attaches("gdb").await;
}

#[tokio::test]
async fn each_attaches_to_what_gdbserver_serves() {
    for adapter in ["lldb-dap", "codelldb", "gdb"] {
        attaches_to_a_stub(adapter).await;
    }
}

#[test]
fn sources_and_non_executables_are_refused_with_a_hint() {
    let place = ProgramFolder::new();
    let (source, _) = place.file("ä.rs", "fn main() {}");
    let (data, _) = place.file("data", "no program");
    let anything = FoundAdapter {
        path: "/x".into(),
        interpreter: None,
        place: String::new(),
        formatters: None,
        search_path: None,
        note: None,
    };
    for name in ["lldb-dap", "codelldb", "gdb"] {
        let row = ADAPTERS.iter().find(|row| row.name == name).unwrap();
        let check = |path: &Path, part: &str, hint: &str| {
            let error = (row.plan)(&anything, &place.wants(DebugTargetKind::Program(path.to_owned()))).unwrap_err();
            assert!(error.to_string().contains(part) && error.to_string().contains(hint), "{error}");
        };
        check(&source, "it is a source", "`rustc -g ");
        check(&data, "not an executable program", "`tether debug launch` takes the program that a build makes");
    }
}
