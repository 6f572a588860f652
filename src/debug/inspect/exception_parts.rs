//! The exceptions that one exception has in it, such as those of Python's ExceptionGroup, with where each was raised.

use super::evaluate::evaluate;
use super::scoped_id::ScopedId;
use super::stack::read_stack;
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::stop::ThreadStop;
use crate::vocabulary::StopKind;

/// The parts of the exception at which a thread has stopped, each in one line. Empty where it has none, or its adapter cannot tell.
pub async fn exception_parts(session: &DebugSession, target: usize, stop: &ThreadStop) -> Vec<String> {
    let expression = session.shared.target(target).quirks().exception_parts;
    let Some((expression, thread)) = expression.filter(|_| stop.kind == StopKind::Exception).zip(stop.thread_id) else {
        return Vec::new();
    };
    let parts = async {
        let stack = read_stack(session, Some(ScopedId { target, id: thread }), None, Some(1)).await.ok()?;
        let (_, answer) = evaluate(session, expression, Some(stack.frames.first()?.id), "watch").await.ok()?;
        decode_lines(&answer.result)
    };
    parts.await.unwrap_or_default()
}

/// Lines of text in hexadecimal digits, in quotes: no escapes of a language are in them.
fn decode_lines(result: &str) -> Option<Vec<String>> {
    let digits = result.trim_matches(['\'', '"']);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Vec<u8> = digits.as_bytes().chunks(2).map(byte).collect::<Option<_>>()?;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_hexadecimal() {
        assert_eq!(decode_lines("'410ac3a9'"), Some(vec!["A".to_owned(), "é".to_owned()]));
        assert_eq!(decode_lines("''"), Some(Vec::new()));
        assert_eq!(decode_lines("NameError"), None);
    }
}
