//! Numbers, characters and strings as they are written in Java (JLS 3.10).

use tether_jdwp::values::JdwpValue;

/// A whole number: decimal, `0x`, `0b`, octal, with `_` and `L`. `is_negated`: a minus sign stands before it.
pub(super) fn parse_integer(text: &str, is_negated: bool) -> Result<JdwpValue, String> {
    let plain = text.replace('_', "").to_lowercase();
    let (digits, is_long) = plain.strip_suffix('l').map_or((plain.as_str(), false), |digits| (digits, true));
    let prefixes = [("0x", 16), ("0b", 2), ("0", 8)];
    let prefixed = prefixes.iter().find_map(|(prefix, radix)| Some((digits.strip_prefix(prefix)?, *radix)));
    let (digits, radix) = prefixed.filter(|_| digits != "0").unwrap_or((digits, 10));
    let too_large = || format!("the number {text} is too large");
    let number = u64::from_str_radix(digits, radix).map_err(|_| too_large())?;
    // In decimal, the smallest number can only be written with its sign; otherwise all bits may be set.
    let (long_limit, int_limit) = match radix {
        10 if is_negated => (i64::MIN.unsigned_abs(), i32::MIN.unsigned_abs()),
        10 => (i64::MAX.unsigned_abs(), i32::MAX.unsigned_abs()),
        _ => (u64::MAX, u32::MAX),
    };
    match is_long {
        true if number <= long_limit => Ok(JdwpValue::Long(number as i64)),
        false if number <= int_limit.into() => Ok(JdwpValue::Int(number as u32 as i32)),
        _ => Err(too_large()),
    }
}

/// A decimal floating-point number, with `_`, `f` and `d`.
pub(super) fn parse_floating(text: &str) -> Result<JdwpValue, String> {
    let plain = text.replace('_', "").to_lowercase();
    let bad = |_| format!("{text} is not a number");
    match plain.strip_suffix('f') {
        Some(digits) => Ok(JdwpValue::Float(digits.parse().map_err(bad)?)),
        None => Ok(JdwpValue::Double(plain.trim_end_matches('d').parse().map_err(bad)?)),
    }
}

/// A character in its quotes.
pub(super) fn parse_character(text: &str) -> Result<JdwpValue, String> {
    let inner = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(text);
    let units: Vec<u16> = unescape(inner)?.encode_utf16().collect();
    match units[..] {
        [unit] => Ok(JdwpValue::Char(unit)),
        _ => Err(format!("{text} is not one character")),
    }
}

/// A text with its escape sequences replaced.
pub(super) fn unescape(text: &str) -> Result<String, String> {
    let mut units: Vec<u16> = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        if letter != '\\' {
            units.extend(letter.encode_utf16(&mut [0; 2]).iter());
            continue;
        }
        let escape = rest.next().ok_or("a text ends with a backslash")?;
        units.push(match escape {
            'n' => 10,
            't' => 9,
            'r' => 13,
            'b' => 8,
            'f' => 12,
            's' => 32,
            '\\' | '\'' | '"' => escape as u16,
            'u' => {
                while rest.next_if_eq(&'u').is_some() {}
                let digits: String = rest.by_ref().take(4).collect();
                let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                unit.ok_or_else(|| format!("\\u{digits} is not an escape sequence"))?
            }
            '0'..='7' => {
                let mut value = octal_value(escape);
                let most = if escape <= '3' { 2 } else { 1 };
                for _ in 0..most {
                    let Some(digit) = rest.next_if(|c| ('0'..='7').contains(c)) else { break };
                    value = value << 3 | octal_value(digit);
                }
                value
            }
            other => return Err(format!("\\{other} is not an escape sequence")),
        });
    }
    Ok(String::from_utf16_lossy(&units))
}

/// What a digit from 0 to 7 stands for.
fn octal_value(digit: char) -> u16 {
    digit.to_digit(8).unwrap_or_default() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_java_writes_them() {
        let check = |text: &str, expect: JdwpValue| assert_eq!(parse_integer(text, false), Ok(expect), "{text}");
        check("0", JdwpValue::Int(0));
        check("1_000", JdwpValue::Int(1000));
        check("2147483647", JdwpValue::Int(i32::MAX));
        check("0xFFFFFFFF", JdwpValue::Int(-1));
        check("0b101", JdwpValue::Int(5));
        check("017", JdwpValue::Int(15));
        check("5L", JdwpValue::Long(5));
        check("0xFFFFFFFFFFFFFFFFL", JdwpValue::Long(-1));
        assert!(parse_integer("2147483648", false).is_err() && parse_integer("99999999999999999999L", false).is_err());
        assert_eq!(parse_integer("2147483648", true), Ok(JdwpValue::Int(i32::MIN)));
        assert_eq!(parse_integer("9223372036854775808L", true), Ok(JdwpValue::Long(i64::MIN)));
        assert_eq!(parse_floating("1.5e3"), Ok(JdwpValue::Double(1500.0)));
        assert_eq!(parse_floating("1_0.5f"), Ok(JdwpValue::Float(10.5)));
        assert_eq!(parse_floating("1d"), Ok(JdwpValue::Double(1.0)));
    }

    #[test]
    fn escape_sequences_are_replaced() {
        assert_eq!(parse_character("'a'"), Ok(JdwpValue::Char(97)));
        assert_eq!(parse_character("'\\n'"), Ok(JdwpValue::Char(10)));
        assert_eq!(parse_character("'\\u0041'"), Ok(JdwpValue::Char(65)));
        assert!(parse_character("'ab'").is_err() && parse_character("'😀'").is_err());
        assert_eq!(unescape("a\\tb\\\"\\101\\0😀").unwrap(), "a\tb\"A\0😀");
        assert!(unescape("\\").is_err() && unescape("\\q").is_err() && unescape("\\u12").is_err());
    }
}
