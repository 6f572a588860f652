//! The debug sessions that live in processes of their own: starting their hosts, finding those of an earlier supervisor,
//! and reaching them.
//!
//! | file | owns |
//! |---|---|
//! | `host_start` | starting a host process |
//! | `host_search` | the hosts that run, stored or not |
//! | `empty_host` | a host without a session yet |
//! | `host_link` | the connection to one host, and what it reports |
//! | `hosted_session` | one session in a host |
//! | `table` | all of them: start, recovery, loss; breakpoints over all |
//! | `listed_session` | a session as it is listed, whether it lives here or in a host |

mod empty_host;
mod host_link;
mod host_search;
mod host_start;
mod hosted_session;
mod listed_session;
mod table;

pub use empty_host::EmptyHost;
pub use host_search::find_running_hosts;
pub use hosted_session::HostedSession;
pub use listed_session::ListedSession;
pub use table::{HostedSessions, SessionStart};
