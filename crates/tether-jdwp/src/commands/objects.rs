//! The commands of the ObjectReference (9), StringReference (10) and ArrayReference (13) command sets.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use super::class_types::InvokeResult;
use super::command;
use crate::values::{ArrayRegion, FieldId, JdwpValue, MethodId, ObjectId, ReferenceTypeId, TypeTag, UntaggedValue};

command!(
    /// The class of an object.
    TypeOfObject, "ObjectReference.ReferenceType", 9, 1, { object: ObjectId } -> (TypeTag, ReferenceTypeId)
);
command!(
    /// The values of an object's fields, inherited ones included.
    FieldValues, "ObjectReference.GetValues", 9, 2, { object: ObjectId, fields: Vec<FieldId> } -> Vec<JdwpValue>
);
command!(
    /// Writes fields of an object.
    SetFields, "ObjectReference.SetValues", 9, 3, { object: ObjectId, values: Vec<(FieldId, UntaggedValue)> } -> ()
);
command!(
    /// Calls a method of an object in a thread that an event has suspended.
    InvokeMethod, "ObjectReference.InvokeMethod", 9, 6,
    {
        object: ObjectId, thread: ObjectId, class: ReferenceTypeId, method: MethodId, arguments: Vec<JdwpValue>,
        options: i32
    } -> InvokeResult
);
command!(
    /// Keeps an object from being collected.
    DisableCollection, "ObjectReference.DisableCollection", 9, 7, { object: ObjectId } -> ()
);
command!(
    /// Lets an object be collected again.
    EnableCollection, "ObjectReference.EnableCollection", 9, 8, { object: ObjectId } -> ()
);
command!(
    /// The text of a string.
    StringValue, "StringReference.Value", 10, 1, { string: ObjectId } -> String
);
command!(
    /// How many elements an array has.
    ArrayLength, "ArrayReference.Length", 13, 1, { array: ObjectId } -> i32
);
command!(
    /// Elements of an array.
    ArrayElements, "ArrayReference.GetValues", 13, 2, { array: ObjectId, first: i32, count: i32 } -> ArrayRegion
);
command!(
    /// Writes elements of an array.
    SetArrayElements, "ArrayReference.SetValues", 13, 3,
    { array: ObjectId, first: i32, values: Vec<UntaggedValue> } -> ()
);
