//! Programs whose workers are alive when they end: launched, they end as they do without us; attached to and left, too.

use std::path::Path;

use serde_json::json;

use super::conversation::{ListeningProgram, NodeConversation};
use crate::support::requirements::{installed_nodes, installed_tool};

/// A program, and how it ends.
struct EndingProgram {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// Node's options and the program; `TSX` stands for the package's folder.
    words: &'static [&'static str],
    exit_code: i64,
    output: &'static str,
}

/// With `wait` as its argument it ends once something comes on its input; else once its worker runs.
const WORKER: &str = "
const { Worker } = require('node:worker_threads');
const worker = new Worker('setInterval(() => {}, 1000)', { eval: true });
const isWaiting = process.argv[2] === 'wait';
worker.once('online', () => {
  if (!isWaiting) return end(worker);
  console.log('up');
  process.stdin.once('data', () => { process.stdin.destroy(); end(worker); });
});
";
const EXIT: &str = "const end = () => { console.log('ends'); process.exit(3); };";
const UNREF: &str = "const end = (worker) => { console.log('ends'); worker.unref(); };";
const THROW: &str = "const end = () => { console.log('ends'); throw new Error('too far'); };";
const TERMINATE: &str = "const end = async (worker) => { console.log('ends', await worker.terminate()); };";
const HOOKS: &str = "export async function load(url, context, next) { return next(url, context); }\n";
/// As [`WORKER`], without one.
const HOOKED: &str = "
const end = () => console.log('ends');
if (process.argv[2] !== 'wait') end();
else {
  console.log('up');
  process.stdin.once('data', () => { process.stdin.destroy(); end(); });
}
export {};
";
const REGISTER: &str = "import { register } from 'node:module';
register('./hooks.mjs', import.meta.url);
await import('./hooked.mjs');
";
const HOOKED_FILES: &[(&str, &str)] =
    &[("hooks.mjs", HOOKS), ("hooked.mjs", HOOKED), ("hooked.ts", HOOKED), ("register.mjs", REGISTER)];

const fn worker_program(
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    exit_code: i64,
    output: &'static str,
) -> EndingProgram {
    EndingProgram { name, files, words: &["app.js"], exit_code, output }
}

const PROGRAMS: [EndingProgram; 9] = [
    worker_program("process.exit", &[("app.js", EXIT)], 3, "ends\n"),
    worker_program("an unref'd worker", &[("app.js", UNREF)], 0, "ends\n"),
    worker_program("an uncaught error", &[("app.js", THROW)], 1, "ends\n"),
    worker_program("a terminated worker", &[("app.js", TERMINATE)], 0, "ends 1\n"),
    EndingProgram {
        name: "module.register",
        files: HOOKED_FILES,
        words: &["register.mjs"],
        exit_code: 0,
        output: "ends\n",
    },
    EndingProgram {
        name: "--import with module.register",
        files: HOOKED_FILES,
        words: &["--import", "./register.mjs", "hooked.mjs"],
        exit_code: 0,
        output: "ends\n",
    },
    EndingProgram {
        name: "--loader",
        files: HOOKED_FILES,
        words: &["--loader", "./hooks.mjs", "hooked.mjs"],
        exit_code: 0,
        output: "ends\n",
    },
    EndingProgram {
        name: "--import tsx",
        files: HOOKED_FILES,
        words: &["--import", "TSX/dist/loader.mjs", "hooked.ts"],
        exit_code: 0,
        output: "ends\n",
    },
    EndingProgram {
        name: "tsx",
        files: HOOKED_FILES,
        words: &["TSX/dist/cli.mjs", "hooked.ts"],
        exit_code: 0,
        output: "ends\n",
    },
];

impl EndingProgram {
    /// Writes its files; returns its words. `None`, reported: what it needs is not installed.
    fn write(&self, folder: &Path) -> Option<Vec<String>> {
        for (name, text) in self.files {
            let text = if *name == "app.js" { format!("{text}{WORKER}") } else { (*text).to_owned() };
            std::fs::write(folder.join(name), text).unwrap();
        }
        if !self.words.iter().any(|word| word.starts_with("TSX")) {
            return Some(self.words.iter().map(|word| (*word).to_owned()).collect());
        }
        let tsx = installed_tool("tsx/node_modules/tsx")?;
        Some(self.words.iter().map(|word| word.replace("TSX", &tsx.display().to_string())).collect())
    }
}

#[tokio::test]
async fn a_program_whose_worker_is_alive_at_its_end_ends_under_the_debugger() {
    for node in installed_nodes() {
        for program in &PROGRAMS {
            let folder = tempfile::tempdir().unwrap();
            let Some(words) = program.write(folder.path()) else { continue };
            let arguments = json!({"runtimeExecutable": node, "runtimeArgs": words, "cwd": folder.path()});
            let conversation = NodeConversation::begin("launch", arguments).await;
            conversation.configure().await;
            let (exit_code, output) = conversation.ends().await;
            let what = format!("{} under {}: {output}", program.name, node.display());
            assert_eq!(exit_code, Some(program.exit_code), "{what}");
            assert!(output.contains(program.output), "{what}");
        }
    }
}

/// Detached from while its worker runs, or while it waits for its end with the debugger.
#[tokio::test]
async fn a_program_that_was_attached_to_ends_with_us_and_without_us_though_its_worker_is_alive() {
    for node in installed_nodes() {
        for program in &PROGRAMS {
            for is_left in [true, false] {
                let folder = tempfile::tempdir().unwrap();
                let Some(mut words) = program.write(folder.path()) else { continue };
                words.push("wait".to_owned());
                let mut running = ListeningProgram::start(&node, &words, folder.path()).await;
                running.prints("up").await;
                let conversation = NodeConversation::begin("attach", running.arguments(folder.path())).await;
                conversation.configure().await;
                if is_left {
                    conversation.detach().await;
                    let ended = running.end().await;
                    assert_eq!(ended.0.map(i64::from), Some(program.exit_code), "{} {ended:?}", program.name);
                } else {
                    let (ended, (_, _)) = tokio::join!(running.end(), conversation.ends());
                    assert_eq!(ended.0.map(i64::from), Some(program.exit_code), "{} {ended:?}", program.name);
                    assert!(ended.1.contains(program.output), "{} {ended:?}", program.name);
                }
            }
        }
    }
}

/// It makes one worker after the other: some are made, and have not started, when it is left.
const WORKERS: &str = "\
const { Worker } = require('node:worker_threads');
(async () => {
  console.log('up');
  for (let made = 0; made < 30; made++) {
    const worker = new Worker('', { eval: true });
    await new Promise((exited) => worker.once('exit', exited));
  }
  console.log('ends');
})();
";

#[tokio::test]
async fn a_worker_that_starts_while_its_program_is_left_does_not_wait_for_us() {
    for node in installed_nodes() {
        for _ in 0..3 {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("app.js"), WORKERS).unwrap();
            let mut running = ListeningProgram::start(&node, &["app.js".to_owned()], folder.path()).await;
            running.prints("up").await;
            let conversation = NodeConversation::begin("attach", running.arguments(folder.path())).await;
            conversation.configure().await;
            conversation.detach().await;
            let (exit_code, output) = running.end().await;
            assert!(exit_code == Some(0) && output.contains("ends"), "{} {exit_code:?} {output}", node.display());
        }
    }
}
