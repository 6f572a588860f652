//! Operators on primitive values, as the language defines them (JLS 5.6 and 15.15 to 15.24): promotion to `int`, `long`,
//! `float` or `double`; overflow wraps; only a whole number cannot be divided by zero.

use tether_jdwp::values::JdwpValue;

use super::syntax::{BinaryOperator, UnaryOperator};

/// Two numbers, promoted to their common type.
enum NumberPair {
    Int(i32, i32),
    Long(i64, i64),
    Float(f32, f32),
    Double(f64, f64),
}

/// What a whole number throws that is divided by zero.
const DIVIDED_BY_ZERO: &str = "java.lang.ArithmeticException: / by zero";

/// The value of a primitive with an operator before it. Errors: the operator does not take it.
pub(super) fn apply_unary(operator: UnaryOperator, value: JdwpValue) -> Result<JdwpValue, String> {
    use JdwpValue as V;
    let refused = || format!("`{}` does not take a {}", unary_text(operator), type_word(value));
    if operator == UnaryOperator::Not {
        return if let V::Boolean(value) = value { Ok(V::Boolean(!value)) } else { Err(refused()) };
    }
    Ok(match (operator, promote(value).ok_or_else(refused)?) {
        (UnaryOperator::Plus, number) => number,
        (UnaryOperator::Minus, V::Int(number)) => V::Int(number.wrapping_neg()),
        (UnaryOperator::Minus, V::Long(number)) => V::Long(number.wrapping_neg()),
        (UnaryOperator::Minus, V::Float(number)) => V::Float(-number),
        (UnaryOperator::Minus, V::Double(number)) => V::Double(-number),
        (UnaryOperator::Complement, V::Int(number)) => V::Int(!number),
        (UnaryOperator::Complement, V::Long(number)) => V::Long(!number),
        _ => return Err(refused()),
    })
}

/// The value of two primitives with an operator between them. Errors: the operator does not take them, or the division
/// by zero that the program would throw.
pub(super) fn apply_binary(operator: BinaryOperator, left: JdwpValue, right: JdwpValue) -> Result<JdwpValue, String> {
    use BinaryOperator as B;
    if let (JdwpValue::Boolean(left), JdwpValue::Boolean(right)) = (left, right) {
        return apply_logic(operator, left, right);
    }
    if matches!(operator, B::ShiftLeft | B::ShiftRight | B::UnsignedShiftRight) {
        return apply_shift(operator, left, right);
    }
    let pair = promote_pair(left, right).ok_or_else(|| refusal(operator, left, right))?;
    match (operator, pair) {
        (B::Less | B::LessOrEqual | B::Greater | B::GreaterOrEqual | B::Equal | B::NotEqual, pair) => {
            Ok(JdwpValue::Boolean(compare_numbers(operator, &pair)))
        }
        (_, NumberPair::Int(left, right)) => apply_to_ints(operator, left, right),
        (_, NumberPair::Long(left, right)) => apply_to_longs(operator, left, right),
        (_, NumberPair::Float(l, r)) => {
            let number = apply_to_floating(operator, f64::from(l), f64::from(r));
            // The exact result of `f32` operands is rounded once: `f64` has more than twice their digits.
            number.map(|number| JdwpValue::Float(number as f32)).ok_or_else(|| refusal(operator, left, right))
        }
        (_, NumberPair::Double(l, r)) => {
            apply_to_floating(operator, l, r).map(JdwpValue::Double).ok_or_else(|| refusal(operator, left, right))
        }
    }
}

/// A number as another primitive type: of a cast, or of an assignment (JLS 5.1.2, 5.1.3). `None`: neither is a number, or
/// there is no such type.
pub(super) fn convert_number(value: JdwpValue, tag: u8) -> Option<JdwpValue> {
    use JdwpValue as V;
    if value.tag() == tag {
        return Some(value);
    }
    let (whole, floating) = match promote(value)? {
        V::Int(number) => (i64::from(number), f64::from(number)),
        V::Long(number) => (number, number as f64),
        V::Float(number) => (narrow(f64::from(number), tag), f64::from(number)),
        V::Double(number) => (narrow(number, tag), number),
        _ => return None,
    };
    Some(match tag {
        b'B' => V::Byte(whole as i8),
        b'C' => V::Char(whole as u16),
        b'S' => V::Short(whole as i16),
        b'I' => V::Int(whole as i32),
        b'J' => V::Long(whole),
        // From `long` directly: by way of `double` it would be rounded twice.
        b'F' => V::Float(if let V::Long(number) = value { number as f32 } else { floating as f32 }),
        b'D' => V::Double(floating),
        _ => return None,
    })
}

/// A floating-point number becomes a `long` or an `int` first, whose limits it keeps to.
fn narrow(number: f64, tag: u8) -> i64 {
    if tag == b'J' { number as i64 } else { i64::from(number as i32) }
}

/// Whether a primitive type is converted to another without a cast (JLS 5.1.2).
pub(super) fn is_widened(from: u8, to: u8) -> bool {
    let wider: &[u8] = match from {
        b'B' => b"SIJFD",
        b'S' | b'C' => b"IJFD",
        b'I' => b"JFD",
        b'J' => b"FD",
        b'F' => b"D",
        _ => b"",
    };
    from == to || wider.contains(&to)
}

