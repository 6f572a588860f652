//! What is to be debugged, and with what: the request of a session, as it is stored, too.

use serde::{Deserialize, Serialize};
use tether_base::error::{Error, Result};

use crate::adapters::{self, Adapter, AdapterQuery, AdapterSearch, DebugTarget, FoundAdapter};

/// What is to be debugged, and with what.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SessionRequest {
    /// The session's name, for readers.
    pub name: String,
    /// The program, process or port to debug.
    #[serde(rename = "wanted")]
    pub debug_target: DebugTarget,
    /// The name of an adapter; none: chosen by the other fields.
    pub adapter: Option<String>,
    /// The `type` of a configuration of launch.json.
    #[serde(rename = "kind")]
    pub launch_type: Option<String>,
    /// The language of the program.
    pub language: Option<String>,
    /// What the session follows, in its caller's words: a part of the window, or a server. Stored with it.
    #[serde(default, rename = "tie")]
    pub follows: Option<String>,
    /// Stop at exceptions that nothing catches, until the user chooses at which to stop.
    #[serde(default)]
    pub stops_at_uncaught: bool,
    /// It runs a test by its name.
    #[serde(default)]
    pub is_test_run: bool,
}

/// How what a session follows begins, where that is a server that `tether wrap` restarts; anything else is a part of the window.
const SERVER: &str = "server:";

impl SessionRequest {
    /// It follows this server over its restarts.
    pub fn following_server(self, name: &str) -> SessionRequest {
        SessionRequest { follows: Some(format!("{SERVER}{name}")), ..self }
    }

    /// The name of the server that it follows.
    pub fn followed_server(&self) -> Option<&str> {
        self.follows.as_deref()?.strip_prefix(SERVER)
    }

    /// Whether it follows a part of the window.
    pub fn follows_window(&self) -> bool {
        self.follows.is_some() && self.followed_server().is_none()
    }

    /// As it is stored: without the values of its environment.
    pub(super) fn without_environment(&self) -> SessionRequest {
        SessionRequest { debug_target: self.debug_target.clone().without_environment(), ..self.clone() }
    }

    /// Errors: a program cannot be launched with it again, since the values of its environment were not stored.
    pub fn require_environment(&self, id: &str) -> Result<()> {
        let names = &self.debug_target.unstored_variables;
        if names.is_empty() || self.debug_target.is_attach() {
            return Ok(());
        }
        let error = Error::usage(format!("cannot restart {id}"));
        let error = error.because(format!("its supervisor has exited, and the values of {} with it", names.join(", ")));
        Err(error.hint("`tether debug launch` starts it again, with its configuration or its `--env`"))
    }
}

/// The adapter of a request, and where it is installed. Errors: no adapter debugs this, or it is not installed.
pub(in crate::debug) fn locate_adapter(
    request: &SessionRequest,
    search: AdapterSearch,
) -> Result<(&'static Adapter, FoundAdapter)> {
    let search = search.with_caller(&request.debug_target.caller_env);
    let program = request.debug_target.program();
    let module = request.debug_target.module().map(|_| "python");
    let query = AdapterQuery {
        adapter: request.adapter.as_deref(),
        kind: request.launch_type.as_deref(),
        is_attach: request.debug_target.is_attach(),
        language: request.language.as_deref().or(module),
        program: program.as_deref(),
    };
    adapters::locate_adapter(query, &search)
}
