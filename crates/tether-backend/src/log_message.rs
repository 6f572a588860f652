//! Log messages of breakpoints: a text with `{expressions}`, for the adapters that evaluate these themselves.

/// A part of a log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// Is printed as it is.
    Text(String),
    /// Its value is printed.
    Expression(String),
}

/// The parts of a message. An expression may have braces itself; a brace that is none is written `\{`. Errors: a brace has no
/// end.
pub fn split_log_message(message: &str) -> Result<Vec<MessagePart>, String> {
    let (mut parts, mut plain) = (Vec::new(), String::new());
    let mut rest = message;
    loop {
        let mut letters = rest.chars();
        match letters.next() {
            None => break,
            Some('\\') => {
                let escaped = letters.clone().next().filter(|c| "{}\\".contains(*c));
                plain.push(escaped.unwrap_or('\\'));
                rest = letters.as_str();
                rest = escaped.and_then(|c| rest.strip_prefix(c)).unwrap_or(rest);
            }
            Some('{') => {
                let (expression, after) = split_at_closing_brace(letters.as_str())
                    .ok_or_else(|| format!("`{message}` has a brace without an end"))?;
                parts.extend((!plain.is_empty()).then(|| MessagePart::Text(std::mem::take(&mut plain))));
                parts.push(MessagePart::Expression(expression.trim().to_owned()));
                rest = after;
            }
            Some(letter) => {
                plain.push(letter);
                rest = letters.as_str();
            }
        }
    }
    parts.extend((!plain.is_empty()).then_some(MessagePart::Text(plain)));
    Ok(parts)
}

/// What stands before the brace that ends an expression, and after it.
fn split_at_closing_brace(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    let is_end = |character: char| {
        match character {
            '{' => depth = depth.saturating_add(1),
            '}' if depth == 0 => return true,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        false
    };
    text.split_once(is_end)
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
