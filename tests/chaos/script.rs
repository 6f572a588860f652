//! What is done, and what goes wrong meanwhile: drawn from the seed alone, whatever has happened before.

use std::time::Duration;

use crate::dice::Dice;

/// What a front end requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Launch,
    Restart,
    Stop,
    Detach,
    Attach,
    Status,
    List,
    Evaluate,
    Stack,
    Variables,
    Source,
    Output,
    Events,
    Continue,
    ContinueAndWait,
    StepOver,
    StepInto,
    StepOut,
    RunTo,
    Pause,
    Wait,
    /// From a process of its own, whose answer is read later.
    WaitBeside,
    /// Of the command line.
    CommandStatus,
    CommandContinue,
    Break,
    Unbreak,
    Breakpoints,
    WindowStart,
    WindowStop,
    WindowRestart,
    WindowStatus,
    WindowEvaluate,
    WindowChanges,
    /// Changes a source file of the window.
    Touch,
    Upgrade,
}

/// How often each is drawn.
const OPERATIONS: &[(Operation, u64)] = &[
    (Operation::Launch, 50),
    (Operation::Restart, 5),
    (Operation::Stop, 10),
    (Operation::Detach, 2),
    (Operation::Attach, 15),
    (Operation::Status, 90),
    (Operation::List, 40),
    (Operation::Evaluate, 120),
    (Operation::Stack, 60),
    (Operation::Variables, 60),
    (Operation::Source, 20),
    (Operation::Output, 30),
    (Operation::Events, 30),
    (Operation::Continue, 50),
    (Operation::ContinueAndWait, 120),
    (Operation::StepOver, 120),
    (Operation::StepInto, 20),
    (Operation::StepOut, 10),
    (Operation::RunTo, 20),
    (Operation::Pause, 60),
    (Operation::Wait, 60),
    (Operation::WaitBeside, 10),
    (Operation::CommandStatus, 30),
    (Operation::CommandContinue, 10),
    (Operation::Break, 45),
    (Operation::Unbreak, 15),
    (Operation::Breakpoints, 20),
    (Operation::WindowStart, 15),
    (Operation::WindowStop, 2),
    (Operation::WindowRestart, 2),
    (Operation::WindowStatus, 50),
    (Operation::WindowEvaluate, 50),
    (Operation::WindowChanges, 20),
    (Operation::Touch, 4),
    (Operation::Upgrade, 5),
];

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    KillCommand,
    KillMcp,
    KillSupervisor,
    KillHost,
    KillAdapter,
    KillProgram,
    KillWindow,
    /// Stopped for a moment.
    SlowSupervisor,
    SlowHost,
    SlowAdapter,
    SlowProgram,
    /// Stopped for longer than anything waits for it, while the supervisor is killed.
    SilentHost,
    /// They connect, and say nothing or half of a message.
    SilentClient,
    SilentSupervisor,
    CutConnection,
    FullDisk,
    ReadOnlyState,
    ReadOnlyWorkspace,
    TakenPort,
    NoDescriptorsInSupervisor,
    NoDescriptorsInHost,
    ClockForward,
    ClockBack,
    /// The stored sessions name processes that are not ours.
    RecycledRecord,
}

/// How often each is in one deck; all of a deck are played before the next is shuffled.
pub const FAULTS: &[(Fault, usize)] = &[
    (Fault::KillCommand, 3),
    (Fault::KillMcp, 3),
    (Fault::KillSupervisor, 5),
    (Fault::KillHost, 1),
    (Fault::KillAdapter, 1),
    (Fault::KillProgram, 1),
    (Fault::KillWindow, 1),
    (Fault::SlowSupervisor, 2),
    (Fault::SlowHost, 2),
    (Fault::SlowAdapter, 2),
    (Fault::SlowProgram, 2),
    (Fault::SilentHost, 1),
    (Fault::SilentClient, 2),
    (Fault::SilentSupervisor, 2),
    (Fault::CutConnection, 1),
    (Fault::FullDisk, 2),
    (Fault::ReadOnlyState, 2),
    (Fault::ReadOnlyWorkspace, 2),
    (Fault::TakenPort, 1),
    (Fault::NoDescriptorsInSupervisor, 1),
    (Fault::NoDescriptorsInHost, 2),
    (Fault::ClockForward, 2),
    (Fault::ClockBack, 2),
    (Fault::RecycledRecord, 1),
];

/// One of so many operations has a fault.
const OPERATIONS_PER_FAULT: u64 = 8;
/// It takes half a minute: it is in one of so many decks.
const DECKS_PER_SILENT_HOST: usize = 5;

/// One operation, with what may go wrong meanwhile.
#[derive(Debug)]
pub struct Step {
    pub index: usize,
    pub operation: Operation,
    pub fault: Option<Fault>,
    /// Chooses among the sessions that there are.
    pub subject: usize,
    /// Chooses what else there is to choose.
    pub choice: u64,
    /// When the fault comes, after the operation has been requested.
    pub moment: Duration,
    /// How long a peer is slow.
    pub hold: Duration,
    /// How many operations a fault lasts that does.
    pub lasts: usize,
}

/// All steps, one after another.
pub struct Script {
    dice: Dice,
    deck: Vec<Fault>,
    decks: usize,
    index: usize,
}

impl Script {
    pub fn new(seed: u64) -> Script {
        Script { dice: Dice::new(seed), deck: Vec::new(), decks: 0, index: 0 }
    }

    fn draw_fault(&mut self) -> Option<Fault> {
        if self.deck.is_empty() {
            self.deck = FAULTS.iter().flat_map(|(fault, count)| std::iter::repeat_n(*fault, *count)).collect();
            if !self.decks.is_multiple_of(DECKS_PER_SILENT_HOST) {
                self.deck.retain(|fault| *fault != Fault::SilentHost);
            }
            self.decks += 1;
            self.dice.shuffle(&mut self.deck);
        }
        self.deck.pop()
    }
}

impl Iterator for Script {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let is_faulty = self.dice.below(OPERATIONS_PER_FAULT) == 0;
        let fault = if is_faulty { self.draw_fault() } else { None };
        let dice = &mut self.dice;
        self.index += 1;
        Some(Step {
            index: self.index,
            operation: dice.choose(OPERATIONS),
            fault,
            subject: dice.below(1 << 20) as usize,
            choice: dice.roll(),
            moment: Duration::from_micros(dice.below(8_000)),
            hold: Duration::from_millis(10 + dice.below(150)),
            lasts: 1 + dice.below(12) as usize,
        })
    }
}
