//! Messages of the Chrome DevTools Protocol, as a browser or Node sends them.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    tether_cdp::fuzz_messages::decode_message(input);
});
