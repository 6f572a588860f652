//! Ids, locations and values, as the protocol has them.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use super::jdwp_error::JdwpError;
use super::reader::{JdwpDecode, PacketReader};
use super::writer::{JdwpEncode, PacketWriter};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident: $size:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(pub u64);

            impl JdwpEncode for $name {
                fn encode(&self, writer: &mut PacketWriter) {
                    writer.put_number(self.0, writer.sizes.$size);
                }
            }

            impl JdwpDecode for $name {
                fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
                    Ok($name(reader.take_number(reader.sizes.$size)?))
                }
            }
        )*
    };
}

ids! {
    /// An object: also a string, an array, a thread, a class loader. 0 is `null`.
    ObjectId: object;
    /// A class, an interface or the type of an array.
    ReferenceTypeId: reference_type;
    /// A method, within its class.
    MethodId: method;
    /// A field, within its class.
    FieldId: field;
    /// A frame of a suspended thread: valid until the thread runs, if only for a method that is invoked in it.
    FrameId: frame;
}

impl ObjectId {
    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// The kind of a reference type (JDWP: TypeTag Constants).
pub type TypeTag = u8;

/// A class.
pub const TYPE_CLASS: TypeTag = 1;
/// An interface.
pub const TYPE_INTERFACE: TypeTag = 2;
/// The type of an array.
pub const TYPE_ARRAY: TypeTag = 3;

/// A place in the code of a method (JDWP: Detailed Command Information, `location`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodeLocation {
    pub type_tag: TypeTag,
    pub class: ReferenceTypeId,
    pub method: MethodId,
    /// The index of the instruction.
    pub index: u64,
}

impl JdwpEncode for CodeLocation {
    fn encode(&self, writer: &mut PacketWriter) {
        self.type_tag.encode(writer);
        self.class.encode(writer);
        self.method.encode(writer);
        self.index.encode(writer);
    }
}

impl JdwpDecode for CodeLocation {
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        Ok(CodeLocation {
            type_tag: u8::decode(reader)?,
            class: ReferenceTypeId::decode(reader)?,
            method: MethodId::decode(reader)?,
            index: u64::decode(reader)?,
        })
    }
}

/// An object and what kind of object it is (JDWP: Tag Constants).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaggedObject {
    /// `L`, `[`, `s` (string), `t` (thread), `g` (thread group), `l` (class loader), `c` (class object)
    pub tag: u8,
    pub id: ObjectId,
}

impl TaggedObject {
    /// `null`.
    pub const NULL: TaggedObject = TaggedObject { tag: b'L', id: ObjectId(0) };
}

impl JdwpDecode for TaggedObject {
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        Ok(TaggedObject { tag: u8::decode(reader)?, id: ObjectId::decode(reader)? })
    }
}

/// A value of a variable, a field, an element or an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JdwpValue {
    Void,
    Boolean(bool),
    Byte(i8),
    /// A UTF-16 code unit.
    Char(u16),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    Object(TaggedObject),
}

impl JdwpValue {
    /// `null`.
    pub const NULL: JdwpValue = JdwpValue::Object(TaggedObject::NULL);

    /// The object, if it is one and not `null`.
    pub fn as_object(self) -> Option<TaggedObject> {
        match self {
            JdwpValue::Object(object) if !object.id.is_null() => Some(object),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        matches!(self, JdwpValue::Object(object) if object.id.is_null())
    }

    /// The tag that stands before it: for primitive values the first letter of their signature.
    pub fn tag(self) -> u8 {
        match self {
            JdwpValue::Void => b'V',
            JdwpValue::Boolean(_) => b'Z',
            JdwpValue::Byte(_) => b'B',
            JdwpValue::Char(_) => b'C',
            JdwpValue::Short(_) => b'S',
            JdwpValue::Int(_) => b'I',
            JdwpValue::Long(_) => b'J',
            JdwpValue::Float(_) => b'F',
            JdwpValue::Double(_) => b'D',
            JdwpValue::Object(object) => object.tag,
        }
    }

    /// Reads a value whose tag is known. Errors: there is no such tag.
    pub(super) fn decode_untagged(tag: u8, reader: &mut PacketReader<'_>) -> Result<JdwpValue, JdwpError> {
        Ok(match tag {
            b'V' => JdwpValue::Void,
            b'Z' => JdwpValue::Boolean(bool::decode(reader)?),
            b'B' => JdwpValue::Byte(i8::decode(reader)?),
            b'C' => JdwpValue::Char(u16::decode(reader)?),
            b'S' => JdwpValue::Short(i16::decode(reader)?),
            b'I' => JdwpValue::Int(i32::decode(reader)?),
            b'J' => JdwpValue::Long(i64::decode(reader)?),
            b'F' => JdwpValue::Float(f32::decode(reader)?),
            b'D' => JdwpValue::Double(f64::decode(reader)?),
            b'L' | b'[' | b's' | b't' | b'g' | b'l' | b'c' => {
                JdwpValue::Object(TaggedObject { tag, id: ObjectId::decode(reader)? })
            }
            other => return Err(JdwpError::Malformed(format!("a value with the tag {other}"))),
        })
    }
}

impl JdwpDecode for JdwpValue {
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        let tag = u8::decode(reader)?;
        JdwpValue::decode_untagged(tag, reader)
    }
}

impl JdwpEncode for JdwpValue {
    fn encode(&self, writer: &mut PacketWriter) {
        self.tag().encode(writer);
        UntaggedValue(*self).encode(writer);
    }
}

/// A value without its tag: the receiver knows the type of the field or element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UntaggedValue(pub JdwpValue);

impl JdwpEncode for UntaggedValue {
    fn encode(&self, writer: &mut PacketWriter) {
        match self.0 {
            JdwpValue::Void => {}
            JdwpValue::Boolean(value) => value.encode(writer),
            JdwpValue::Byte(value) => value.encode(writer),
            JdwpValue::Char(value) => value.encode(writer),
            JdwpValue::Short(value) => value.encode(writer),
            JdwpValue::Int(value) => value.encode(writer),
            JdwpValue::Long(value) => value.encode(writer),
            JdwpValue::Float(value) => value.encode(writer),
            JdwpValue::Double(value) => value.encode(writer),
            JdwpValue::Object(object) => object.id.encode(writer),
        }
    }
}

/// Elements of an array (JDWP: Detailed Command Information, `arrayregion`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArrayRegion(pub Vec<JdwpValue>);

impl JdwpDecode for ArrayRegion {
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        let tag = u8::decode(reader)?;
        let is_primitive = b"ZBCSIJFD".contains(&tag);
        let elements = reader.take_elements(|reader| match is_primitive {
            true => JdwpValue::decode_untagged(tag, reader),
            false => JdwpValue::decode(reader),
        })?;
        match elements.contains(&JdwpValue::Void) {
            true => Err(JdwpError::Malformed("an array of nothing".to_owned())),
            false => Ok(ArrayRegion(elements)),
        }
    }
}
