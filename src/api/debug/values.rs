//! Values that every front end reads alike: `app.py:22`, seconds, `NAME=VALUE`.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};
use tether_base::error::{Error, Result};

use super::DEFAULT_STOP_TIMEOUT;

// A timeout: 0 to a day. (No doc comment: it would be in each tool's schema.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(into = "f64")]
pub struct Seconds(#[schemars(with = "f64")] Duration);

impl Seconds {
    const MOST: u64 = 24 * 60 * 60;

    /// A whole number of seconds.
    pub const fn of(seconds: u64) -> Seconds {
        Seconds(Duration::from_secs(seconds))
    }

    /// As a duration.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seconds, D::Error> {
        deserializer.deserialize_any(SecondsVisitor)
    }
}

/// Also reads what callers write instead of a number: `true` is the default of a wait, `false` none, and "30" is 30.
struct SecondsVisitor;

impl Visitor<'_> for SecondsVisitor {
    type Value = Seconds;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number of seconds")
    }

    fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Seconds, E> {
        seconds.try_into().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Seconds, E> {
        self.visit_f64(seconds as f64)
    }

    fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Seconds, E> {
        self.visit_f64(seconds as f64)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Seconds, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_bool<E: serde::de::Error>(self, waits: bool) -> Result<Seconds, E> {
        Ok(if waits { DEFAULT_STOP_TIMEOUT } else { Seconds::default() })
    }
}

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Seconds, String> {
        let span = Duration::try_from_secs_f64(seconds).ok().filter(|span| *span <= Duration::from_secs(Self::MOST));
        span.map(Seconds).ok_or_else(|| format!("{seconds} is not a number of seconds between 0 and {}", Self::MOST))
    }
}

impl From<Seconds> for f64 {
    fn from(seconds: Seconds) -> f64 {
        seconds.0.as_secs_f64()
    }
}

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seconds, String> {
        text.parse::<f64>().map_err(|_| format!("{text:?} is not a number of seconds"))?.try_into()
    }
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLine {
    pub file: String,
    pub line: u32,
    pub column: Option<u32>,
}

impl FileLine {
    /// Reads `app.py:22` or `app.js:10:5`; with a separate line, `file` is the whole path.
    pub fn parse(file: &str, line: Option<u32>) -> Result<FileLine> {
        match split_file_line(file, line) {
            (file, Some(line @ 1..), column) if column != Some(0) => {
                Ok(FileLine { file: file.to_owned(), line, column })
            }
            (_, Some(_), _) => Err(Error::usage(format!("{file:?} has no such line")).because("lines begin at 1")),
            (_, None, _) => {
                Err(Error::usage(format!("{file:?} has no line number")).hint(format!("write `{file}:LINE`")))
            }
        }
    }

    /// As [`FileLine::parse`], where the line may be missing.
    pub fn parse_file_or_line(file: &str, line: Option<u32>) -> Result<(String, Option<u32>)> {
        match split_file_line(file, line) {
            (file, None, _) => Ok((file.to_owned(), None)),
            _ => FileLine::parse(file, line).map(|spot| (spot.file, Some(spot.line))),
        }
    }
}

/// The file, the line, the column.
fn split_file_line(file: &str, line: Option<u32>) -> (&str, Option<u32>, Option<u32>) {
    let number = |text: &'_ str| -> Option<(usize, u32)> {
        let (before, digits) = text.rsplit_once(':')?;
        let number = digits.bytes().all(|it| it.is_ascii_digit()).then(|| digits.parse().ok())??;
        (!before.is_empty()).then_some((before.len(), number))
    };
    if line.is_some() {
        return (file, line, None);
    }
    let Some((end, last)) = number(file) else { return (file, None, None) };
    match number(&file[..end]) {
        Some((start, first)) => (&file[..start], Some(first), Some(last)),
        None => (&file[..end], Some(last), None),
    }
}

/// Reads a variable of a program's environment: `NAME=VALUE`.
pub(super) fn parse_env_variable(text: &str) -> Result<(String, Option<String>), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), Some(value.to_owned()))),
        _ => Err(format!("{text:?} is not NAME=VALUE")),
    }
}

/// The variables of an environment: an object, or a list of `NAME=VALUE`.
pub(super) mod env_variables {
    use std::collections::BTreeMap;

    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::parse_env_variable;

