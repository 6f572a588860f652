//! Content-Length frames, the base protocol of LSP and DAP: a header block, an empty line, a body of JSON.
//!
//! A pure codec over bytes. It owns the two limits (header block 8 KiB, body 64 MiB) and what counts as a malformed
//! frame. It does not parse the body.
//! Source: <https://microsoft.github.io/language-server-protocol/specifications/base/0.9/specification/>

use bytes::{Buf, Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

/// The longest header block that is read, in bytes.
pub const MAX_HEADER: usize = 8 * 1024;
/// The longest body that is read or written, in bytes.
pub const MAX_BODY: usize = 64 * 1024 * 1024;

/// Why bytes are not a frame. None can be recovered from: where the next frame begins is unknown.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// No empty line has come within the limit.
    #[error("the header block is longer than {MAX_HEADER} bytes")]
    HeaderTooLong,
    /// It has a byte above 127.
    #[error("the header block is not ASCII text")]
    HeaderNotText,
    /// It has no colon; the line is as it was sent.
    #[error("the header line {0:?} is not `Name: value`")]
    HeaderLine(String),
    /// The value is as it was sent.
    #[error("Content-Length is {0:?}, not a number of bytes")]
    BadLength(String),
    /// Where the body would end is unknown.
    #[error("the header block has no Content-Length")]
    NoLength,
    /// Its size as announced, or that of a body to be sent.
    #[error("a body of {0} bytes is over the limit of {MAX_BODY}")]
    BodyTooLong(u64),
    /// In the header block or in the body.
    #[error("the connection ended in the middle of a frame")]
    HalfFrame,
    /// The stream below cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Splits a byte stream into bodies, and puts headers before bodies.
#[derive(Debug, Default)]
pub struct ContentLength {
    /// Set between a header block and the end of its body.
    body: Option<usize>,
}

impl Decoder for ContentLength {
    type Item = Bytes;
    type Error = FrameError;

    fn decode(&mut self, bytes: &mut BytesMut) -> Result<Option<Bytes>, FrameError> {
        let length = match self.body {
            Some(length) => length,
            None => match take_header(bytes)? {
                Some(length) => *self.body.insert(length),
                None => return Ok(None),
            },
        };
        if bytes.len() < length {
            // Not `reserve(length)`: a header of 64 MiB without a body must not allocate them.
            return Ok(None);
        }
        self.body = None;
        Ok(Some(bytes.split_to(length).freeze()))
    }

    fn decode_eof(&mut self, bytes: &mut BytesMut) -> Result<Option<Bytes>, FrameError> {
        match self.decode(bytes)? {
            Some(body) => Ok(Some(body)),
            None if bytes.is_empty() && self.body.is_none() => Ok(None),
            None => Err(FrameError::HalfFrame),
        }
    }
}

impl Encoder<Bytes> for ContentLength {
    type Error = FrameError;

    fn encode(&mut self, body: Bytes, out: &mut BytesMut) -> Result<(), FrameError> {
        if body.len() > MAX_BODY {
            return Err(FrameError::BodyTooLong(body.len() as u64));
        }
        out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        out.extend_from_slice(&body);
        Ok(())
    }
}

/// Removes a complete header block from the front. Returns its Content-Length; `None` when more bytes are needed.
fn take_header(bytes: &mut BytesMut) -> Result<Option<usize>, FrameError> {
    let seen = bytes.get(..MAX_HEADER).unwrap_or(&bytes[..]);
    let Some(end) = seen.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if bytes.len() >= MAX_HEADER { Err(FrameError::HeaderTooLong) } else { Ok(None) };
    };
    let length = parse_header(seen.get(..end).unwrap_or_default())?;
    bytes.advance(end.saturating_add(4));
    Ok(Some(length))
}

fn parse_header(block: &[u8]) -> Result<usize, FrameError> {
    let text = std::str::from_utf8(block).ok().filter(|text| text.is_ascii()).ok_or(FrameError::HeaderNotText)?;
    let mut length = None;
    for line in text.split("\r\n") {
        let (name, value) = line.split_once(':').ok_or_else(|| FrameError::HeaderLine(line.to_owned()))?;
        if name.trim().eq_ignore_ascii_case("content-length") {
            let bytes: u64 = value.trim().parse().map_err(|_| FrameError::BadLength(value.trim().to_owned()))?;
            if bytes > MAX_BODY as u64 {
                return Err(FrameError::BodyTooLong(bytes));
            }
            length = Some(bytes as usize);
        }
    }
    length.ok_or(FrameError::NoLength)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decodes `input` in pieces that end at `cuts`. Returns the frames and the error, if any.
    fn decode_pieces(input: &[u8], cuts: &[usize]) -> (Vec<Bytes>, Option<String>) {
        let (mut codec, mut buffer, mut frames, mut from) = (ContentLength::default(), BytesMut::new(), vec![], 0);
        for end in cuts.iter().copied().chain([input.len()]) {
            let end = end.clamp(from, input.len());
            buffer.extend_from_slice(&input[from..end]);
            from = end;
            loop {
                match codec.decode(&mut buffer) {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(error) => return (frames, Some(error.to_string())),
                }
            }
        }
        match codec.decode_eof(&mut buffer) {
            Ok(_) => (frames, None),
            Err(error) => (frames, Some(error.to_string())),
        }
    }

    #[test]
    fn the_error_of_a_malformed_frame_names_its_cause() {
        let check = |input: &[u8], expect: &str| {
            let (frames, error) = decode_pieces(input, &[]);
            assert!(frames.is_empty(), "{input:?}");
            let error = error.unwrap_or_default();
            assert!(error.contains(expect), "{input:?}: {error}");
        };
        check(b"Content-Length: abc\r\n\r\n{}", "\"abc\"");
        check(b"Content-Length: -1\r\n\r\n{}", "\"-1\"");
        check(b"Content-Length: 1073741824\r\n\r\n{}", "1073741824");
        check(b"Content-Length: 99999999999999999999999\r\n\r\n{}", "not a number");
        check(b"Content-Type: x\r\n\r\n{}", "no Content-Length");
        check(b"hello\r\n\r\n", "\"hello\"");
        check("Contént-Length: 2\r\n\r\n{}".as_bytes(), "not ASCII");
        check(&vec![b'x'; MAX_HEADER], "longer than");
        check(b"Content-Length: 10\r\n\r\n{}", "middle of a frame");
        check(b"Content-Len", "middle of a frame");
    }

    #[test]
    fn other_headers_and_letter_cases_are_accepted() {
        let (frames, error) = decode_pieces(b"content-type: x; charset=utf-8\r\nCONTENT-LENGTH:2\r\n\r\n{}", &[]);
        assert_eq!((frames, error), (vec![Bytes::from_static(b"{}")], None));
    }

    proptest! {
        #[test]
        fn frames_are_decoded_whatever_the_split(bodies in prop::collection::vec("\\PC{0,40}", 0..6), cuts in prop::collection::vec(0usize..400, 0..12)) {
            let mut out = BytesMut::new();
            for body in &bodies {
                ContentLength::default().encode(Bytes::from(body.clone()), &mut out).unwrap();
            }
            let mut cuts = cuts;
            cuts.sort_unstable();
            let (frames, error) = decode_pieces(&out, &cuts);
            prop_assert_eq!(error, None);
            prop_assert_eq!(frames, bodies.into_iter().map(Bytes::from).collect::<Vec<_>>());
        }
    }
}
