//! Lines of JSON-RPC messages on stdio: split, and bounded. Does not depend on what they say.

use bytes::{Buf, Bytes, BytesMut};
use tokio_util::codec::Decoder;

/// The longest line of a client that is read, in bytes.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// One line of input.
#[derive(Debug, PartialEq)]
pub enum InputLine {
    /// Without its end.
    Whole(Bytes),
    TooLong,
}

/// Splits bytes into lines; the content of a line that is too long is dropped.
#[derive(Debug)]
pub struct LineDecoder {
    longest: usize,
    seen: usize,
    dropping: bool,
}

impl LineDecoder {
    /// One for lines of this many bytes at most.
    pub fn new(longest: usize) -> LineDecoder {
        LineDecoder { longest, seen: 0, dropping: false }
    }
}

impl Decoder for LineDecoder {
    type Item = InputLine;
    type Error = std::io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> std::io::Result<Option<InputLine>> {
        let Some(end) = memchr::memchr(b'\n', bytes.get(self.seen..).unwrap_or_default()).map(|at| at + self.seen)
        else {
            self.seen = bytes.len();
            if bytes.len() > self.longest {
                self.dropping = true;
            }
            if self.dropping {
                bytes.clear();
                self.seen = 0;
            }
            return Ok(None);
        };
        let line = bytes.split_to(end).freeze();
        bytes.advance(1);
        self.seen = 0;
        let too_long = std::mem::take(&mut self.dropping) || line.len() > self.longest;
        Ok(Some(if too_long { InputLine::TooLong } else { InputLine::Whole(line) }))
    }

    fn decode_eof(&mut self, bytes: &mut BytesMut) -> std::io::Result<Option<InputLine>> {
        match self.decode(bytes)? {
            Some(line) => Ok(Some(line)),
            // A last line without an end is a message too: `printf … | tether mcp`.
            None if !bytes.is_empty() => {
                self.seen = 0;
                Ok(Some(InputLine::Whole(bytes.split().freeze())))
            }
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(input: &[u8], step: usize) -> Vec<InputLine> {
        let (mut codec, mut bytes, mut lines) = (LineDecoder::new(MAX_LINE), BytesMut::new(), vec![]);
        for piece in input.chunks(step) {
            bytes.extend_from_slice(piece);
            while let Some(line) = codec.decode(&mut bytes).unwrap() {
                lines.push(line);
            }
        }
        // FramedRead asks until there is nothing more.
        while let Some(line) = codec.decode_eof(&mut bytes).unwrap() {
            lines.push(line);
        }
        lines
    }

    #[test]
    fn lines_survive_any_split_and_long_ones_are_told() {
        let whole = |text: &'static str| InputLine::Whole(Bytes::from_static(text.as_bytes()));
        for step in 1..8 {
            assert_eq!(split(b"one\n\ntwo\r\nthree", step), [whole("one"), whole(""), whole("two\r"), whole("three")]);
        }
        let mut long = vec![b'x'; MAX_LINE + 1];
        long.extend_from_slice(b"\nnext\n");
        assert_eq!(split(&long, 1 << 20), [InputLine::TooLong, whole("next")]);
        assert_eq!(split(&long, long.len()), [InputLine::TooLong, whole("next")]);
    }
}
