//! A value with what is known of its type.

use tether_jdwp::values::JdwpValue;

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    /// A value of the program. `declared` is the signature of its type where the source says it; else that of the object
    /// itself counts.
    Value { value: JdwpValue, declared: Option<String> },
    /// A text that is no string of the program yet.
    Text(String),
}

impl Operand {
    /// A value whose own type counts.
    pub(crate) fn of(value: JdwpValue) -> Operand {
        Operand::Value { value, declared: None }
    }

    /// A value of a declared type.
    pub(crate) fn declared(value: JdwpValue, signature: &str) -> Operand {
        Operand::Value { value, declared: Some(signature.to_owned()) }
    }

    /// The value; `None` for a text.
    pub(crate) fn value(&self) -> Option<JdwpValue> {
        match self {
            Operand::Value { value, .. } => Some(*value),
            Operand::Text(_) => None,
        }
    }
}

/// The classes that box primitive values, by the tags of these.
pub(super) const BOXES: [(u8, &str); 8] = [
    (b'Z', "Ljava/lang/Boolean;"),
    (b'B', "Ljava/lang/Byte;"),
    (b'C', "Ljava/lang/Character;"),
    (b'S', "Ljava/lang/Short;"),
    (b'I', "Ljava/lang/Integer;"),
    (b'J', "Ljava/lang/Long;"),
    (b'F', "Ljava/lang/Float;"),
    (b'D', "Ljava/lang/Double;"),
];

/// The class that boxes values of that primitive type.
pub(super) fn box_of(tag: u8) -> Option<&'static str> {
    BOXES.iter().find(|(primitive, _)| *primitive == tag).map(|(_, class)| *class)
}

/// The tag of the primitive type that a class boxes.
pub(super) fn unboxed(signature: &str) -> Option<u8> {
    BOXES.iter().find(|(_, class)| *class == signature).map(|(tag, _)| *tag)
}
