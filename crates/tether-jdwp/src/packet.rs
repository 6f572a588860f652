//! The frames of the protocol (JDWP: JDWP Packets): a header of 11 bytes, and data.

use bytes::{Buf, Bytes, BytesMut};
use tokio_util::codec::Decoder;

use super::jdwp_error::JdwpError;

/// The size of a header, in bytes.
const HEADER: usize = 11;
/// The largest packet that is received or sent, in bytes.
pub(crate) const MAX_PACKET: usize = 64 << 20;
/// The largest reply that is passed over, in bytes: its length is a signed number of 32 bits.
const MAX_PASSED_OVER: usize = i32::MAX as usize;
/// How many bytes are reserved ahead for a packet that has been announced and not received yet.
pub(super) const MOST_RESERVED: usize = 64 << 10;
/// The flag of a reply.
const REPLY: u8 = 0x80;

/// A received packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JdwpPacket {
    /// An event, or another command of the virtual machine.
    Command { set: u8, command: u8, data: Bytes },
    /// A reply to the request with that id; `error` is 0 if it succeeded.
    Reply { id: u32, error: u16, data: Bytes },
    /// A reply of so many bytes, which were passed over: a text of the program may have any length.
    LargeReply { id: u32, length: usize },
}

/// Splits received bytes into packets.
#[derive(Debug, Default)]
pub(crate) struct PacketDecoder {
    /// The reply that is passed over, and how many of its bytes are still to come.
    large: Option<(u32, usize, usize)>,
}

impl Decoder for PacketDecoder {
    type Item = JdwpPacket;
    type Error = PacketError;

    fn decode(&mut self, received: &mut BytesMut) -> Result<Option<JdwpPacket>, PacketError> {
        if self.large.is_some() {
            return Ok(self.pass_over(received));
        }
        let Some(length) = received.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if (MAX_PACKET + 1..=MAX_PASSED_OVER).contains(&length) {
            let Some(header) = received.first_chunk::<HEADER>() else { return Ok(None) };
            let [_, _, _, _, id @ .., flags, _, _] = *header;
            if flags & REPLY != 0 {
                self.large = Some((u32::from_be_bytes(id), length, length));
                return Ok(self.pass_over(received));
            }
        }
        if !(HEADER..=MAX_PACKET).contains(&length) {
            return Err(JdwpError::Malformed(format!("a packet of {length} bytes")).into());
        }
        if received.len() < length {
            received.reserve(length.saturating_sub(received.len()).min(MOST_RESERVED));
            return Ok(None);
        }
        let mut packet = received.split_to(length).freeze();
        packet.advance(4);
        let (id, flags, set, command) = (packet.get_u32(), packet.get_u8(), packet.get_u8(), packet.get_u8());
        Ok(Some(match flags & REPLY {
            0 => JdwpPacket::Command { set, command, data: packet },
            _ => JdwpPacket::Reply { id, error: u16::from_be_bytes([set, command]), data: packet },
        }))
    }
}

impl PacketDecoder {
    /// Drops what has come of a large reply; the reply itself, without its data, when that is all.
    fn pass_over(&mut self, received: &mut BytesMut) -> Option<JdwpPacket> {
        let (id, length, left) = self.large.take()?;
        let dropped = left.min(received.len());
        received.advance(dropped);
        if dropped == left {
            return Some(JdwpPacket::LargeReply { id, length });
        }
        self.large = Some((id, length, left.saturating_sub(dropped)));
        None
    }
}

/// Why no more packets can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PacketError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Malformed(#[from] JdwpError),
}

/// A command with its header.
pub(crate) fn encode_command(id: u32, set: u8, command: u8, data: &[u8]) -> Bytes {
    let length = data.len().saturating_add(HEADER) as u32;
    [&length.to_be_bytes()[..], &id.to_be_bytes(), &[0, set, command], data].concat().into()
}

