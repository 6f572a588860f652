//! One request to `tether`, over a connection or as a process of its own, and its answer, which comes in time.

use std::io;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{CommandOutput, Sandbox, kill};

/// How much longer than its own time a request may take.
pub const GRACE: Duration = Duration::from_secs(30);

/// What is requested.
#[derive(Clone, Debug)]
pub enum Call {
    /// Over the connection.
    Request(&'static str, Value),
    /// By the command line, whose answer is JSON.
    Command(Vec<String>),
}

/// What has come of it.
#[derive(Debug)]
pub enum Answer {
    Done(Value),
    /// With its code.
    Failed(String, i64),
    /// The connection has ended before.
    Gone,
}

impl Answer {
    /// In one short line.
    pub fn summary(&self) -> String {
        match self {
            Answer::Done(value) => {
                let line = &value["stopReason"]["location"]["lineNumber"];
                let seen = [&value["sessionId"], &value["state"], line, &value["result"], &value["pid"]];
                let seen: Vec<String> = seen.iter().filter(|it| !it.is_null()).map(|it| it.to_string()).collect();
                format!("ok {}", seen.join(" "))
            }
            Answer::Failed(message, code) => format!("failed {code}: {}", message.replace('\n', " ")),
            Answer::Gone => "gone with its supervisor".to_owned(),
        }
    }
}

/// A process whose output is awaited.
pub struct RunningCommand {
    pub pid: u32,
    pub arguments: String,
    output: Receiver<CommandOutput>,
    deadline: Instant,
}

impl RunningCommand {
    /// Starts it; it may take this time, and the grace.
    pub fn start(sandbox: &Sandbox, arguments: &[String], own_time: Duration) -> RunningCommand {
        let mut command: Command = sandbox.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (pid, deadline) = (child.id(), Instant::now() + own_time + GRACE);
        let (tell, output) = channel();
        std::thread::spawn(move || {
            let ended = child.wait_with_output().unwrap();
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            let (stdout, stderr) = (text(ended.stdout), text(ended.stderr));
            let _ = tell.send(CommandOutput { code: ended.status.code().unwrap_or(-1), stdout, stderr });
        });
        RunningCommand { pid, arguments: arguments.join(" "), output, deadline }
    }

    /// Its output, if it has ended. Errors: it is late.
    pub fn try_finish(&self) -> Result<Option<CommandOutput>, String> {
        match self.output.try_recv() {
            Ok(output) => Ok(Some(output)),
            Err(_) if Instant::now() < self.deadline => Ok(None),
            Err(_) => Err(self.late()),
        }
    }

    /// Waits for its end. Errors: it is late.
    pub fn finish(&self) -> Result<CommandOutput, String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        self.output.recv_timeout(left).map_err(|_| self.late())
    }

    /// Kills it; this is no answer.
    pub fn kill(&self) {
        kill(self.pid, Signal::KILL);
        let _ = self.output.recv();
    }

    fn late(&self) -> String {
        format!("`tether {}` (process {}) is not answered in time", self.arguments, self.pid)
    }
}

/// What the output of a command with `--json` says. Errors: a failure that does not say what has failed.
pub fn read_output(output: &CommandOutput) -> Result<Answer, String> {
    match output.code {
        0 => Ok(Answer::Done(serde_json::from_str(&output.stdout).unwrap_or(Value::Null))),
        code => check_named(Answer::Failed(format!("{}{}", output.stderr, output.stdout), i64::from(code))),
    }
}

/// What a response over a connection says. Errors: a failure that does not say what has failed.
pub fn read_response(response: io::Result<Value>, method: &str) -> Result<Answer, String> {
    match response {
        Ok(response) if response.get("error").is_none() => Ok(Answer::Done(response["result"].clone())),
        Ok(response) => {
            let error = &response["error"];
            let text = format!("{} {}", error["message"].as_str().unwrap_or_default(), error["data"]["causes"]);
            check_named(Answer::Failed(text, error["code"].as_i64().unwrap_or_default()))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(format!("{method} is not answered in time")),
        Err(_) => Ok(Answer::Gone),
    }
}

fn check_named(answer: Answer) -> Result<Answer, String> {
    match &answer {
        Answer::Failed(message, _) if message.trim().len() < 10 => Err(format!("an error without a name: {answer:?}")),
        _ => Ok(answer),
    }
}

/// The parameters, without those that are null.
pub fn given(mut params: Value) -> Value {
    if let Some(fields) = params.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    params
}

/// Of a launch of the window, whose steps have a timeout each.
const LAUNCH_TIME: Duration = Duration::from_secs(45);

/// How long a request may take by what it is.
pub fn own_time(method: &str, params: &Value) -> Duration {
    if method.starts_with("window/") {
        return LAUNCH_TIME;
    }
    let seconds = ["wait", "timeout"].iter().find_map(|name| params[name].as_f64()).unwrap_or(0.0);
    Duration::from_secs_f64(seconds)
}

pub fn no_params() -> Value {
    json!({})
}
