//! Whether the supervisor exits because the file of its program was replaced, as a build or an update does.
//!
//! It exits only for a front end that runs the new file: front ends of different programs never end each other's supervisors.
//! It stays while something would be lost. Does not depend on how it exits.

use super::context::SupervisorContext;
use crate::vocabulary::RunState;

impl SupervisorContext {
    /// Whether the process `pid` runs the file that has taken the place of this program, and nothing is lost by an exit.
    pub fn exits_for_replacement(&self, pid: u32) -> bool {
        let is_new = tether_process::runs_program(pid, &self.program) == Some(true);
        is_new && self.is_program_replaced() && *self.requests.borrow() == 0 && self.interrupted_by_exit().is_none()
    }

    /// For the status: this program was replaced, and why it still runs.
    pub fn replacement_note(&self) -> Option<String> {
        if !self.is_program_replaced() {
            return None;
        }
        let program = self.program.display();
        Some(match self.interrupted_by_exit() {
            None => format!("the supervisor's program {program} was replaced; its next command starts the new one"),
            Some(why) => format!(
                "the supervisor's program {program} was replaced, and the old one keeps running while {why}; its first command \
                 after that starts the new one"
            ),
        })
    }

    fn is_program_replaced(&self) -> bool {
        tether_process::runs_program(std::process::id(), &self.program) == Some(false)
    }

    /// What an exit would interrupt. A session that is attached to a listener is attached again by the next supervisor.
    pub fn interrupted_by_exit(&self) -> Option<String> {
        let window = self.window.watch().borrow().clone();
        let is_recovered = window.search_done && self.sessions.watch_unrecovered().borrow().is_empty();
        if !is_recovered || window.phase.is_busy() || self.queue.is_busy() {
            return Some("an operation runs".to_owned());
        }
        if *self.editors.conversations.watch().borrow() > 0 {
            return Some("an editor debugs through it".to_owned());
        }
        // Those in hosts go on.
        let active = self.sessions.active_sessions();
        let is_kept = |state, is_listener: bool| state == RunState::Running && is_listener;
        let lost = active.iter().find(|it| !is_kept(it.run_state(), it.request.debug_target.is_listener()))?;
        let how = if lost.is_attached() { lost.run_state().name().to_lowercase() } else { "launched".to_owned() };
        Some(format!("debug session {} is {how} in it", lost.id))
    }
}
