//! Whole sessions of the adapter for Java that the input scripts: what the peer answers, and what is requested.

#![no_main]

use scripted_sessions::adapters::java_session;
use scripted_sessions::choices::Choices;
use scripted_sessions::runner::run_session;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let choices = Choices::of_input(input);
    run_session(move || java_session(choices, usize::MAX)).expect("a panic has ended this process");
});
