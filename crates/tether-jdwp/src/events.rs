//! Events of a virtual machine (JDWP: Event command set (64), Composite (100)).

// Names and fields are those of the specification.
#![allow(missing_docs)]

use super::jdwp_error::JdwpError;
use super::reader::{JdwpDecode, PacketReader};
use super::values::{CodeLocation, FieldId, JdwpValue, ObjectId, ReferenceTypeId, TaggedObject, TypeTag};

/// The events of one moment: all of the same thread and place.
#[derive(Clone, Debug, PartialEq)]
pub struct CompositeEvent {
    /// 0: nothing is suspended, 1: the thread of the event, 2: all threads.
    pub suspend_policy: u8,
    /// Those that can be read.
    pub events: Vec<JdwpEvent>,
    /// The first one that cannot be read; those behind it are lost.
    pub unreadable: Option<UnreadableEvent>,
}

/// An event of which only the beginning is understood, at most.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreadableEvent {
    pub reason: JdwpError,
    /// What is in the place of the thread in all events that have one.
    pub thread: Option<ObjectId>,
}

/// One event. `request` is the id of what requested it; 0: it is always sent.
#[derive(Clone, Debug, PartialEq)]
pub enum JdwpEvent {
    VmStart {
        request: i32,
        thread: ObjectId,
    },
    VmDeath {
        request: i32,
    },
    SingleStep {
        request: i32,
        thread: ObjectId,
        location: CodeLocation,
    },
    Breakpoint {
        request: i32,
        thread: ObjectId,
        location: CodeLocation,
    },
    MethodEntry {
        request: i32,
        thread: ObjectId,
        location: CodeLocation,
    },
    MethodExit {
        request: i32,
        thread: ObjectId,
        location: CodeLocation,
        value: Option<JdwpValue>,
    },
    /// A thread waits for a monitor, has got it, waits in `Object.wait`, or has been notified there.
    Monitor {
        kind: MonitorEventKind,
        request: i32,
        thread: ObjectId,
        monitor: TaggedObject,
        location: CodeLocation,
    },
    Exception(ExceptionEvent),
    ThreadStart {
        request: i32,
        thread: ObjectId,
    },
    ThreadDeath {
        request: i32,
        thread: ObjectId,
    },
    ClassPrepare {
        request: i32,
        thread: ObjectId,
        type_tag: TypeTag,
        class: ReferenceTypeId,
        signature: String,
    },
    ClassUnload {
        request: i32,
        signature: String,
    },
    Field(FieldEvent),
}

/// What happened to a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorEventKind {
    ContendedEnter,
    ContendedEntered,
    Wait,
    Waited,
}

/// An exception was thrown.
#[derive(Clone, Debug, PartialEq)]
pub struct ExceptionEvent {
    pub request: i32,
    pub thread: ObjectId,
    /// Where it was thrown.
    pub location: CodeLocation,
    pub exception: TaggedObject,
    /// Where it will be caught; none: nowhere, as far as is known.
    pub catch_location: Option<CodeLocation>,
}

/// A field is read, or is about to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldEvent {
    pub request: i32,
    pub thread: ObjectId,
    pub location: CodeLocation,
    /// The class that declares the field.
    pub class: ReferenceTypeId,
    pub field: FieldId,
    /// `null` for a static field.
    pub object: TaggedObject,
    /// What is about to be written; none: it is read.
    pub new_value: Option<JdwpValue>,
}

/// Events without a thread: the end of the virtual machine, the unloading of a class.
const KINDS_WITHOUT_THREAD: [u8; 2] = [99, 9];

impl JdwpDecode for CompositeEvent {
    /// Errors: it does not even say what is suspended.
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        let (suspend_policy, mut events) = (u8::decode(reader)?, Vec::new());
        let unreadable = decode_events(reader, &mut events).err();
        Ok(CompositeEvent { suspend_policy, events, unreadable })
    }
}

fn decode_events(reader: &mut PacketReader<'_>, events: &mut Vec<JdwpEvent>) -> Result<(), UnreadableEvent> {
    for _ in 0..reader.take_count().map_err(|reason| UnreadableEvent { reason, thread: None })? {
        let mut start = reader.clone();
        let unreadable = |reason| UnreadableEvent { reason, thread: decode_thread(&mut start).ok() };
        events.push(JdwpEvent::decode(reader).map_err(unreadable)?);
    }
    Ok(())
}