/// Unary numeric promotion; `None` for what is no number.
pub(super) fn promote(value: JdwpValue) -> Option<JdwpValue> {
    use JdwpValue as V;
    Some(match value {
        V::Byte(number) => V::Int(i32::from(number)),
        V::Short(number) => V::Int(i32::from(number)),
        V::Char(number) => V::Int(i32::from(number)),
        V::Int(_) | V::Long(_) | V::Float(_) | V::Double(_) => value,
        V::Void | V::Boolean(_) | V::Object(_) => return None,
    })
}

fn promote_pair(left: JdwpValue, right: JdwpValue) -> Option<NumberPair> {
    let tags = [promote(left)?.tag(), promote(right)?.tag()];
    let widest = *b"DFJI".iter().find(|tag| tags.contains(tag))?;
    Some(match (convert_number(left, widest)?, convert_number(right, widest)?) {
        (JdwpValue::Int(left), JdwpValue::Int(right)) => NumberPair::Int(left, right),
        (JdwpValue::Long(left), JdwpValue::Long(right)) => NumberPair::Long(left, right),
        (JdwpValue::Float(left), JdwpValue::Float(right)) => NumberPair::Float(left, right),
        (JdwpValue::Double(left), JdwpValue::Double(right)) => NumberPair::Double(left, right),
        _ => return None,
    })
}

fn compare_numbers(operator: BinaryOperator, pair: &NumberPair) -> bool {
    fn compare<T: PartialOrd>(operator: BinaryOperator, left: T, right: T) -> bool {
        match operator {
            BinaryOperator::Less => left < right,
            BinaryOperator::LessOrEqual => left <= right,
            BinaryOperator::Greater => left > right,
            BinaryOperator::GreaterOrEqual => left >= right,
            BinaryOperator::Equal => left == right,
            _ => left != right,
        }
    }
    match *pair {
        NumberPair::Int(left, right) => compare(operator, left, right),
        NumberPair::Long(left, right) => compare(operator, left, right),
        NumberPair::Float(left, right) => compare(operator, left, right),
        NumberPair::Double(left, right) => compare(operator, left, right),
    }
}

fn apply_logic(operator: BinaryOperator, left: bool, right: bool) -> Result<JdwpValue, String> {
    use BinaryOperator as B;
    Ok(JdwpValue::Boolean(match operator {
        B::And | B::AndThen => left && right,
        B::Or | B::OrElse => left || right,
        B::Xor | B::NotEqual => left != right,
        B::Equal => left == right,
        _ => return Err(refusal(operator, JdwpValue::Boolean(left), JdwpValue::Boolean(right))),
    }))
}

macro_rules! whole_numbers {
    ($name:ident, $number:ty, $variant:ident) => {
        fn $name(operator: BinaryOperator, left: $number, right: $number) -> Result<JdwpValue, String> {
            use BinaryOperator as B;
            Ok(JdwpValue::$variant(match operator {
                B::Add => left.wrapping_add(right),
                B::Subtract => left.wrapping_sub(right),
                B::Multiply => left.wrapping_mul(right),
                // The smallest number has no counterpart: it stays what it is.
                B::Divide if right == -1 => left.wrapping_neg(),
                B::Remainder if right == -1 => 0,
                B::Divide => left.checked_div(right).ok_or(DIVIDED_BY_ZERO)?,
                B::Remainder => left.checked_rem(right).ok_or(DIVIDED_BY_ZERO)?,
                B::And => left & right,
                B::Or => left | right,
                B::Xor => left ^ right,
                _ => return Err(refusal(operator, JdwpValue::$variant(left), JdwpValue::$variant(right))),
            }))
        }
    };
}

whole_numbers!(apply_to_ints, i32, Int);
whole_numbers!(apply_to_longs, i64, Long);

fn apply_to_floating(operator: BinaryOperator, left: f64, right: f64) -> Option<f64> {
    Some(match operator {
        BinaryOperator::Add => left + right,
        BinaryOperator::Subtract => left - right,
        BinaryOperator::Multiply => left * right,
        BinaryOperator::Divide => left / right,
        BinaryOperator::Remainder => left % right,
        _ => return None,
    })
}

/// The type is that of the left operand; of the right one only the low bits count.
fn apply_shift(operator: BinaryOperator, left: JdwpValue, right: JdwpValue) -> Result<JdwpValue, String> {
    use BinaryOperator as B;
    let distance = match promote(right) {
        Some(JdwpValue::Int(distance)) => distance as u32,
        Some(JdwpValue::Long(distance)) => distance as u32,
        _ => return Err(refusal(operator, left, right)),
    };
    Ok(match (promote(left), operator) {
        (Some(JdwpValue::Int(number)), B::ShiftLeft) => JdwpValue::Int(number.wrapping_shl(distance)),
        (Some(JdwpValue::Int(number)), B::ShiftRight) => JdwpValue::Int(number.wrapping_shr(distance)),
        (Some(JdwpValue::Int(number)), _) => JdwpValue::Int((number as u32).wrapping_shr(distance) as i32),
        (Some(JdwpValue::Long(number)), B::ShiftLeft) => JdwpValue::Long(number.wrapping_shl(distance)),
        (Some(JdwpValue::Long(number)), B::ShiftRight) => JdwpValue::Long(number.wrapping_shr(distance)),
        (Some(JdwpValue::Long(number)), _) => JdwpValue::Long((number as u64).wrapping_shr(distance) as i64),
        _ => return Err(refusal(operator, left, right)),
    })
}

