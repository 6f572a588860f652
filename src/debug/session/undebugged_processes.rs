//! The processes of a program that the session does not debug, as far as they are known: why, and what each runs. And the code of
//! those that it debugs in which nothing stops.
//!
//! Does not depend on how they are found.

use crate::adapters::ProcessRuntime;

/// How many are kept; further ones are counted.
const MAX_PROCESSES: usize = 100;
/// How many texts about debugged processes are kept.
const MAX_TEXTS: usize = 8;

/// A process that is not debugged.
#[derive(Clone)]
pub struct UndebuggedProcess {
    pub pid: u32,
    /// Its command for readers, cut where it is long.
    pub command: String,
    /// Where it is proven.
    pub reason: Option<String>,
    /// What it runs, if that is known.
    pub runtime: Option<ProcessRuntime>,
}

impl UndebuggedProcess {
    /// "process 7 was not debugged (`subProcess` is false): python3 child.py"
    pub fn describe(&self, is_ended: bool) -> String {
        let verb = if is_ended { "was" } else { "is" };
        let reason = self.reason.as_deref().unwrap_or("no debugger was attached to it");
        format!("process {} {verb} not debugged ({reason}): {}", self.pid, self.command)
    }

    /// Whether it may run the code of a file with this extension, in lower case.
    pub fn may_run(&self, extension: &str) -> bool {
        self.runtime.is_none_or(|runtime| runtime.may_run(extension))
    }
}

/// All of one session, in the order in which they were found.
#[derive(Default)]
pub struct UndebuggedProcesses {
    first: Vec<UndebuggedProcess>,
    others: usize,
    /// Why those are not known that have ended before they were looked for.
    blind: Option<String>,
    /// Of processes that are debugged: the code in which nothing stops.
    unfollowed_code: Vec<String>,
}

impl UndebuggedProcesses {
    /// Adds a process; whether it is new and kept.
    pub fn add(&mut self, process: UndebuggedProcess) -> bool {
        if self.first.iter().any(|known| known.pid == process.pid) {
            return false;
        }
        if self.first.len() >= MAX_PROCESSES {
            self.others = self.others.saturating_add(1);
            return false;
        }
        self.first.push(process);
        true
    }

    /// Adds code of a debugged process in which nothing stops; whether it is new and kept.
    pub fn add_code(&mut self, text: String) -> bool {
        let is_kept = self.unfollowed_code.len() < MAX_TEXTS && !self.unfollowed_code.contains(&text);
        if is_kept {
            self.unfollowed_code.push(text);
        }
        is_kept
    }

    /// Code of debugged processes in which nothing stops, for readers.
    pub fn unfollowed_code(&self) -> &[String] {
        &self.unfollowed_code
    }

    /// Whether no more are kept.
    pub fn is_full(&self) -> bool {
        self.first.len() >= MAX_PROCESSES
    }

    /// Those that are kept, and how many there are beside them.
    pub fn list(&self) -> (&[UndebuggedProcess], usize) {
        (&self.first, self.others)
    }

    /// The starts of processes are not reported, for that reason.
    pub fn set_blind(&mut self, cause: String) {
        self.blind = Some(cause);
    }

    /// Why those are not known that have ended before they were looked for. `None`: they are.
    pub fn blind(&self) -> Option<&str> {
        self.blind.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_kept_once_and_further_ones_are_counted() {
        let process = |pid, reason: Option<&str>| UndebuggedProcess {
            pid,
            command: "ruby a".to_owned(),
            reason: reason.map(str::to_owned),
            runtime: None,
        };
        let mut all = UndebuggedProcesses::default();
        assert!(all.add(process(7, Some("why"))) && !all.add(process(7, None)));
        assert_eq!(all.list().0[0].describe(true), "process 7 was not debugged (why): ruby a");
        for pid in 100..100 + MAX_PROCESSES as u32 {
            all.add(process(pid, None));
        }
        assert_eq!((all.list().0.len(), all.list().1, all.is_full()), (MAX_PROCESSES, 1, true));
        assert_eq!(
            all.list().0[1].describe(false),
            "process 100 is not debugged (no debugger was attached to it): ruby a"
        );
    }
}
