//! The values that a command has from variables of the environment: each may be a secret, and is masked in what is shown of
//! the command, of its output and of its failure.
//!
//! A value that is short, or an absolute path, is no secret: to mask it would spoil every other text in which it occurs.
//! Depends on `error` only.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorData};

/// Shorter values, such as a port or `true`, are not masked.
const MIN_CHARS: usize = 6;
/// More lines of a value are not looked for.
const MAX_LINES: usize = 1_000;

/// Values to mask, each with what is shown instead.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretValues {
    /// By value; a value of several lines is one for each of them, since output is masked line by line.
    values: BTreeMap<String, String>,
}

impl SecretValues {
    /// Adds a value; `shown` stands for it, such as `${env:TOKEN}`. One that is there keeps what is shown.
    pub fn add(&mut self, value: &str, shown: &str) {
        let lines = value.lines().map(str::trim).filter(|line| is_secret(line));
        for line in lines.take(MAX_LINES) {
            self.values.entry(line.to_owned()).or_insert_with(|| shown.to_owned());
        }
    }

    /// Adds the values of `others`.
    pub fn extend(&mut self, others: SecretValues) {
        for (value, shown) in others.values {
            self.values.entry(value).or_insert(shown);
        }
    }

    /// The text with each value replaced by what is shown instead.
    pub fn mask(&self, text: &str) -> String {
        let (mut masked, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((at, value, shown)) = self.find_first(rest) {
            masked.push_str(&rest[..at]);
            masked.push_str(shown);
            rest = &rest[at + value.len()..];
        }
        masked + rest
    }

    /// Masks every text of a JSON value; returns whether there was a value in one.
    pub fn mask_json(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let masked = self.mask(text);
                let is_masked = masked != *text;
                *text = masked;
                is_masked
            }
            Value::Array(items) => items.iter_mut().fold(false, |any, item| self.mask_json(item) | any),
            Value::Object(members) => members.values_mut().fold(false, |any, item| self.mask_json(item) | any),
            _ => false,
        }
    }

    /// The error with every text of it masked.
    pub fn mask_error(&self, error: Error) -> Error {
        let data = ErrorData::from(&error);
        let mask_all = |texts: &[String]| texts.iter().map(|text| self.mask(text)).collect::<Vec<_>>();
        let masked = ErrorData {
            kind: data.kind,
            doing: self.mask(&data.doing),
            because: mask_all(&data.because),
            hints: mask_all(&data.hints),
        };
        let is_same = masked.doing == data.doing && masked.because == data.because && masked.hints == data.hints;
        // An error that has nothing to mask keeps the types of its causes.
        if is_same { error } else { masked.into() }
    }

    /// The first value in a text; of several at one place the longest.
    fn find_first(&self, text: &str) -> Option<(usize, &str, &str)> {
        let found = self.values.iter().filter_map(|(value, shown)| Some((text.find(value)?, value, shown)));
        let (at, value, shown) = found.min_by_key(|(at, value, _)| (*at, std::cmp::Reverse(value.len())))?;
        Some((at, value, shown))
    }
}

/// The names only: a record of the program must not have the values.
impl fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.values()).finish()
    }
}

fn is_secret(value: &str) -> bool {
    value.chars().count() >= MIN_CHARS && !value.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn secrets(pairs: &[(&str, &str)]) -> SecretValues {
        let mut secrets = SecretValues::default();
        pairs.iter().for_each(|(value, shown)| secrets.add(value, shown));
        secrets
    }

    #[test]
    fn every_occurrence_of_a_value_is_masked_and_the_longest_at_a_place() {
        let check = |text: &str, expect: &str| {
            let secrets =
                secrets(&[("s3cret", "${env:A}"), ("s3cret-long", "${env:B}"), ("one1one\r\ntwo2two\n", "***")]);
            assert_eq!(secrets.mask(text), expect);
        };
        check("", "");
        check("a s3cret, s3crets3cret-long b", "a ${env:A}, ${env:A}${env:B} b");
        check("key:\n one1one\n two2two ä", "key:\n ***\n *** ä");
        assert_eq!(SecretValues::default().mask("s3cret"), "s3cret");
        assert_eq!(secrets(&[("${env:A}", "${env:A}")]).mask("${env:A}"), "${env:A}");
    }

    #[test]
    fn short_values_and_paths_are_no_secrets() {
        let mask = |value: &str| secrets(&[(value, "***")]).mask(&format!("<{value}>"));
        for value in ["", "3000", "true", "/home/somebody", "äöüäö"] {
            assert_eq!(mask(value), format!("<{value}>"));
        }
        assert_eq!(mask("äöüäöü"), "<***>");
    }

    #[test]
    fn every_part_of_an_error_is_masked() {
        let inner = Error::new(ErrorKind::MissingTool, "cannot run s3cret").because("s3cret!").hint("`x s3cret`");
        let error = secrets(&[("s3cret", "***")]).mask_error(Error::other("s3cret failed").because(inner));
        let text = "*** failed\n  because: cannot run ***\n  because: ***!\n  hint: `x ***`";
        assert_eq!((error.to_string(), error.kind), (text.to_owned(), ErrorKind::Other));
        assert!(!format!("{:?}", secrets(&[("s3cret", "***")])).contains("s3cret"));
    }
}