fn refusal(operator: BinaryOperator, left: JdwpValue, right: JdwpValue) -> String {
    format!("{operator:?} does not take a {} and a {}", type_word(left), type_word(right))
}

fn unary_text(operator: UnaryOperator) -> &'static str {
    match operator {
        UnaryOperator::Plus => "+",
        UnaryOperator::Minus => "-",
        UnaryOperator::Not => "!",
        UnaryOperator::Complement => "~",
    }
}

/// The type of a value in words.
pub(super) fn type_word(value: JdwpValue) -> &'static str {
    match value {
        _ if value.is_null() => "null",
        JdwpValue::Object(_) => "object",
        _ => super::super::signatures::PRIMITIVES.iter().find(|(tag, _)| *tag == value.tag()).map_or("", |(_, it)| it),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use JdwpValue as V;

    #[test]
    fn numbers_are_promoted_and_wrap() {
        use BinaryOperator as B;
        let check = |left: V, operator: B, right: V, expect: V| {
            assert_eq!(apply_binary(operator, left, right), Ok(expect), "{left:?} {operator:?} {right:?}");
        };
        check(V::Int(7), B::Divide, V::Int(-2), V::Int(-3));
        check(V::Int(-7), B::Remainder, V::Int(2), V::Int(-1));
        check(V::Int(i32::MAX), B::Add, V::Int(1), V::Int(i32::MIN));
        check(V::Int(i32::MIN), B::Divide, V::Int(-1), V::Int(i32::MIN));
        check(V::Int(i32::MIN), B::Remainder, V::Int(-1), V::Int(0));
        check(V::Long(i64::MIN), B::Divide, V::Int(-1), V::Long(i64::MIN));
        check(V::Int(-7), B::Divide, V::Int(-1), V::Int(7));
        check(V::Byte(100), B::Add, V::Byte(100), V::Int(200));
        check(V::Char(97), B::Add, V::Int(1), V::Int(98));
        check(V::Int(1), B::Add, V::Long(2), V::Long(3));
        check(V::Int(1), B::Divide, V::Double(2.0), V::Double(0.5));
        check(V::Float(0.1), B::Add, V::Float(0.2), V::Float(0.1 + 0.2));
        check(V::Double(1.0), B::Divide, V::Int(0), V::Double(f64::INFINITY));
        check(V::Int(1), B::ShiftLeft, V::Int(33), V::Int(2));
        check(V::Int(-1), B::UnsignedShiftRight, V::Int(28), V::Int(15));
        check(V::Long(-1), B::UnsignedShiftRight, V::Int(60), V::Long(15));
        check(V::Int(-8), B::ShiftRight, V::Long(1), V::Int(-4));
        check(V::Int(6), B::Xor, V::Int(3), V::Int(5));
        check(V::Boolean(true), B::Xor, V::Boolean(true), V::Boolean(false));
        check(V::Double(f64::NAN), B::NotEqual, V::Double(f64::NAN), V::Boolean(true));
        check(V::Char(97), B::Less, V::Double(97.5), V::Boolean(true));
        for operator in [B::Divide, B::Remainder] {
            assert_eq!(apply_binary(operator, V::Int(1), V::Long(0)), Err(DIVIDED_BY_ZERO.to_owned()));
        }
        assert!(apply_binary(B::Add, V::Boolean(true), V::Int(1)).is_err());
        assert!(apply_binary(B::And, V::Double(1.0), V::Int(1)).is_err());
    }

    #[test]
    fn casts_keep_to_the_limits_of_their_type() {
        let check = |value: V, tag: u8, expect: V| assert_eq!(convert_number(value, tag), Some(expect), "{value:?}");
        check(V::Int(300), b'B', V::Byte(44));
        check(V::Double(1e20), b'I', V::Int(i32::MAX));
        check(V::Double(f64::NAN), b'J', V::Long(0));
        check(V::Double(-1.9), b'I', V::Int(-1));
        check(V::Double(3e9), b'S', V::Short(-1));
        check(V::Int(65), b'C', V::Char(65));
        check(V::Long(1 << 40), b'I', V::Int(0));
        check(V::Int(1), b'D', V::Double(1.0));
        assert_eq!(convert_number(V::Boolean(true), b'I'), None);
        assert!(is_widened(b'C', b'I') && is_widened(b'I', b'I') && !is_widened(b'I', b'C') && !is_widened(b'S', b'C'));
        assert_eq!(apply_unary(UnaryOperator::Minus, V::Char(1)), Ok(V::Int(-1)));
        assert!(apply_unary(UnaryOperator::Not, V::Int(1)).is_err());
    }
}