/// A reply with its header.
#[cfg(test)]
pub(crate) fn encode_reply(id: u32, error: u16, data: &[u8]) -> Bytes {
    let length = (HEADER + data.len()) as u32;
    [&length.to_be_bytes()[..], &id.to_be_bytes(), &[REPLY], &error.to_be_bytes(), data].concat().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::IdSizes;
    use crate::fuzz_packets::{decode_data, decode_packets};
    use crate::reader::{JdwpDecode, PacketReader};
    use crate::values::{CodeLocation, JdwpValue};
    use crate::writer::{JdwpEncode, PacketWriter};

    fn sizes() -> impl Strategy<Value = IdSizes> {
        prop::array::uniform5(1..=8i32).prop_map(|sizes| IdSizes::from_reply(sizes).unwrap())
    }

    proptest! {
        /// Whatever a virtual machine sends is an error at most. A count of two billion is never believed.
        #[test]
        fn any_data_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), sizes in sizes()) {
            decode_data(&bytes, sizes);
            let mut counted = i32::MAX.to_be_bytes().to_vec();
            counted.extend(&bytes);
            decode_data(&counted, sizes);
        }

        #[test]
        fn any_stream_is_split_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..300), cuts in prop::collection::vec(1..40usize, 0..20)
        ) {
            let (mut decoder, mut received, mut rest) = (PacketDecoder::default(), BytesMut::new(), &bytes[..]);
            for cut in cuts.into_iter().chain([300]) {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                received.extend_from_slice(now);
                rest = later;
                while let Ok(Some(_)) = decoder.decode(&mut received) {}
                // The buffer may double when it grows.
                prop_assert!(received.capacity() <= 4 * MOST_RESERVED);
            }
        }

        #[test]
        fn packets_survive_any_split(data in prop::collection::vec(any::<u8>(), 0..100), cut in 0..60usize, id: u32) {
            let bytes = [&encode_command(id, 64, 100, &data)[..], &encode_reply(id, 13, &data)].concat();
            let (mut decoder, mut received) = (PacketDecoder::default(), BytesMut::new());
            let mut packets = Vec::new();
            let cut = cut.min(bytes.len());
            for part in [&bytes[..cut], &bytes[cut..]] {
                received.extend_from_slice(part);
                while let Some(packet) = decoder.decode(&mut received).unwrap() {
                    packets.push(packet);
                }
            }
            let data = Bytes::from(data);
            let expected = [
                JdwpPacket::Command { set: 64, command: 100, data: data.clone() },
                JdwpPacket::Reply { id, error: 13, data },
            ];
            prop_assert_eq!(packets, expected);
        }

        #[test]
        fn ids_and_values_survive_in_every_size(number: u64, sizes in sizes()) {
            let fits = |size: usize| if size == 8 { number } else { number & ((1 << (8 * size)) - 1) };
            let location = CodeLocation {
                type_tag: 1,
                class: crate::values::ReferenceTypeId(fits(sizes.reference_type)),
                method: crate::values::MethodId(fits(sizes.method)),
                index: number,
            };
            let mut writer = PacketWriter::new(sizes);
            location.encode(&mut writer);
            JdwpValue::Double(f64::from_bits(number)).encode(&mut writer);
            JdwpValue::Long(number as i64).encode(&mut writer);
            let bytes = writer.into_bytes();
            let mut reader = PacketReader::new(&bytes, sizes);
            prop_assert_eq!(CodeLocation::decode(&mut reader).unwrap(), location);
            let JdwpValue::Double(double) = JdwpValue::decode(&mut reader).unwrap() else { panic!() };
            prop_assert_eq!(double.to_bits(), number);
            prop_assert_eq!(JdwpValue::decode(&mut reader).unwrap(), JdwpValue::Long(number as i64));
            prop_assert_eq!(reader.bytes_left(), 0);
        }
    }

    /// Mutations of valid packets reach what random bytes do not: fields behind valid ones.
    #[test]
    fn mutated_packets_are_read_without_a_panic_and_without_a_large_buffer() {
        let breakpoint = [&[1, 0, 0, 0, 1, 2, 0, 0, 0, 7][..], &[0; 8], &[1], &[0; 8], &[0; 8], &[0; 8]].concat();
        let prepare = [&[0, 0, 0, 0, 1, 8, 0, 0, 0, 7][..], &[0; 8], &[1], &[0; 8], b"\0\0\0\x03LA;", &[0; 4]].concat();
        let classes = [&[0, 0, 0, 1, 1][..], &[0; 8], b"\0\0\0\x03LA;", &[0; 4], &[0; 4]].concat();
        let values = [&[0, 0, 0, 2, b'I', 0, 0, 0, 1, b'L'][..], &[0; 8]].concat();
        let packets = [
            encode_command(1, 64, 100, &breakpoint),
            encode_command(2, 64, 100, &prepare),
            encode_reply(3, 0, &classes),
            encode_reply(4, 13, &values),
        ];
        // Ids of eight bytes, and a cut in the middle of the first packet's header.
        let inputs = packets.map(|packet| [&[7; 6][..], &packet[..]].concat());
        let samples: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let mut read = 0;
        tether_wire::mutation::check_mutations(&samples, 30_000, |bytes| read += decode_packets(bytes));
        assert!(read > 1000, "most mutations are no packets: {read}");
    }

    #[test]
    fn a_packet_over_the_limit_or_shorter_than_its_header_is_refused() {
        for length in [0u32, 10, MAX_PASSED_OVER as u32 + 1, u32::MAX] {
            let mut received = BytesMut::from(&length.to_be_bytes()[..]);
            assert!(PacketDecoder::default().decode(&mut received).is_err(), "{length}");
        }
        let event = [&(MAX_PACKET as u32 + 1).to_be_bytes()[..], &[0; 4], &[0, 64, 100]].concat();
        assert!(PacketDecoder::default().decode(&mut BytesMut::from(&event[..])).is_err(), "an event of that size");
    }

    #[test]
    fn a_large_reply_is_passed_over_and_the_next_packet_read() {
        let length = MAX_PACKET + 5;
        let mut received =
            BytesMut::from(&[&(length as u32).to_be_bytes()[..], &[0, 0, 0, 7, REPLY, 0, 0]].concat()[..]);
        let (mut decoder, mut left) = (PacketDecoder::default(), length - HEADER);
        while left > 0 {
            assert_eq!(decoder.decode(&mut received).unwrap(), None);
            assert!(received.is_empty(), "nothing of it is kept");
            let part = left.min(1 << 20);
            received.extend_from_slice(&vec![b'x'; part]);
            left -= part;
        }
        received.extend_from_slice(&encode_reply(8, 0, b"next"));
        assert_eq!(decoder.decode(&mut received).unwrap(), Some(JdwpPacket::LargeReply { id: 7, length }));
        let next = JdwpPacket::Reply { id: 8, error: 0, data: Bytes::from_static(b"next") };
        assert_eq!(decoder.decode(&mut received).unwrap(), Some(next));
    }
}
