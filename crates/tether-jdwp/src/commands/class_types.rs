//! The commands of the ClassType (3), ArrayType (4) and InterfaceType (5) command sets.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use super::{command, reply};
use crate::values::{FieldId, JdwpValue, MethodId, ObjectId, ReferenceTypeId, TaggedObject, UntaggedValue};

/// Only the thread of the call runs (JDWP: InvokeOptions Constants, INVOKE_SINGLE_THREADED).
pub const INVOKE_SINGLE_THREADED: i32 = 1;
/// The method of that class, not of a subclass that overrides it (INVOKE_NONVIRTUAL).
pub const INVOKE_NONVIRTUAL: i32 = 2;

command!(
    /// The superclass; 0 for `Object`.
    Superclass, "ClassType.Superclass", 3, 1, { class: ReferenceTypeId } -> ReferenceTypeId
);
command!(
    /// Writes static fields.
    SetStaticFields, "ClassType.SetValues", 3, 2,
    { class: ReferenceTypeId, values: Vec<(FieldId, UntaggedValue)> } -> ()
);
command!(
    /// Calls a static method in a thread that an event has suspended.
    InvokeStatic, "ClassType.InvokeMethod", 3, 3,
    { class: ReferenceTypeId, thread: ObjectId, method: MethodId, arguments: Vec<JdwpValue>, options: i32 }
        -> InvokeResult
);
reply!(
    /// What a method returned, or what it threw.
    InvokeResult { value: JdwpValue, exception: TaggedObject }
);
command!(
    /// Creates an object by a constructor.
    NewInstance, "ClassType.NewInstance", 3, 4,
    { class: ReferenceTypeId, thread: ObjectId, method: MethodId, arguments: Vec<JdwpValue>, options: i32 }
        -> NewInstanceResult
);
reply!(
    /// The new object, or what the constructor threw.
    NewInstanceResult { object: TaggedObject, exception: TaggedObject }
);
command!(
    /// Creates an array.
    NewArray, "ArrayType.NewInstance", 4, 1, { array_type: ReferenceTypeId, length: i32 } -> TaggedObject
);
command!(
    /// Calls a static method of an interface.
    InvokeStaticOfInterface, "InterfaceType.InvokeMethod", 5, 1,
    { class: ReferenceTypeId, thread: ObjectId, method: MethodId, arguments: Vec<JdwpValue>, options: i32 }
        -> InvokeResult
);
