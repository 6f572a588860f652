//! What suspends the threads of a Java program, and that everything is resumed: calls that take long, pauses, evaluations at
//! the same time, leaving. Over the protocol itself, by `tether dap java`: an editor sends several requests at once.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tether_dap::types::{EvaluateArguments, InitializeArguments, OutputEvent, StoppedEvent};
use tether_dap::{DapClient, DapConnection, DapIncoming};
use tokio::process::Child;
use tokio::sync::mpsc;

use crate::support::scenario_sandbox::{Running, ScenarioSandbox};
use crate::support::{JDWP_PORT, compile_java, java_listening};

const DEADLINE: Duration = Duration::from_secs(60);
/// What "at once" is on a busy machine. How soon it is by itself, the scripted sessions hold.
const SOON: Duration = Duration::from_secs(30);

/// A session of `tether dap java`.
struct JavaClient {
    client: DapClient,
    events: mpsc::UnboundedReceiver<(String, Value)>,
    /// Events that came while another one was waited for.
    kept: Vec<(String, Value)>,
    printed: Arc<Mutex<String>>,
    adapter: Child,
}

impl JavaClient {
    async fn start(stage: &ScenarioSandbox, command: &'static str, arguments: Value, functions: &[&str]) -> JavaClient {
        let mut adapter = tokio::process::Command::from(stage.sandbox.command(["dap", "java"]));
        adapter.current_dir(&stage.sandbox.workspace).kill_on_drop(true);
        let mut adapter = adapter.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdout, stdin) = (adapter.stdout.take().unwrap(), adapter.stdin.take().unwrap());
        let (client, mut inbox, driver) = DapClient::over(DapConnection::over(stdout, stdin));
        tokio::spawn(driver);
        let (sender, events) = mpsc::unbounded_channel();
        let printed = Arc::new(Mutex::new(String::new()));
        let reading = Arc::clone(&printed);
        tokio::spawn(async move {
            while let Some(incoming) = inbox.next().await {
                let DapIncoming::Event(event) = incoming else { continue };
                if let Some(output) = event.read_body::<OutputEvent>() {
                    reading.lock().unwrap().push_str(&output.output);
                }
                let body = event.body.map_or(Value::Null, |body| serde_json::from_str(body.get()).unwrap());
                // Fails when the test has ended.
                let _ = sender.send((event.name, body));
            }
        });
        let mut java = JavaClient { client, events, kept: Vec::new(), printed, adapter };
        let initialize = InitializeArguments { adapter_id: "java".to_owned(), ..InitializeArguments::default() };
        java.client.request(&initialize, DEADLINE).await.unwrap();
        java.ask(command, arguments).await;
        java.event("initialized").await;
        let functions: Vec<Value> = functions.iter().map(|name| json!({"name": name})).collect();
        java.ask("setFunctionBreakpoints", json!({"breakpoints": functions})).await;
        java.ask("configurationDone", json!({})).await;
        java
    }

    async fn request(&self, command: &str, arguments: Value) -> Result<Value, String> {
        let arguments = Some(serde_json::value::to_raw_value(&arguments).unwrap());
        let body = self.client.request_raw(command, arguments, DEADLINE).await.map_err(|error| error.to_string())?;
        Ok(body.map_or(Value::Null, |body| serde_json::from_str(body.get()).unwrap()))
    }

    async fn ask(&self, command: &str, arguments: Value) -> Value {
        self.request(command, arguments).await.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// The next event of that name; others are kept.
    async fn event(&mut self, name: &str) -> Value {
        if let Some(at) = self.kept.iter().position(|(kept, _)| kept == name) {
            return self.kept.remove(at).1;
        }
        loop {
            let next = tokio::time::timeout(DEADLINE, self.events.recv()).await;
            let next = next.unwrap_or_else(|_| panic!("no {name}; printed: {}", self.printed.lock().unwrap()));
            let (found, body) = next.expect("the adapter runs");
            if found == name {
                return body;
            }
            self.kept.push((found, body));
        }
    }

    /// The thread of the next stop, and its top frame.
    async fn stopped(&mut self) -> (i64, i64) {
        let stopped: StoppedEvent = serde_json::from_value(self.event("stopped").await).unwrap();
        let thread = stopped.thread_id.unwrap();
        (thread, self.top_frame(thread).await)
    }

    async fn top_frame(&self, thread: i64) -> i64 {
        let stack = self.ask("stackTrace", json!({"threadId": thread})).await;
        stack["stackFrames"][0]["id"].as_i64().unwrap()
    }

    /// Waits until the program has printed that text, perhaps before now.
    async fn has_printed(&mut self, text: &str) {
        while !self.printed.lock().unwrap().contains(text) {
            self.event("output").await;
        }
    }

    /// Waits until the program prints one more line of that text.
    async fn prints(&mut self, text: &str) {
        let before = self.printed.lock().unwrap().matches(text).count();
        while self.printed.lock().unwrap().matches(text).count() == before {
            self.event("output").await;
        }
    }

    async fn leave(mut self, terminate: bool) {
        let began = Instant::now();
        self.ask("disconnect", json!({"terminateDebuggee": terminate})).await;
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        self.client.close();
        self.adapter.wait().await.unwrap();
    }
}

