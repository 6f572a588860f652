//! Writes the data of a packet, field by field.

use super::id_sizes::IdSizes;

/// The data of a packet to be sent.
pub struct PacketWriter {
    pub(super) bytes: Vec<u8>,
    pub(super) sizes: IdSizes,
}

/// A value that can be written into the data of a packet.
pub(crate) trait JdwpEncode {
    /// Appends the value.
    fn encode(&self, writer: &mut PacketWriter);
}

impl PacketWriter {
    /// A writer for a virtual machine with ids of these sizes.
    pub fn new(sizes: IdSizes) -> PacketWriter {
        PacketWriter { bytes: Vec::new(), sizes }
    }

    /// Appends the `size` least significant bytes of a number, most significant byte first.
    pub fn put_number(&mut self, number: u64, size: usize) {
        let bytes = number.to_be_bytes();
        self.bytes.extend(bytes.iter().skip(bytes.len().saturating_sub(size)));
    }

    /// Appends a count of elements.
    pub fn put_count(&mut self, count: usize) {
        // The client sends no packet in which more elements would fit.
        i32::try_from(count).unwrap_or(i32::MAX).encode(self);
    }

    /// The data.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl JdwpEncode for $number {
            fn encode(&self, writer: &mut PacketWriter) {
                writer.bytes.extend_from_slice(&self.to_be_bytes());
            }
        })*
    };
}

numbers!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl JdwpEncode for bool {
    fn encode(&self, writer: &mut PacketWriter) {
        u8::from(*self).encode(writer);
    }
}

impl JdwpEncode for str {
    fn encode(&self, writer: &mut PacketWriter) {
        writer.put_count(self.len());
        writer.bytes.extend_from_slice(self.as_bytes());
    }
}

impl JdwpEncode for String {
    fn encode(&self, writer: &mut PacketWriter) {
        self.as_str().encode(writer);
    }
}

impl<T: JdwpEncode> JdwpEncode for Vec<T> {
    fn encode(&self, writer: &mut PacketWriter) {
        writer.put_count(self.len());
        for element in self {
            element.encode(writer);
        }
    }
}

impl<A: JdwpEncode, B: JdwpEncode> JdwpEncode for (A, B) {
    fn encode(&self, writer: &mut PacketWriter) {
        self.0.encode(writer);
        self.1.encode(writer);
    }
}
