//! Frames and messages of the Debug Adapter Protocol, as adapters and editors send them.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    devtether::dap::fuzz_frames::decode_frames(input);
});