/// One thread that stops once, another one that prints.
const TWO_THREADS: &str = "\
public class Two {
  static long slow(long time) throws InterruptedException {
    System.out.println(\"called\");
    Thread.sleep(time);
    return time;
  }

  static long quick(long number) {
    return number;
  }

  static void stop() {
    System.out.println(\"going on\");
  }

  public static void main(String[] arguments) throws InterruptedException {
    Thread other = new Thread(() -> {
      try {
        while (true) {
          Thread.sleep(20);
          System.out.println(\"other\");
        }
      } catch (InterruptedException ended) {
      }
    }, \"other\");
    other.setDaemon(true);
    other.start();
    while (true) {
      stop();
      System.out.println(\"round\");
    }
  }
}
";

async fn two_threads() -> Option<(JavaClient, ScenarioSandbox, (i64, i64))> {
    let stage = ScenarioSandbox::with("java", "Two.java", TWO_THREADS)?;
    let program = json!({"program": stage.sandbox.path("Two.java")});
    let mut java = JavaClient::start(&stage, "launch", program, &["Two.stop"]).await;
    let stop = java.stopped().await;
    Some((java, stage, stop))
}

/// The thread comes round to its breakpoint, and evaluates there.
async fn goes_on(mut java: JavaClient) {
    let (_, frame) = java.stopped().await;
    let value = java.ask("evaluate", json!({"expression": "slow(1) + 1", "frameId": frame})).await;
    assert_eq!(value["result"], "2");
    java.leave(true).await;
}

#[tokio::test]
async fn a_resume_after_the_time_limit_of_a_call_is_done_when_the_call_returns() {
    let Some((java, _stage, (thread, frame))) = two_threads().await else { return };
    let error = java.request("evaluate", json!({"expression": "slow(9000)", "frameId": frame})).await.unwrap_err();
    assert!(error.contains("has not returned within 8s"), "{error}");
    java.ask("continue", json!({"threadId": thread})).await;
    goes_on(java).await;
}

#[tokio::test]
async fn a_resume_while_a_call_runs_is_done_when_the_call_returns() {
    let Some((mut java, _stage, (thread, frame))) = two_threads().await else { return };
    let client = java.client.clone();
    let slow = EvaluateArguments { expression: "slow(500)".to_owned(), frame_id: Some(frame), context: None };
    let evaluating = tokio::spawn(async move { client.request(&slow, DEADLINE).await });
    java.prints("called").await;
    java.ask("continue", json!({"threadId": thread})).await;
    assert_eq!(evaluating.await.unwrap().unwrap().result, "500");
    goes_on(java).await;
}

#[tokio::test]
async fn a_method_is_called_in_a_stopped_thread_during_a_pause_and_everything_runs_after_it() {
    let Some((mut java, _stage, (thread, frame))) = two_threads().await else { return };
    // Before that, its thread may have no frame yet.
    java.has_printed("other").await;
    let threads = java.ask("threads", json!({})).await;
    let other = threads["threads"].as_array().unwrap().iter().find(|thread| thread["name"] == "other").unwrap();
    java.ask("pause", json!({"threadId": other["id"]})).await;
    java.event("stopped").await;
    // One that prints may wait for ever: the paused thread may be printing, and has the lock for that.
    let value = java.ask("evaluate", json!({"expression": "quick(1) + 4", "frameId": frame})).await;
    assert_eq!(value["result"], "5");
    // A thread that has not stopped by itself.
    let paused = java.top_frame(other["id"].as_i64().unwrap()).await;
    let error = java.request("evaluate", json!({"expression": "Two.slow(1)", "frameId": paused})).await.unwrap_err();
    assert!(error.contains("a method can be called only in a thread that has stopped"), "{error}");
    java.ask("continue", json!({"threadId": thread})).await;
    java.prints("other").await;
    goes_on(java).await;
}

#[tokio::test]
async fn evaluations_that_are_sent_at_once_all_have_their_values() {
    let Some((java, _stage, (thread, frame))) = two_threads().await else { return };
    let evaluate = |text: &'static str| java.request("evaluate", json!({"expression": text, "frameId": frame}));
    let stack = java.request("stackTrace", json!({"threadId": thread}));
    let (first, second, third, stack) =
        tokio::join!(evaluate("slow(200)"), evaluate("slow(100)"), evaluate("1 + 1"), stack);
    assert_eq!([first, second, third].map(|value| value.unwrap()["result"].clone()), ["200", "100", "2"]);
    assert!(stack.unwrap()["stackFrames"][0]["name"].as_str().unwrap().contains("stop"));
    java.ask("continue", json!({"threadId": thread})).await;
    goes_on(java).await;
}

/// A pool whose work is the same in each run.
const POOL: &str = "\
import java.util.*;
import java.util.concurrent.*;

public class Pool {
  static int twice(int number) {
    return number * 2;
  }

  public static void main(String[] arguments) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(4);
    List<Future<Integer>> results = new ArrayList<>();
    for (int number = 0; number < 200; number++) {
      int each = number;
      results.add(pool.submit(() -> {
        Thread.sleep(5);
        return twice(each);
      }));
    }
    int sum = 0;
    for (Future<Integer> result : results) {
      sum += result.get();
    }
    pool.shutdown();
    System.out.println(\"sum \" + sum);
    System.exit(pool.awaitTermination(30, TimeUnit.SECONDS) ? 7 : 8);
  }
}
";

#[tokio::test]
async fn a_program_with_a_pool_ends_as_it_would_after_stops_a_pause_a_call_and_a_detach() {
    let Some(stage) = ScenarioSandbox::with("java", "Pool.java", POOL) else { return };
    compile_java(&stage.sandbox.path("Pool.java"));
    let mut command = java_listening(&stage.sandbox.workspace, "Pool", true);
    command.current_dir(&stage.sandbox.workspace).envs(stage.sandbox.variables());
    let mut running = Running(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    let mut output = std::io::BufReader::new(running.0.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let port: u16 = line.trim().strip_prefix(JDWP_PORT).unwrap().parse().unwrap();
    let attach = json!({"port": port, "hostName": "127.0.0.1", "stopOnEntry": false});
    let mut java = JavaClient::start(&stage, "attach", attach, &["Pool.twice"]).await;
    let (first, _) = java.stopped().await;
    java.ask("continue", json!({"threadId": first})).await;
    // Several threads of the pool stop, each at its own breakpoint.
    java.stopped().await;
    let (stopped, frame) = java.stopped().await;
    java.ask("pause", json!({"threadId": stopped})).await;
    let value = java.ask("evaluate", json!({"expression": "twice(21)", "frameId": frame})).await;
    assert_eq!(value["result"], "42");
    // One call is still running.
    let endless = java.request("evaluate", json!({"expression": "java.lang.Thread.sleep(500)", "frameId": frame}));
    let leaving = java.request("disconnect", json!({"terminateDebuggee": false}));
    let (_, left) = tokio::join!(endless, leaving);
    left.unwrap();
    java.client.close();
    java.adapter.wait().await.unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut output, &mut rest).unwrap();
    // After a detach, the virtual machine listens again.
    let own: Vec<&str> = rest.lines().filter(|line| !line.starts_with(JDWP_PORT)).collect();
    assert_eq!((own, running.0.wait().unwrap().code()), (vec!["sum 39800"], Some(7)));
}

#[tokio::test]
async fn a_program_that_starts_threads_without_end_is_paused_and_left_at_once() {
    let text = "\
public class Many {
  public static void main(String[] arguments) {
    System.out.println(\"up\");
    while (true) {
      new Thread(() -> {}).start();
    }
  }
}
";
    let Some(stage) = ScenarioSandbox::with("java", "Many.java", text) else { return };
    let mut java = JavaClient::start(&stage, "launch", json!({"program": stage.sandbox.path("Many.java")}), &[]).await;
    java.has_printed("up").await;
    for _ in 0..3 {
        // The program runs, and starts threads.
        for _ in 0..200 {
            java.event("thread").await;
        }
        let began = Instant::now();
        java.ask("pause", json!({"threadId": 1})).await;
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        java.ask("threads", json!({})).await;
        java.ask("continue", json!({"threadId": 1})).await;
    }
    java.leave(true).await;
}

#[tokio::test]
async fn a_program_is_left_at_once_after_a_value_that_is_too_large_for_a_packet() {
    let text = "\
public class Large {
  public static void main(String[] arguments) {
    String text = \"x\".repeat(70_000_000);
    stop(text);
  }

  static void stop(String text) {
    System.out.println(text.length());
  }
}
";
    let Some(stage) = ScenarioSandbox::with("java", "Large.java", text) else { return };
    let program = json!({"program": stage.sandbox.path("Large.java")});
    let mut java = JavaClient::start(&stage, "launch", program, &["Large.stop"]).await;
    let (thread, frame) = java.stopped().await;
    let scopes = java.ask("scopes", json!({"frameId": frame})).await;
    let _ = java.request("variables", json!({"variablesReference": scopes["scopes"][0]["variablesReference"]})).await;
    let _ = java.request("stackTrace", json!({"threadId": thread})).await;
    java.leave(true).await;
}

#[tokio::test]
async fn the_last_output_of_a_program_arrives_whole() {
    let text = "\
public class Prints {
  public static void main(String[] arguments) {
    for (int line = 0; line < 30000; line++) {
      System.out.println(\"line \" + line);
    }
    throw new IllegalStateException(\"the last word\");
  }
}
";
    let Some(stage) = ScenarioSandbox::with("java", "Prints.java", text) else { return };
    let program = json!({"program": stage.sandbox.path("Prints.java")});
    let mut java = JavaClient::start(&stage, "launch", program, &[]).await;
    assert_eq!(java.event("exited").await["exitCode"], 1);
    java.event("terminated").await;
    let printed = java.printed.lock().unwrap().clone();
    assert_eq!(printed.matches("line ").count(), 30000);
    assert!(
        printed.contains("IllegalStateException: the last word") && printed.contains("at Prints.main"),
        "{printed}"
    );
    java.leave(true).await;
}

#[tokio::test]
async fn everything_that_is_reached_at_one_place_is_reported() {
    let text = "\
public class Both {
  static int total = 1;

  static int first() { return 1; }
  static int second() { return 2; }

  public static void main(String[] arguments) {
    first();
    second();
    total++;
  }
}
";
    let Some(stage) = ScenarioSandbox::with("java", "Both.java", text) else { return };
    let program = json!({"program": stage.sandbox.path("Both.java"), "stopOnEntry": true});
    let mut java = JavaClient::start(&stage, "launch", program, &["Both.first:exit", "Both.second:exit"]).await;
    let watches = json!({"breakpoints": [
        {"dataId": "Both.total", "accessType": "read"},
        {"dataId": "Both.total", "accessType": "readWrite"},
        {"dataId": "Both.total", "accessType": "write"},
    ]});
    let (thread, _) = java.stopped().await;
    let set = java.ask("setDataBreakpoints", watches).await;
    let ids: Vec<i64> = set["breakpoints"].as_array().unwrap().iter().map(|it| it["id"].as_i64().unwrap()).collect();
    let mut next = async || {
        java.ask("continue", json!({"threadId": thread})).await;
        let stopped: StoppedEvent = serde_json::from_value(java.event("stopped").await).unwrap();
        let mut hit = stopped.hit_breakpoint_ids;
        hit.sort_unstable();
        (stopped.reason, hit)
    };
    let (first, second) = (next().await, next().await);
    assert_eq!((first.0.as_str(), first.1.len()), ("method exit", 1));
    assert_eq!((second.0.as_str(), second.1.len()), ("method exit", 1));
    assert_ne!(first.1, second.1);
    assert_eq!(next().await, ("data breakpoint".to_owned(), vec![ids[0], ids[1]]));
    assert_eq!(next().await, ("data breakpoint".to_owned(), vec![ids[1], ids[2]]));
    java.leave(true).await;
}
