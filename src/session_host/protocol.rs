//! What a supervisor and a session host say to each other: JSON-RPC 2.0 over the host's socket.
//!
//! The first request is `hello`; the others are these and the operations on a session, by the names that they have for front
//! ends. Each result comes with the facts as they are then, where they have changed. A later program adds fields, with
//! defaults; [`PROTOCOL`] rises when an older one would not understand it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tether_base::error::ErrorData;
use tether_base::secret_values::SecretValues;

use super::facts::SessionFacts;
use crate::api::debug::values::Seconds;
use crate::config::TestRunner;
use crate::debug::SessionRequest;

/// What both sides speak.
pub const PROTOCOL: u32 = 1;

/// The first request: [`HelloParams`], [`HelloResult`].
pub const HELLO: &str = "host/hello";
/// Answered at once, whatever else is under way: no parameters, nothing.
pub const PING: &str = "host/ping";
/// Starts the session: [`StartParams`], [`StartResult`].
pub const START: &str = "host/start";
/// Starts a further program of the session: [`FurtherParams`], [`StartResult`].
pub const START_FURTHER: &str = "host/startFurther";
/// All programs of the session have been started: no parameters, nothing.
pub const FINISH_START: &str = "host/finishStart";
/// Waits for a stop after a start, and reports it: [`ReportParams`], a `StopReport`.
pub const REPORT: &str = "host/report";
/// Sends the stored breakpoints to the program: [`BreakpointsParams`], a `SessionBindings`.
pub const SEND_BREAKPOINTS: &str = "host/sendBreakpoints";
/// Swaps changed code into the program: no parameters, a `CodeSwap`.
pub const SWAP_CODE: &str = "host/swapCode";
/// Attaches the session to another program, or says why it cannot be: [`ReattachParams`], whether it is attached.
pub const REATTACH: &str = "host/reattach";
/// Waits until the breakpoints of a session that was attached again are bound, and leaves a notice: [`ReattachedParams`].
pub const REPORT_REATTACHED: &str = "host/reportReattached";
/// Ends the connection to a program that is gone; the session still follows the window: no parameters.
pub const DISCONNECT: &str = "host/disconnect";
/// Where the program has stopped: no parameters, a `StopLocation` or nothing.
pub const STOP_LOCATION: &str = "host/stopLocation";
/// Opens a port for an editor: [`JoinParams`], an `OpenedPort`.
pub const JOIN: &str = "host/join";
/// Ends the process, and the session with it, if that has not ended.
pub const EXIT: &str = "host/exit";
/// A request of the host: to start what its editor debugs; [`EditorStart`], a list of what is to be said of the start.
pub const OPEN_SESSION: &str = "supervisor/openSession";
/// A notification of the host: [`FactsReport`].
pub const FACTS: &str = "host/facts";
/// A notification of the host, without parameters: it has changed the stored breakpoints.
pub const BREAKPOINTS_CHANGED: &str = "host/breakpointsChanged";

/// Who connects.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelloParams {
    /// The version of its program.
    pub version: String,
    /// [`PROTOCOL`] of its program.
    pub protocol: u32,
}

/// Who answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelloResult {
    /// The version of its program.
    pub version: String,
    /// [`PROTOCOL`] of its program.
    pub protocol: u32,
    /// Its process.
    pub pid: u32,
    /// What its session was started with, once it was.
    pub session: Option<HostedRequest>,
    /// An editor is connected to it.
    pub has_editor: bool,
}

/// What a session was started with, with the values of its environment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostedRequest {
    /// The session's id.
    pub session_id: String,
    /// What it debugs.
    pub request: SessionRequest,
    /// What is masked in what is shown of it.
    pub secrets: SecretValues,
    /// What its caller should know of its start.
    pub note: Option<String>,
}

/// The session to start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StartParams {
    /// The id of the new session.
    pub session_id: String,
    /// The launch id of its processes.
    pub launch_id: String,
    /// What it debugs.
    pub request: SessionRequest,
    /// What is masked in what is shown of it.
    pub secrets: SecretValues,
    /// What runs the test, if it is one.
    pub test_runner: Option<TestRunner>,
    /// Further programs follow, until which the session does not end.
    pub awaits_programs: bool,
}

/// A further program.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FurtherParams {
    /// What it debugs.
    pub request: SessionRequest,
    /// What is masked in what is shown of it.
    pub secrets: SecretValues,
}

/// The session, or a further program of it, has started.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StartResult {
    /// What its caller should know of its start.
    pub note: Option<String>,
}

/// What the session is to be attached to now.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReattachParams {
    /// None: there is nothing.
    pub request: Option<SessionRequest>,
    /// Why there is nothing.
    pub failure: Option<ErrorData>,
    /// What has become of the program before.
    pub why: String,
}

/// How a session was attached again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReattachedParams {
    /// What has become of the program before.
    pub why: String,
    /// Breakpoints in code that runs at the start may have been missed: what is said of that.
    pub missed: Option<String>,
}

/// Which session an editor joins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JoinParams {
    /// The one that its own `launch` or `attach` starts, in this host.
    pub chooses_session: bool,
}

/// What an editor debugs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "command", content = "fields")]
pub enum EditorStart {
    /// The fields of its `launch`.
    Launch(Map<String, Value>),
    /// The fields of its `attach`.
    Attach(Map<String, Value>),
}

/// How long a start waits for its first stop.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportParams {
    /// None: the state is reported as it is.
    pub wait: Option<Seconds>,
    /// Of the snapshot, in tokens.
    pub budget: Option<u32>,
    /// First, the breakpoints of a program that was attached to are bound, and those that are not are reported.
    pub reports_unbound: bool,
}

/// Which breakpoint the caller waits for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BreakpointsParams {
    /// Its id.
    pub bound: Option<u32>,
}

/// The facts after a change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FactsReport {
    /// Rises with each change.
    pub revision: u64,
    /// As they are since.
    pub facts: SessionFacts,
    /// The number of the event that this host has recorded last in the timeline.
    #[serde(default)]
    pub recorded: u64,
}

/// A result of the host.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostResult {
    /// The facts, if they have changed since they were last sent over this connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<FactsReport>,
    /// The result itself.
    pub result: Value,
}

impl HostResult {
    /// As it was sent. The result, which may be large and is passed on, is only moved. Errors: it has no such form.
    pub fn take_apart(mut sent: Value) -> Result<HostResult, serde_json::Error> {
        let mut take = |name: &str| sent.get_mut(name).map(Value::take).unwrap_or_default();
        let changed = Option::<FactsReport>::deserialize(take("changed"))?;
        Ok(HostResult { changed, result: take("result") })
    }
}

/// What a starting host prints on stdout: one line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HostStartup {
    /// It listens.
    Ready,
    /// It cannot.
    Failed(ErrorData),
}
