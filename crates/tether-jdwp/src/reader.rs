//! Reads the data of a packet, field by field.
//!
//! A count is never trusted: elements are read one by one, and the first that is not there ends the reading.

use super::id_sizes::IdSizes;
use super::jdwp_error::JdwpError;

/// How many elements a list has at most: in memory each is larger than on the wire.
const MAX_ELEMENTS: usize = 1 << 20;

/// The data of one received packet that is not read yet.
#[derive(Clone)]
pub struct PacketReader<'a> {
    rest: &'a [u8],
    pub(super) sizes: IdSizes,
}

/// A value that can be read from the data of a packet.
pub trait JdwpDecode: Sized {
    /// Reads one value. Errors: the data ends before, or is not such a value.
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError>;
}

impl<'a> PacketReader<'a> {
    /// A reader of the data of a packet.
    pub fn new(data: &'a [u8], sizes: IdSizes) -> PacketReader<'a> {
        PacketReader { rest: data, sizes }
    }

    /// The next `count` bytes. Errors: there are fewer.
    pub fn take_bytes(&mut self, count: usize) -> Result<&'a [u8], JdwpError> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(JdwpError::Malformed(format!("{count} bytes announced where {} are left", self.rest.len())));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// An unsigned number of `size` bytes (at most 8), most significant byte first.
    pub fn take_number(&mut self, size: usize) -> Result<u64, JdwpError> {
        let bytes = self.take_bytes(size.min(8))?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A count of bytes, which are yet to be read.
    pub fn take_count(&mut self) -> Result<usize, JdwpError> {
        let count = i32::decode(self)?;
        usize::try_from(count).map_err(|_| JdwpError::Malformed(format!("a count of {count}")))
    }

    /// The elements of a list, behind their count. Errors: there are fewer, or more than fit into memory.
    pub fn take_elements<T>(
        &mut self,
        decode: impl Fn(&mut PacketReader<'a>) -> Result<T, JdwpError>,
    ) -> Result<Vec<T>, JdwpError> {
        let count = self.take_count()?;
        if count > MAX_ELEMENTS {
            return Err(JdwpError::Malformed(format!("{count} elements, more than the {MAX_ELEMENTS} that are read")));
        }
        let mut elements = Vec::new();
        for _ in 0..count {
            // An element without bytes would let a count alone fill the memory.
            if self.bytes_left() == 0 {
                return Err(JdwpError::Malformed(format!("{count} elements announced, {} sent", elements.len())));
            }
            elements.push(decode(self)?);
        }
        Ok(elements)
    }

    /// How many bytes are not read yet.
    pub fn bytes_left(&self) -> usize {
        self.rest.len()
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl JdwpDecode for $number {
            fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
                // Of exactly this many bytes.
                Ok(reader.take_number(size_of::<$number>())? as $number)
            }
        })*
    };
}

numbers!(u8, i8, u16, i16, u32, i32, u64, i64);

impl JdwpDecode for bool {
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        Ok(u8::decode(reader)? != 0)
    }
}

impl JdwpDecode for f32 {
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        Ok(f32::from_bits(u32::decode(reader)?))
    }
}

impl JdwpDecode for f64 {
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        Ok(f64::from_bits(u64::decode(reader)?))
    }
}

impl JdwpDecode for () {
    fn decode(_: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        Ok(())
    }
}

impl JdwpDecode for String {
    /// In modified UTF-8 or not: what is no UTF-8 is replaced.
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        let count = reader.take_count()?;
        Ok(String::from_utf8_lossy(reader.take_bytes(count)?).into_owned())
    }
}

impl<T: JdwpDecode> JdwpDecode for Vec<T> {
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        reader.take_elements(T::decode)
    }
}

impl<A: JdwpDecode, B: JdwpDecode> JdwpDecode for (A, B) {
    fn decode(reader: &mut PacketReader<'_>) -> Result<Self, JdwpError> {
        Ok((A::decode(reader)?, B::decode(reader)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::{ArrayRegion, JdwpValue};

    #[test]
    fn a_list_has_only_so_many_elements_and_an_array_none_that_are_nothing() {
        let read = |count: usize, of: &[u8]| {
            let data = [&[b'L'][..], &(count as i32).to_be_bytes(), &of.repeat(count)].concat();
            ArrayRegion::decode(&mut PacketReader::new(&data, IdSizes::default())).map(|read| read.0.len())
        };
        assert_eq!(read(3, b"Z\x01"), Ok(3));
        assert!(read(3, b"V").is_err(), "an element of no type");
        assert!(read(MAX_ELEMENTS + 1, b"Z\x01").unwrap_err().to_string().contains("more than the 1048576"));
        let mut reader = PacketReader::new(&[0, 0, 0, 2, b'Z', 1], IdSizes::default());
        assert!(Vec::<JdwpValue>::decode(&mut reader).is_err(), "one of two was sent");
    }
}
