//! What is said of a session that was attached to another program.

use crate::debug::ManagedSession;

/// Waits until the breakpoints in loaded scripts are bound, and leaves what the next result of the session should say.
pub async fn report_reattached(managed: &ManagedSession, why: &str, missed: Option<&str>) {
    managed.session.wait_until_bound().await;
    let mut text = format!("{} was attached to again, with its breakpoints: {why}", managed.id);
    if let Some(missed) = missed.filter(|_| managed.has_breakpoints()) {
        text.push_str("; ");
        text.push_str(missed);
    }
    managed.session.event_log().push_notice("reattached", text);
}
