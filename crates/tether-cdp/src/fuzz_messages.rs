//! Decodes arbitrary bytes as what a browser or Node sends: for tests, and for the fuzz target in `fuzz/`.
//!
//! Does not depend on a connection.

use super::client::{parse_message, response_error};
use super::debugger::{self, CallArgument};
use super::events::{self, ConsoleApiCalled, ExceptionThrown};
use super::types::{self, EvaluateResult};
use super::{network, page_control, profiling};

/// Decodes the input as a message, and its result or parameters as every struct that is received. Returns as how many
/// they can be read.
pub fn decode_message(input: &[u8]) -> usize {
    let text = String::from_utf8_lossy(input);
    let Some(message) = parse_message(&text) else { return 0 };
    match message.id {
        Some(_) => match message.into_result() {
            Ok(result) => decode_body(result.get()),
            Err(error) => {
                drop(response_error("Domain.command", error).to_string());
                1
            }
        },
        None => message.into_event().map_or(0, |event| decode_body(event.params.get())),
    }
}

fn decode_body(text: &str) -> usize {
    if let Ok(evaluated) = serde_json::from_str::<EvaluateResult>(text) {
        let _ = (evaluated.result.text(), CallArgument::from_object(&evaluated.result));
        let _ = evaluated.exception_details.map(|details| details.text());
    }
    if let Ok(called) = serde_json::from_str::<ConsoleApiCalled>(text) {
        called.args.iter().for_each(|argument| drop(argument.text()));
    }
    if let Ok(thrown) = serde_json::from_str::<ExceptionThrown>(text) {
        drop(thrown.exception_details.text());
    }
    [
        types::decode_as_each,
        events::decode_as_each,
        network::decode_as_each,
        page_control::decode_as_each,
        profiling::decode_as_each,
        debugger::decode_as_each,
    ]
    .iter()
    .map(|decode| decode(text))
    .sum()
}
