//! Decodes arbitrary bytes as what a virtual machine sends: for tests, and for the fuzz target in `fuzz/`.
//!
//! Does not depend on a connection.

use bytes::BytesMut;
use tokio_util::codec::Decoder;

use super::commands::class_types::{InvokeResult, NewInstanceResult};
use super::commands::reference_types::{DeclaredField, DeclaredMethod, MethodLines, MethodVariables};
use super::commands::threads::FrameEntryOfThread;
use super::commands::virtual_machine::{
    IdSizesReply, LoadedClass, NamedClass, VmCapabilities, VmClassPaths, VmVersion,
};
use super::events::CompositeEvent;
use super::id_sizes::IdSizes;
use super::packet::{JdwpPacket, MOST_RESERVED, PacketDecoder};
use super::reader::{JdwpDecode, PacketReader};
use super::values::{ArrayRegion, JdwpValue, ObjectId, ReferenceTypeId, TaggedObject, TypeTag};

/// Splits a stream into packets, and decodes the data of each as every event and every kind of reply. Of the input, the
/// first five bytes choose the sizes of ids, and the sixth where the stream is cut in two. Returns how many packets it
/// has. Panics: the cut makes a difference, or a buffer is larger than what was received accounts for.
pub fn decode_packets(input: &[u8]) -> usize {
    let Some((choices, stream)) = input.split_first_chunk::<6>() else { return 0 };
    let [sizes @ .., cut] = *choices;
    let sizes = IdSizes::from_reply(sizes.map(|byte| i32::from(byte % 8) + 1)).expect("each is from 1 to 8");
    let packets = split_stream(&[stream]);
    let (begin, rest) = stream.split_at(usize::from(cut).min(stream.len()));
    assert_eq!(split_stream(&[begin, rest]), packets, "cut after {cut} bytes");
    for packet in &packets {
        if let JdwpPacket::Command { data, .. } | JdwpPacket::Reply { data, .. } = packet {
            decode_data(data, sizes);
        }
    }
    packets.len()
}

fn split_stream(parts: &[&[u8]]) -> Vec<JdwpPacket> {
    let (mut decoder, mut received, mut packets) = (PacketDecoder::default(), BytesMut::new(), Vec::new());
    let length: usize = parts.iter().map(|part| part.len()).sum();
    for part in parts {
        received.extend_from_slice(part);
        while let Ok(Some(packet)) = decoder.decode(&mut received) {
            packets.push(packet);
        }
        // The buffer may double when it grows.
        assert!(received.capacity() <= 2 * length + 4 * MOST_RESERVED, "{} bytes", received.capacity());
    }
    packets
}

/// Decodes the data of a packet as every event and every kind of reply.
pub(super) fn decode_data(data: &[u8], sizes: IdSizes) {
    macro_rules! attempt {
        ($($reply:ty,)*) => { $(let _ = <$reply>::decode(&mut PacketReader::new(data, sizes));)* };
    }
    attempt! {
        CompositeEvent, ArrayRegion, IdSizesReply, InvokeResult, MethodLines, MethodVariables, NewInstanceResult,
        VmCapabilities, VmClassPaths, VmVersion, Vec<DeclaredField>, Vec<DeclaredMethod>, Vec<FrameEntryOfThread>,
        Vec<JdwpValue>, Vec<LoadedClass>, Vec<NamedClass>, Vec<ObjectId>, Vec<ReferenceTypeId>, Vec<TaggedObject>,
        (TypeTag, ReferenceTypeId), (i32, i32), String, ObjectId, i32, (),
    }
}
