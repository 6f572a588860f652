//! Editors that are connected: which there are, the requests that they get, and the debug conversations that they have with
//! adapters through a relay.
//!
//! | file | owns |
//! |---|---|
//! | `connected_editors` | the table of connected editors, hosts and window bridges; a request with a deadline to one |
//! | `bounded_answer` | bounds what they answer with |
//! | `methods` | the methods that are no operations of the API |
//! | `debugger_start` | `debugger/start`: parameters, and what they mean |
//! | `debugger_join` | `debugger/join`: a DAP conversation about a session that is there, or that the editor starts |
//! | `relay` | one relay: listener, adapter, copying, until either side ends |
//! | `relay_streams` | copies bytes both ways |
//! | `start_completion` | adds the resolved target to an editor's `launch` or `attach` |
//! | `conversations` | all conversations of the supervisor with editors: relayed to an adapter, or served |
//! | `editor_sessions`, `session_table` | sessions that an editor was requested to open; the table of them |
//! | `host_requests` | requests to the extension in the VS Code that runs the MCP server |
//!
//! Does not depend on what a debug adapter says.

mod bounded_answer;
pub(super) mod connected_editors;
mod conversations;
mod debugger_join;
mod debugger_start;
mod editor_sessions;
pub(super) mod host_requests;
pub(super) mod methods;
mod relay;
mod relay_streams;
mod session_table;
mod start_completion;

use self::connected_editors::ConnectedEditors;
use self::conversations::EditorConversations;
use self::session_table::EditorSessions;

/// What the supervisor knows of editors.
pub(super) struct Editors {
    pub connected: ConnectedEditors,
    pub conversations: EditorConversations,
    pub sessions: EditorSessions,
}

impl Editors {
    /// No editors yet, and the future that drives what is done for them, to be spawned.
    pub fn open() -> (Editors, impl Future<Output = ()> + Send + 'static) {
        let (conversations, driver) = EditorConversations::open();
        (Editors { connected: ConnectedEditors::default(), conversations, sessions: EditorSessions::default() }, driver)
    }
}
