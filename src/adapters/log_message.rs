//! Log messages of breakpoints: a text with `{expressions}`, for the adapters that evaluate these themselves.

/// A part of a log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePart {
    Text(String),
    Expression(String),
}

/// The parts of a message. An expression may have braces itself; a brace that is none is written `\{`. Errors: a brace has no
/// end.
pub fn split_log_message(message: &str) -> Result<Vec<MessagePart>, String> {
    let (mut parts, mut plain) = (Vec::new(), String::new());
    let mut rest = message;
    while let Some(at) = rest.find(['{', '\\']) {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if rest.as_bytes()[at] == b'\\' {
            let escaped = after.chars().next().filter(|c| "{}\\".contains(*c));
            plain.push(escaped.unwrap_or('\\'));
            rest = escaped.map_or(after, |c| &after[c.len_utf8()..]);
            continue;
        }
        let end = closing_brace(after).ok_or_else(|| format!("`{message}` has a brace without an end"))?;
        parts.extend((!plain.is_empty()).then(|| MessagePart::Text(std::mem::take(&mut plain))));
        parts.push(MessagePart::Expression(after[..end].trim().to_owned()));
        rest = &after[end + 1..];
    }
    plain.push_str(rest);
    parts.extend((!plain.is_empty()).then_some(MessagePart::Text(plain)));
    Ok(parts)
}

fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_messages_have_expressions_in_braces() {
        let text = |text: &str| MessagePart::Text(text.to_owned());
        let code = |text: &str| MessagePart::Expression(text.to_owned());
        let check = |message: &str, expect: &[MessagePart]| assert_eq!(split_log_message(message).unwrap(), expect);
        check("order is {order}!", &[text("order is "), code("order"), text("!")]);
        check("{a}{ ({b: 1}).b }", &[code("a"), code("({b: 1}).b")]);
        check("\\{a\\} \\n", &[text("{a} \\n")]);
        check("ä", &[text("ä")]);
        assert!(split_log_message("{a").is_err());
    }
}
