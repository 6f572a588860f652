//! The commands that are used, one file for each group of command sets; each names its section of the specification:
//! `VirtualMachine.Version` is command set VirtualMachine (1), command Version (1).

pub mod class_types;
pub mod objects;
pub mod reference_types;
pub mod threads;
pub mod virtual_machine;

pub use super::reader::JdwpDecode;
pub use super::writer::PacketWriter;

/// A command: the implementing type has its arguments.
pub trait JdwpCommand {
    /// The command set and the command, as in the specification.
    const NAME: &'static str;
    /// The numbers of the command set and of the command.
    const NUMBERS: (u8, u8);
    /// The data of its reply.
    type Reply: JdwpDecode + Send + 'static;

    /// Writes the arguments.
    fn encode_arguments(&self, writer: &mut PacketWriter);
}

/// A command with its name, its numbers, its arguments in their order, and its reply.
macro_rules! command {
    ($(#[$doc:meta])* $name:ident, $text:literal, $set:literal, $command:literal,
     { $($field:ident: $kind:ty),* $(,)? } -> $reply:ty) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name { $(pub $field: $kind),* }

        impl crate::commands::JdwpCommand for $name {
            const NAME: &'static str = $text;
            const NUMBERS: (u8, u8) = ($set, $command);
            type Reply = $reply;

            #[allow(unused_variables)]
            fn encode_arguments(&self, writer: &mut crate::writer::PacketWriter) {
                $(crate::writer::JdwpEncode::encode(&self.$field, writer);)*
            }
        }
    };
}

/// A part of a reply, with its fields in their order.
macro_rules! reply {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind),* }

        impl crate::reader::JdwpDecode for $name {
            fn decode(
                reader: &mut crate::reader::PacketReader<'_>,
            ) -> Result<Self, crate::jdwp_error::JdwpError> {
                Ok($name { $($field: crate::reader::JdwpDecode::decode(reader)?),* })
            }
        }
    };
}

pub(crate) use {command, reply};
