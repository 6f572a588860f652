//! Decodes arbitrary bytes as what the other side of DAP sends: for tests, and for the fuzz target in `fuzz/`.
//!
//! Does not depend on a connection.

use bytes::{Bytes, BytesMut};
use serde_json::value::RawValue;
use tether_wire::frames::ContentLength;
use tokio_util::codec::Decoder;

use super::message::{DapMessage, MAX_ERROR_TEXT, RawEvent, parse_body, parse_message};
use super::types::*;

/// Splits a stream into frames, and decodes each as a message with the body or the arguments that it has. The first byte
/// of the input chooses where the stream is cut in two. Returns how many messages it has. Panics: the cut makes a
/// difference, a buffer is larger than what was received accounts for, or the text of an error is too long.
pub fn decode_frames(input: &[u8]) -> usize {
    let Some((cut, stream)) = input.split_first() else { return 0 };
    let (frames, end) = split_stream(&[stream]);
    let (begin, rest) = stream.split_at(usize::from(*cut).min(stream.len()));
    assert_eq!(split_stream(&[begin, rest]), (frames.clone(), end), "cut after {cut} bytes");
    frames.iter().filter(|frame| decode_message(frame)).count()
}

/// The bodies of the frames, and why there are no more.
fn split_stream(parts: &[&[u8]]) -> (Vec<Bytes>, Option<String>) {
    let (mut decoder, mut received, mut frames) = (ContentLength::default(), BytesMut::new(), Vec::new());
    let length: usize = parts.iter().map(|part| part.len()).sum();
    for part in parts {
        received.extend_from_slice(part);
        loop {
            match decoder.decode(&mut received) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error.to_string())),
            }
        }
        assert!(received.capacity() <= 2 * length + 1024, "a length is not believed: {}", received.capacity());
    }
    let end = decoder.decode_eof(&mut received).err();
    (frames, end.map(|error| error.to_string()))
}

/// Whether it is a message.
fn decode_message(frame: &[u8]) -> bool {
    match parse_message(frame) {
        Ok(DapMessage::Event(event)) => decode_event(&event),
        Ok(DapMessage::Request { command, arguments, .. }) => decode_arguments(&command, arguments.as_deref()),
        Ok(DapMessage::Response { outcome: Ok(body), .. }) => decode_response(body.as_deref()),
        Ok(DapMessage::Response { outcome: Err(error), .. }) => {
            let text = error.to_string();
            assert!(text.len() <= frame.len() + MAX_ERROR_TEXT, "{} bytes of text", text.len());
        }
        Err(_) => return false,
    }
    true
}

fn decode_event(event: &RawEvent) {
    macro_rules! attempt {
        ($($body:ty,)*) => { $(let _ = event.read_body::<$body>();)* };
    }
    attempt! {
        InitializedEvent, StoppedEvent, ContinuedEvent, ExitedEvent, TerminatedEvent, ThreadEvent, OutputEvent,
        BreakpointEvent, InvalidatedEvent, ModuleEvent, LoadedSourceEvent, MonitorEvent, ProcessEvent, CapabilitiesEvent,
    }
}

/// As the arguments of the requests that editors send us, and adapters.
fn decode_arguments(command: &str, arguments: Option<&RawValue>) {
    macro_rules! attempt {
        ($($request:ty,)*) => { $(
            if <$request as DapRequest>::COMMAND == command {
                let _ = parse_body::<$request>(arguments);
            }
        )* };
    }
    attempt! {
        InitializeArguments, LaunchArguments, AttachArguments, ConfigurationDoneArguments, TerminateArguments,
        DisconnectArguments, SetDebuggerPropertyArguments, CaptureEventsArguments, RedefineClassesArguments,
        SetBreakpointsArguments, SetFunctionBreakpointsArguments, SetExceptionBreakpointsArguments,
        SetDataBreakpointsArguments, DataBreakpointInfoArguments, ThreadsArguments, StackTraceArguments,
        ScopesArguments, VariablesArguments, EvaluateArguments, SetVariableArguments, SetExpressionArguments,
        ExceptionInfoArguments, SourceArguments, ContinueArguments, NextArguments, StepInArguments,
        StepInTargetsArguments, CompletionsArguments, StepOutArguments, PauseArguments, RunInTerminalArguments,
        StartDebuggingArguments,
    }
}

/// As every response: to which request it responds is known only to who sent that.
fn decode_response(body: Option<&RawValue>) {
    macro_rules! attempt {
        ($($response:ty,)*) => { $(let _ = parse_body::<$response>(body);)* };
    }
    attempt! {
        DapCapabilities, CaptureEventsResponse, RedefineClassesResponse, SetBreakpointsResponse,
        SetExceptionBreakpointsResponse, DataBreakpointInfoResponse, ThreadsResponse, StackTraceResponse,
        ScopesResponse, VariablesResponse, EvaluateResponse, SetVariableResponse, ExceptionInfoResponse,
        SourceResponse, ContinueResponse, StepInTargetsResponse, CompletionsResponse, RunInTerminalResponse,
        EmptyResponse,
    }
}
