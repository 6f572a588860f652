//! Java: what is only looked at runs no code of the program, and is shown whatever it is.

use devtether::adapters::DebugTargetKind;
use devtether::debug::inspect;
use devtether::vocabulary::StopKind;

use tether_dap::types::{CompletionsArguments, DataBreakpointInfoArguments};

use crate::adapters::adapter_session::{AdapterSession, ProgramFolder, found};

const LOOKS: &str = r#"
import java.util.Optional;

public class Looks {
  static class Late {
    static int value = 3;
    static { System.out.println("late runs"); }
  }

  static class Order {
    public String toString() { System.out.println("text runs"); return "order"; }
    boolean isPaid() { System.out.println("paid runs"); return true; }
  }

  public static void main(String[] arguments) {
    boolean ready = true;
    Order order = new Order();
    Object deep = "x";
    for (int level = 0; level < 20000; level++) {
      deep = Optional.of(deep);
    }
    System.out.println("up"); // STOP
  }
}
"#;

async fn stopped_session() -> Option<(ProgramFolder, AdapterSession)> {
    let (row, found) = found("java")?;
    let place = ProgramFolder::new();
    let (file, line) = place.file("Looks.java", LOOKS);
    let play =
        AdapterSession::open(row, &found, &place.wants(DebugTargetKind::Program(file.clone())), &[(&file, line)]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
    Some((place, play))
}

#[tokio::test]
async fn one_side_of_an_expression_runs_and_nothing_that_is_only_pointed_at() {
    let Some((_place, mut play)) = stopped_session().await else { return };
    assert_eq!(play.evaluate("ready ? \"yes\" : \"no: \" + order").await, "\"yes\"");
    assert_eq!(play.evaluate("!ready ? \"no: \" + order : 1").await, "1");
    assert_eq!(play.evaluate("ready ? 1 : Late.value").await, "1");
    assert_eq!(play.evaluate("ready || order.isPaid()").await, "true");
    assert_eq!(play.evaluate("!ready && order.isPaid()").await, "false");
    assert_eq!(play.evaluate("ready ? 1 : 2.5").await, "1.0", "the type is that of both sides");

    let completed = |text: &str| {
        let column = text.len() as i64 + 1;
        CompletionsArguments { text: text.to_owned(), column, ..CompletionsArguments::default() }
    };
    let of_class = play.session.request(0, &completed("Late.")).await.unwrap();
    assert!(of_class.targets.is_empty(), "a class that is not loaded has nothing to offer: {of_class:?}");
    let of_object = play.session.request(0, &completed("order.")).await.unwrap();
    assert!(of_object.targets.iter().any(|it| it.label == "isPaid()"), "{of_object:?}");
    let field = DataBreakpointInfoArguments { name: "Late.value".to_owned(), ..Default::default() };
    let watched = play.session.request(0, &field).await.unwrap();
    assert_eq!(watched.data_id.as_deref(), Some("Late.value"), "it is watched when its class is loaded");
    for pointed in ["Late.value", "order.toString()", "order + \"\""] {
        let error = inspect::evaluate(&play.session, pointed, None, "hover").await.unwrap_err().to_string();
        assert!(!error.is_empty(), "{pointed}");
    }
    let (_, shown) = inspect::evaluate(&play.session, "ready", None, "hover").await.unwrap();
    assert_eq!(shown.result, "true");

    // What is asked for does run.
    assert_eq!(play.evaluate("order + \"!\"").await, "\"order!\"");
    assert_eq!(play.evaluate("Late.value").await, "3");
    let waited = play.finished().await;
    assert!(waited.stop.is_none());
    play.ended().await;
    let output = play.output();
    let count = |words: &str| output.matches(words).count();
    assert_eq!((count("text runs"), count("late runs"), count("paid runs")), (1, 1, 0), "{output}");
    play.end().await;
}

#[tokio::test]
async fn values_that_are_inside_of_each_other_without_end_are_shown_to_a_depth() {
    let Some((_place, play)) = stopped_session().await else { return };
    let locals = play.locals().await;
    let deep = locals.iter().find(|it| it.starts_with("deep = ")).unwrap();
    assert!(deep.starts_with("deep = Optional[Optional[") && deep.contains('…') && deep.len() < 300, "{deep}");
    assert_eq!(play.evaluate("ready").await, "true");
    play.end().await;
}

#[tokio::test]
async fn a_string_that_is_too_large_to_be_read_is_said_so_and_ends_nothing() {
    let Some((row, found)) = found("java") else { return };
    let place = ProgramFolder::new();
    let text = "\
public class Large {
  public static void main(String[] arguments) {
    String large = \"x\".repeat(70_000_000);
    System.out.println(large.length()); // STOP
  }
}
";
    let (file, line) = place.file("Large.java", text);
    let requested = place.wants(DebugTargetKind::Program(file.clone()));
    let play = AdapterSession::open(row, &found, &requested, &[(&file, line)]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
    let locals = play.locals().await;
    assert!(locals.iter().any(|it| it.starts_with("large = <") && it.contains("70000015 bytes")), "{locals:?}");
    assert_eq!(play.evaluate("large.length()").await, "70000000");
    play.end().await;
}
