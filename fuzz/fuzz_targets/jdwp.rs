//! Packets of the Java Debug Wire Protocol, as a virtual machine sends them.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    tether_jdwp::fuzz_packets::decode_packets(input);
});
