//! Conditions on how often a breakpoint was reached, for the adapters that count themselves.

use std::fmt::{self, Display, Formatter};

/// A condition on the count of hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitCondition {
    /// Only this hit.
    Equal(u64),
    /// Hits before this one.
    Less(u64),
    /// Hits after this one.
    Greater(u64),
    /// Each hit of so many. Never zero.
    MultipleOf(u64),
}

impl HitCondition {
    /// `3`, `= 3`, `== 3`, `> 3`, `>= 3`, `< 3`, `<= 3`, `% 3`.
    pub fn parse(text: &str) -> Result<HitCondition, String> {
        let text = text.trim();
        let operator = text.trim_end_matches(|c: char| c.is_ascii_digit()).trim();
        let bad = || format!("`{text}` is not a hit condition: write `3`, `>= 3` or `% 3`");
        let number: u64 = text.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().map_err(|_| bad())?;
        match operator {
            "" | "=" | "==" => Ok(HitCondition::Equal(number)),
            "<" => Ok(HitCondition::Less(number)),
            "<=" => Ok(HitCondition::Less(number.saturating_add(1))),
            ">" => Ok(HitCondition::Greater(number)),
            ">=" => Ok(number.checked_sub(1).map_or(HitCondition::MultipleOf(1), HitCondition::Greater)),
            "%" if number > 0 => Ok(HitCondition::MultipleOf(number)),
            _ => Err(bad()),
        }
    }

    /// Whether it has held at one of the first `hits`.
    pub fn was_met(self, hits: u64) -> bool {
        match self {
            HitCondition::Equal(number) | HitCondition::MultipleOf(number) => (1..=hits).contains(&number),
            HitCondition::Less(number) => hits > 0 && number > 1,
            HitCondition::Greater(number) => hits > number,
        }
    }

    /// Whether it holds at the hit with that number.
    pub fn is_met(self, hits: u64) -> bool {
        match self {
            HitCondition::Equal(number) => hits == number,
            HitCondition::Less(number) => hits < number,
            HitCondition::Greater(number) => hits > number,
            HitCondition::MultipleOf(number) => hits.is_multiple_of(number),
        }
    }
}

impl Display for HitCondition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            HitCondition::Equal(number) => write!(f, "== {number}"),
            HitCondition::Less(number) => write!(f, "< {number}"),
            HitCondition::Greater(number) => write!(f, "> {number}"),
            HitCondition::MultipleOf(number) => write!(f, "% {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_conditions_are_read_and_met() {
        let check = |text: &str, met: &[u64]| {
            let condition = HitCondition::parse(text).unwrap();
            let found: Vec<u64> = (1..=6).filter(|hits| condition.is_met(*hits)).collect();
            assert_eq!(found, met, "{text}");
            assert_eq!(HitCondition::parse(&condition.to_string()), Ok(condition));
            for hits in 0..=6 {
                assert_eq!(condition.was_met(hits), met.iter().any(|it| *it <= hits), "{text} at {hits}");
            }
        };
        check("3", &[3]);
        check(" == 3", &[3]);
        check("> 4", &[5, 6]);
        check(">=4", &[4, 5, 6]);
        check(">= 0", &[1, 2, 3, 4, 5, 6]);
        check("< 3", &[1, 2]);
        check("<= 3", &[1, 2, 3]);
        check("%2", &[2, 4, 6]);
        for bad in ["", "x", "% 0", "! 3", "3 4", "-"] {
            assert!(HitCondition::parse(bad).is_err(), "{bad}");
        }
    }
}
