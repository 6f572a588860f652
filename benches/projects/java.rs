//! Java: a program with a hundred thousand virtual threads.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::client::median;
use crate::{call, open, run, tell, tools, workspace, write};

const THREADS: usize = 100_000;
const PORT: &str = "Listening for transport dt_socket at address: ";

const VIRTUAL: &str = "\
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

public class Virtual {
  public static void main(String[] arguments) throws Exception {
    int count = Integer.parseInt(arguments[0]);
    CountDownLatch ready = new CountDownLatch(count);
    for (int number = 0; number < count; number++) {
      Thread.startVirtualThread(() -> {
        ready.countDown();
        LockSupport.park();
      });
    }
    ready.await();
    System.out.println(\"up\");
    LockSupport.park();
  }
}
";

fn jdk(version: u32) -> PathBuf {
    tools().join(format!("jdk{version}"))
}

/// Attach → the first threads listed, the others counted.
pub fn many_threads(tether: &Path, runs: usize) {
    for version in [21, 25] {
        let jdk = jdk(version);
        let sandbox = workspace(tether);
        write(&sandbox, "Virtual.java", VIRTUAL);
        run(Command::new(jdk.join("bin/javac")).args(["-g", "Virtual.java"]).current_dir(&sandbox.workspace));
        let agent = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0,includevirtualthreads=y";
        let mut command = Command::new(jdk.join("bin/java"));
        command.args([agent, "Virtual", &THREADS.to_string()]).current_dir(&sandbox.workspace);
        let mut program = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut next = || lines.next().unwrap();
        let read_port = |line: String| -> u16 { line.strip_prefix(PORT).unwrap().parse().unwrap() };
        let mut port = read_port(next());
        assert_eq!(next(), "up");
        let mut client = open(&sandbox, ".");
        let mut took = vec![];
        for _ in 0..=runs {
            let begun = Instant::now();
            call(&mut client, "debug_attach", json!({"port": port, "language": "java"}));
            let status = call(&mut client, "debug_status", json!({})).1;
            took.push(begun.elapsed());
            assert!(status["unlistedThreads"].as_u64().is_some_and(|count| count > 90_000), "{status:#}");
            call(&mut client, "debug_stop", json!({}));
            // It listens anew, on another port.
            port = read_port(next());
        }
        let median = median(took.split_off(1));
        let what = format!("JDK {version} with {THREADS} virtual threads: attach → threads listed");
        tell(&what, &format!("{median:.2?}"), "≤ 300 ms", median.as_millis() <= 300);
        program.kill().unwrap();
        program.wait().unwrap();
    }
}
