//! The commands of the ThreadReference (11) and StackFrame (16) command sets.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use super::{command, reply};
use crate::values::{CodeLocation, FrameId, JdwpValue, ObjectId, TaggedObject};

command!(
    /// The name of a thread.
    ThreadName, "ThreadReference.Name", 11, 1, { thread: ObjectId } -> String
);
command!(
    /// Suspends a thread, once more.
    SuspendThread, "ThreadReference.Suspend", 11, 2, { thread: ObjectId } -> ()
);
command!(
    /// Undoes one suspension of a thread.
    ResumeThread, "ThreadReference.Resume", 11, 3, { thread: ObjectId } -> ()
);
command!(
    /// What a thread is doing: its thread status and its suspend status.
    ThreadStatus, "ThreadReference.Status", 11, 4, { thread: ObjectId } -> (i32, i32)
);
command!(
    /// Frames of a suspended thread, the innermost first; `count` -1: all.
    Frames, "ThreadReference.Frames", 11, 6, { thread: ObjectId, first: i32, count: i32 } -> Vec<FrameEntryOfThread>
);
reply!(
    /// A frame and where it is.
    FrameEntryOfThread { frame: FrameId, location: CodeLocation }
);
command!(
    /// How many frames a suspended thread has.
    FrameCount, "ThreadReference.FrameCount", 11, 7, { thread: ObjectId } -> i32
);
command!(
    /// The monitors that a suspended thread holds.
    OwnedMonitors, "ThreadReference.OwnedMonitors", 11, 8, { thread: ObjectId } -> Vec<TaggedObject>
);
command!(
    /// The monitor that a suspended thread waits for.
    ContendedMonitor, "ThreadReference.CurrentContendedMonitor", 11, 9, { thread: ObjectId } -> TaggedObject
);
command!(
    /// How often a thread is suspended.
    SuspendCount, "ThreadReference.SuspendCount", 11, 12, { thread: ObjectId } -> i32
);
command!(
    /// Whether a thread is a virtual one; of version 21 and later.
    IsVirtual, "ThreadReference.IsVirtual", 11, 15, { thread: ObjectId } -> bool
);
command!(
    /// Returns from the current method of a thread with that value.
    ForceEarlyReturn, "ThreadReference.ForceEarlyReturn", 11, 14, { thread: ObjectId, value: JdwpValue } -> ()
);

command!(
    /// The values of variables: their slots, with the tags of their types.
    VariableValues, "StackFrame.GetValues", 16, 1,
    { thread: ObjectId, frame: FrameId, slots: Vec<(i32, u8)> } -> Vec<JdwpValue>
);
command!(
    /// Writes variables.
    SetVariables, "StackFrame.SetValues", 16, 2,
    { thread: ObjectId, frame: FrameId, slots: Vec<(i32, JdwpValue)> } -> ()
);
command!(
    /// `this` of a frame; `null` in a static or native method.
    ThisObject, "StackFrame.ThisObject", 16, 3, { thread: ObjectId, frame: FrameId } -> TaggedObject
);
command!(
    /// Discards the frame and those that it has called.
    PopFrames, "StackFrame.PopFrames", 16, 4, { thread: ObjectId, frame: FrameId } -> ()
);
