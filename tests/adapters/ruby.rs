//! rdbg: a script with arguments, and a program that listens.

use devtether::adapters::What;
use devtether::debug::StopKind;

use crate::stage::{Place, Play, found, stops_and_ends};

const APP: &str = "\
def double(order)
  total = order * 2
  total # STOP
end
puts double(21)
";

#[tokio::test]
async fn a_script_is_debugged() {
    let place = Place::new();
    let (app, line) = place.file("äpp one.rb", APP);
    stops_and_ends("rdbg", &place.wants(What::Program(app.clone())), (&app, line), "total = 42").await;
}

#[tokio::test]
async fn what_it_prints_is_told_before_its_end_and_its_arguments_are_its_own() {
    let Some((row, found)) = found("rdbg") else { return };
    let place = Place::new();
    let (app, line) = place.file("ärgs.rb", "puts 'up'\nwords = ARGV + [ENV['WÖRD']]\nwords.size # STOP\n");
    let mut wanted = place.wants(What::Program(app.clone()));
    wanted.args = vec!["--open".to_owned(), "a b".to_owned()];
    wanted.env = [("WÖRD".to_owned(), Some("grün".to_owned()))].into();
    let mut play = Play::open(row, &found, &wanted, &[(&app, line)]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
    assert_eq!(play.evaluate("words").await, r#"["--open", "a b", "grün"]"#);
    play.says("up\n").await;
    play.end().await;
}