    type Variable = (String, Option<String>);

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "neither a list of NAME=VALUE nor an object of texts")]
    enum Variables {
        Listed(Vec<String>),
        Named(BTreeMap<String, Option<String>>),
    }

    pub fn serialize<S: Serializer>(variables: &[Variable], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(variables.iter().cloned())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Variable>, D::Error> {
        match Variables::deserialize(deserializer)? {
            Variables::Listed(texts) => texts.iter().map(|text| read_listed(text).map_err(D::Error::custom)).collect(),
            Variables::Named(variables) => Ok(variables.into_iter().collect()),
        }
    }

    fn read_listed(text: &str) -> Result<Variable, String> {
        match text {
            "" => Err("a name is missing".to_owned()),
            name if !name.contains('=') => Ok((name.to_owned(), None)),
            set => parse_env_variable(set),
        }
    }

    /// The list alone: some providers of models refuse an object of any names.
    pub fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "type": "string" } })
    }
}

/// Makes paths absolute that are relative to `folder`.
pub(in crate::api) fn make_absolute<'a>(paths: impl IntoIterator<Item = &'a mut String>, folder: &Path) {
    for path in paths {
        // The supervisor resolves `.` and `..`, and follows links.
        *path = folder.join(&*path).to_string_lossy().into_owned();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_part_of_the_file_argument_or_separate() {
        let check = |file: &str, line: Option<u32>, expect: Option<(&str, u32, Option<u32>)>| {
            let spot = FileLine::parse(file, line).ok();
            let expect = expect.map(|(file, line, column)| FileLine { file: file.to_owned(), line, column });
            assert_eq!(spot, expect, "{file} {line:?}");
        };
        check("app.py:22", None, Some(("app.py", 22, None)));
        check("src/a b/ä.js:10:5", None, Some(("src/a b/ä.js", 10, Some(5))));
        check("app.py", Some(3), Some(("app.py", 3, None)));
        check("odd:22", Some(3), Some(("odd:22", 3, None)));
        check(r"C:\app.py:7", None, Some((r"C:\app.py", 7, None)));
        for wrong in ["app.py", "app.py:", "app.py:x", ":22", "app.py:0", "app.py:3:0", "app.py:-1", ""] {
            check(wrong, None, None);
        }
        check("app.py", Some(0), None);
        check("app.py:99999999999", None, None);
    }

    #[test]
    fn a_file_may_come_without_its_line() {
        assert_eq!(FileLine::parse_file_or_line("app.py", None).unwrap(), ("app.py".to_owned(), None));
        assert_eq!(FileLine::parse_file_or_line("app.py:7", None).unwrap(), ("app.py".to_owned(), Some(7)));
        assert!(FileLine::parse_file_or_line("app.py:0", None).is_err());
    }

    #[test]
    fn the_environment_is_a_list_or_an_object() {
        let check = |given: serde_json::Value, expect: Option<&[(&str, Option<&str>)]>| {
            let owned = |it: &(&str, Option<&str>)| (it.0.to_owned(), it.1.map(str::to_owned));
            let expect = expect.map(|it| it.iter().map(owned).collect::<Vec<_>>());
            assert_eq!(env_variables::deserialize(given.clone()).ok(), expect, "{given}");
        };
        check(json!(["B=1=2", "A", "C="]), Some(&[("B", Some("1=2")), ("A", None), ("C", Some(""))]));
        check(json!({"A": null, "B": "1"}), Some(&[("A", None), ("B", Some("1"))]));
        check(json!(["=1"]), None);
        check(json!([""]), None);
        check(json!([1]), None);
        check(json!("A=1"), None);
    }

    #[test]
    fn only_a_valid_number_of_seconds_is_accepted() {
        let check = |text: &str, expect: Option<u64>| {
            let millis = text.parse::<Seconds>().ok().map(|it| it.duration().as_millis() as u64);
            assert_eq!(millis, expect, "{text}");
        };
        check("10", Some(10_000));
        check("0.25", Some(250));
        check("0", Some(0));
        for wrong in ["-1", "NaN", "inf", "1e300", "86401", "soon", ""] {
            check(wrong, None);
        }
        for (given, expect) in [("-1", None), ("true", Some(30)), ("false", Some(0)), ("\"5\"", Some(5)), ("[]", None)]
        {
            let seconds = serde_json::from_str::<Seconds>(given).ok();
            assert_eq!(seconds, expect.map(Seconds::of), "{given}");
        }
        assert_eq!(serde_json::to_string(&Seconds::of(2)).unwrap(), "2.0");
    }
}
