//! rdbg: a script with arguments, and a program that listens.

use devtether::adapters::{Address, DebugTargetKind};
use devtether::vocabulary::StopKind;

use crate::adapters::adapter_session::{AdapterSession, ProgramFolder, found, stops_and_ends};

const APP: &str = "\
def double(order)
  total = order * 2
  total # STOP
end
puts double(21)
";

#[tokio::test]
async fn a_script_is_debugged() {
    let place = ProgramFolder::new();
    let (app, line) = place.file("äpp one.rb", APP);
    stops_and_ends("rdbg", &place.wants(DebugTargetKind::Program(app.clone())), (&app, line), "total = 42").await;
}

#[tokio::test]
async fn its_output_arrives_before_its_end_and_its_arguments_are_passed() {
    let Some((row, found)) = found("rdbg") else { return };
    let place = ProgramFolder::new();
    let (app, line) = place.file("ärgs.rb", "puts 'up'\nwords = ARGV + [ENV['WÖRD']]\nwords.size # STOP\n");
    let mut requested = place.wants(DebugTargetKind::Program(app.clone()));
    requested.args = vec!["--open".to_owned(), "a b".to_owned()];
    requested.env = [("WÖRD".to_owned(), Some("grün".to_owned()))].into();
    let mut play = AdapterSession::open(row, &found, &requested, &[(&app, line)]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
    assert_eq!(play.evaluate("words").await, r#"["--open", "a b", "grün"]"#);
    play.says("up\n").await;
    play.end().await;
}

#[tokio::test]
async fn a_program_that_listens_is_attached_to() {
    let Some((row, found)) = found("rdbg") else { return };
    let place = ProgramFolder::new();
    let (app, line) = place.file("sërver.rb", "total = 0\nloop do\n  total += 1\n  sleep 0.01 # STOP\nend\n");
    let options = ["--open", "--port", "0", "--nonstop", "--"].map(std::ffi::OsStr::new);
    let argv = [&[found.path.as_os_str()], &options[..], &[app.as_os_str()]].concat();
    let mut program = crate::adapters::start_failures::Started::of(&argv, &[]);
    let port = |line: &str| line.split("TCP/IP (127.0.0.1:").nth(1)?.trim_end_matches(')').parse().ok();
    let port: u16 = program.line(port).await;
    let requested = place.wants(DebugTargetKind::Listener(Address::loopback(port)));
    let play = AdapterSession::open(row, &found, &requested, &[(&app, line)]).await;
    play.stopped_at(line).await;
    assert!(play.evaluate("total").await.parse::<u64>().is_ok());
    play.let_go().await;
}
