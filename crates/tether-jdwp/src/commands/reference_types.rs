//! The commands of the ReferenceType (2) and Method (6) command sets, and ClassObjectReference (17).

// Names and fields are those of the specification.
#![allow(missing_docs)]

use super::{command, reply};
use crate::values::{FieldId, JdwpValue, MethodId, ObjectId, ReferenceTypeId, TypeTag};

command!(
    /// The name of a class, as a signature (`Lcom/example/App;`).
    Signature, "ReferenceType.Signature", 2, 1, { class: ReferenceTypeId } -> String
);
command!(
    /// The loader of a class; `null` for the one of the JDK's own classes.
    ClassLoaderOf, "ReferenceType.ClassLoader", 2, 2, { class: ReferenceTypeId } -> ObjectId
);
command!(
    /// The modifiers of a class.
    Modifiers, "ReferenceType.Modifiers", 2, 3, { class: ReferenceTypeId } -> i32
);
command!(
    /// The values of static fields.
    StaticFieldValues, "ReferenceType.GetValues", 2, 6,
    { class: ReferenceTypeId, fields: Vec<FieldId> } -> Vec<JdwpValue>
);
command!(
    /// The name of the source file, without its folder.
    SourceFile, "ReferenceType.SourceFile", 2, 7, { class: ReferenceTypeId } -> String
);
command!(
    /// The interfaces that a class implements, or that an interface extends, directly.
    Interfaces, "ReferenceType.Interfaces", 2, 10, { class: ReferenceTypeId } -> Vec<ReferenceTypeId>
);
command!(
    /// The `java.lang.Class` of a class.
    ClassObject, "ReferenceType.ClassObject", 2, 11, { class: ReferenceTypeId } -> ObjectId
);
command!(
    /// The fields that a class itself declares.
    FieldsWithGeneric, "ReferenceType.FieldsWithGeneric", 2, 14, { class: ReferenceTypeId } -> Vec<DeclaredField>
);
reply!(
    /// A field.
    DeclaredField { id: FieldId, name: String, signature: String, generic: String, modifiers: i32 }
);
command!(
    /// The methods that a class itself declares.
    MethodsWithGeneric, "ReferenceType.MethodsWithGeneric", 2, 15, { class: ReferenceTypeId } -> Vec<DeclaredMethod>
);
reply!(
    /// A method; `<init>` is a constructor, `<clinit>` the initialization of the class.
    DeclaredMethod { id: MethodId, name: String, signature: String, generic: String, modifiers: i32 }
);
command!(
    /// The constants of a class, as its class file has them.
    ConstantPoolOf, "ReferenceType.ConstantPool", 2, 18, { class: ReferenceTypeId } -> PoolBytes
);
reply!(
    /// `count` is one more than there are.
    PoolBytes { count: i32, bytes: Vec<u8> }
);

command!(
    /// Which line each instruction of a method is of.
    LineTable, "Method.LineTable", 6, 1, { class: ReferenceTypeId, method: MethodId } -> MethodLines
);
reply!(
    /// `start` and `end` are instructions; of a native method -1.
    MethodLines { start: i64, end: i64, lines: Vec<LineEntry> }
);
reply!(
    /// The first instruction of a part of a line.
    LineEntry { index: u64, line: i32 }
);
command!(
    /// The instructions of a method.
    Bytecodes, "Method.Bytecodes", 6, 3, { class: ReferenceTypeId, method: MethodId } -> Vec<u8>
);
command!(
    /// Whether a method has been redefined: it is run to its end only by threads that are in it.
    IsObsolete, "Method.IsObsolete", 6, 4, { class: ReferenceTypeId, method: MethodId } -> bool
);
command!(
    /// The variables of a method, with their generic signatures.
    VariableTableWithGeneric, "Method.VariableTableWithGeneric", 6, 5,
    { class: ReferenceTypeId, method: MethodId } -> MethodVariables
);
reply!(
    /// `argument_slots` counts the slots of the arguments, `this` included.
    MethodVariables { argument_slots: i32, variables: Vec<VariableEntryOfMethod> }
);
reply!(
    /// A variable that exists from the instruction `index` on, for `length` instructions.
    VariableEntryOfMethod { index: u64, name: String, signature: String, generic: String, length: u32, slot: i32 }
);

command!(
    /// The class that a `java.lang.Class` is of.
    ReflectedType, "ClassObjectReference.ReflectedType", 17, 1, { class_object: ObjectId } -> (TypeTag, ReferenceTypeId)
);
