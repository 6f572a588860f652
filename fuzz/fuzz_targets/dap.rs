//! Frames and messages of the Debug Adapter Protocol, as adapters and editors send them.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    tether_dap::fuzz_frames::decode_frames(input);
});