fn decode_thread(reader: &mut PacketReader<'_>) -> Result<ObjectId, JdwpError> {
    let (kind, _request) = <(u8, i32)>::decode(reader)?;
    match KINDS_WITHOUT_THREAD.contains(&kind) {
        true => Err(JdwpError::Malformed("an event without a thread".to_owned())),
        false => ObjectId::decode(reader),
    }
}

impl JdwpDecode for JdwpEvent {
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        let kind = u8::decode(reader)?;
        let request = i32::decode(reader)?;
        Ok(match kind {
            90 => JdwpEvent::VmStart { request, thread: ObjectId::decode(reader)? },
            99 => JdwpEvent::VmDeath { request },
            6 => JdwpEvent::ThreadStart { request, thread: ObjectId::decode(reader)? },
            7 => JdwpEvent::ThreadDeath { request, thread: ObjectId::decode(reader)? },
            8 => {
                let (thread, type_tag, class) = <(ObjectId, (u8, ReferenceTypeId))>::decode(reader).map(flatten)?;
                let (signature, _status) = <(String, i32)>::decode(reader)?;
                JdwpEvent::ClassPrepare { request, thread, type_tag, class, signature }
            }
            9 => JdwpEvent::ClassUnload { request, signature: String::decode(reader)? },
            43..=46 => decode_monitor_event(kind, request, reader)?,
            1 | 2 | 4 | 20 | 21 | 40 | 41 | 42 => decode_located_event(kind, request, reader)?,
            other => return Err(JdwpError::Malformed(format!("an event of the kind {other}"))),
        })
    }
}

fn flatten<A, B, C>((a, (b, c)): (A, (B, C))) -> (A, B, C) {
    (a, b, c)
}

fn decode_monitor_event(kind: u8, request: i32, reader: &mut PacketReader<'_>) -> Result<JdwpEvent, JdwpError> {
    let (thread, monitor, location) = <(ObjectId, (TaggedObject, CodeLocation))>::decode(reader).map(flatten)?;
    let kind = match kind {
        43 => MonitorEventKind::ContendedEnter,
        44 => MonitorEventKind::ContendedEntered,
        // A wait has its time-out, and the end of a wait whether it has timed out.
        45 => {
            i64::decode(reader)?;
            MonitorEventKind::Wait
        }
        _ => {
            bool::decode(reader)?;
            MonitorEventKind::Waited
        }
    };
    Ok(JdwpEvent::Monitor { kind, request, thread, monitor, location })
}

/// Events that begin with a thread and a location.
fn decode_located_event(kind: u8, request: i32, reader: &mut PacketReader<'_>) -> Result<JdwpEvent, JdwpError> {
    let (thread, location) = <(ObjectId, CodeLocation)>::decode(reader)?;
    Ok(match kind {
        1 => JdwpEvent::SingleStep { request, thread, location },
        2 => JdwpEvent::Breakpoint { request, thread, location },
        40 => JdwpEvent::MethodEntry { request, thread, location },
        41 => JdwpEvent::MethodExit { request, thread, location, value: None },
        42 => JdwpEvent::MethodExit { request, thread, location, value: Some(JdwpValue::decode(reader)?) },
        4 => {
            let (exception, caught) = <(TaggedObject, CodeLocation)>::decode(reader)?;
            // Uncaught: a location of zeros.
            let catch_location = Some(caught).filter(|it| it.class.0 != 0);
            JdwpEvent::Exception(ExceptionEvent { request, thread, location, exception, catch_location })
        }
        _ => {
            let (_tag, class, field) = <(u8, (ReferenceTypeId, FieldId))>::decode(reader).map(flatten)?;
            let object = TaggedObject::decode(reader)?;
            let new_value = if kind == 21 { Some(JdwpValue::decode(reader)?) } else { None };
            JdwpEvent::Field(FieldEvent { request, thread, location, class, field, object, new_value })
        }
    })
}
