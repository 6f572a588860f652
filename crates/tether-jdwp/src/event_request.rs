//! Requests for events (JDWP: EventRequest command set (15)).

// Names and fields are those of the specification.
#![allow(missing_docs)]

use super::commands::command;
use super::values::{CodeLocation, FieldId, ObjectId, ReferenceTypeId};
use super::writer::{JdwpEncode, PacketWriter};

/// What is reported (JDWP: EventKind Constants).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    SingleStep = 1,
    Breakpoint = 2,
    Exception = 4,
    ThreadStart = 6,
    ThreadDeath = 7,
    ClassPrepare = 8,
    ClassUnload = 9,
    FieldAccess = 20,
    FieldModification = 21,
    MethodEntry = 40,
    MethodExit = 41,
    MethodExitWithReturnValue = 42,
    MonitorContendedEnter = 43,
    MonitorContendedEntered = 44,
    MonitorWait = 45,
    MonitorWaited = 46,
    VmStart = 90,
    VmDeath = 99,
}

/// Which threads an event suspends (JDWP: SuspendPolicy Constants).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SuspendPolicy {
    None = 0,
    EventThread = 1,
    All = 2,
}

/// How far a step goes (JDWP: StepDepth Constants).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum StepDepth {
    Into = 0,
    Over = 1,
    Out = 2,
}

/// Which of the events are reported (JDWP: EventRequest, Set: modifiers).
#[derive(Clone, Debug, PartialEq)]
pub enum EventModifier {
    /// Only the one after `count - 1` others; the request is gone then.
    Count(i32),
    /// Only in that thread.
    ThreadOnly(ObjectId),
    /// Only in that class and its subclasses.
    ClassOnly(ReferenceTypeId),
    /// Only in classes of that name, which may begin or end with `*`.
    ClassMatch(String),
    /// Only in classes of other names.
    ClassExclude(String),
    /// Only at that place.
    LocationOnly(CodeLocation),
    /// Only exceptions of that class (all: `ReferenceTypeId(0)`), caught or not.
    ExceptionOnly { class: ReferenceTypeId, caught: bool, uncaught: bool },
    /// Only that field.
    FieldOnly { class: ReferenceTypeId, field: FieldId },
    /// A step by lines (`true`) or instructions.
    Step { thread: ObjectId, by_lines: bool, depth: StepDepth },
    /// Only for that `this`.
    InstanceOnly(ObjectId),
    /// Only classes whose source file has that name, which may begin or end with `*`.
    SourceNameMatch(String),
}

impl JdwpEncode for EventModifier {
    fn encode(&self, writer: &mut PacketWriter) {
        match self {
            EventModifier::Count(count) => (1u8, *count).encode(writer),
            EventModifier::ThreadOnly(thread) => (3u8, *thread).encode(writer),
            EventModifier::ClassOnly(class) => (4u8, *class).encode(writer),
            EventModifier::ClassMatch(pattern) => (5u8, pattern.clone()).encode(writer),
            EventModifier::ClassExclude(pattern) => (6u8, pattern.clone()).encode(writer),
            EventModifier::LocationOnly(location) => (7u8, *location).encode(writer),
            EventModifier::ExceptionOnly { class, caught, uncaught } => {
                ((8u8, *class), (*caught, *uncaught)).encode(writer);
            }
            EventModifier::FieldOnly { class, field } => (9u8, (*class, *field)).encode(writer),
            EventModifier::Step { thread, by_lines, depth } => {
                // The size 0 is an instruction, 1 a line.
                ((10u8, *thread), (i32::from(*by_lines), *depth as i32)).encode(writer);
            }
            EventModifier::InstanceOnly(object) => (11u8, *object).encode(writer),
            EventModifier::SourceNameMatch(pattern) => (12u8, pattern.clone()).encode(writer),
        }
    }
}

impl JdwpEncode for EventKind {
    fn encode(&self, writer: &mut PacketWriter) {
        (*self as u8).encode(writer);
    }
}

impl JdwpEncode for SuspendPolicy {
    fn encode(&self, writer: &mut PacketWriter) {
        (*self as u8).encode(writer);
    }
}

command!(
    /// Requests events; the reply is the id of the request.
    SetEventRequest, "EventRequest.Set", 15, 1,
    { kind: EventKind, policy: SuspendPolicy, modifiers: Vec<EventModifier> } -> i32
);
command!(
    /// Ends a request for events.
    ClearEventRequest, "EventRequest.Clear", 15, 2, { kind: EventKind, request: i32 } -> ()
);
