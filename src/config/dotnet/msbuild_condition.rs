//! Conditions and property references of MSBuild, as far as they are plain comparisons of text.
//!
//! Source: <https://learn.microsoft.com/en-us/visualstudio/msbuild/msbuild-conditions>

use std::collections::BTreeMap;

/// The properties of a project, by their names in lower case: MSBuild ignores the case.
#[derive(Clone, Debug, Default)]
pub struct MsbuildProperties(BTreeMap<String, String>);

impl MsbuildProperties {
    /// The value; `None`: there is none, or it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_lowercase()).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Sets a value, or replaces it.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_lowercase(), value.into());
    }

    /// Whether the value is `true`.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Whether the value is `false`.
    pub fn is_false(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("false"))
    }

    /// The text with each `$(Name)` replaced; one that is not set is empty. `None`: it calls a function.
    pub fn expand(&self, text: &str) -> Option<String> {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("$(") {
            let (name, after) = after.split_once(')')?;
            if !name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
                return None;
            }
            out.push_str(before);
            out.push_str(self.get(name).unwrap_or_default());
            rest = after;
        }
        Some(out + rest)
    }

    /// Whether a condition holds. One that is no comparison of texts, combined with `and` and `or`, does not.
    pub fn holds(&self, condition: &str) -> bool {
        let any = split_words(condition, " or ");
        any.iter().any(|all| split_words(all, " and ").iter().all(|one| self.is_equal_as_said(one)))
    }

    fn is_equal_as_said(&self, comparison: &str) -> bool {
        let (sides, expected) = match (comparison.split_once("=="), comparison.split_once("!=")) {
            (Some(sides), _) => (sides, true),
            (None, Some(sides)) => (sides, false),
            (None, None) => return false,
        };
        let value = |side: &str| self.expand(side.trim().trim_matches('\''));
        match (value(sides.0), value(sides.1)) {
            (Some(left), Some(right)) => left.eq_ignore_ascii_case(&right) == expected,
            _ => false,
        }
    }
}

fn split_words<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let (lower, mut parts, mut from) = (text.to_ascii_lowercase(), Vec::new(), 0);
    while let Some(at) = lower[from..].find(word) {
        parts.push(&text[from..from + at]);
        from += at + word.len();
    }
    parts.push(&text[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_hold_by_the_values_of_properties() {
        let mut properties = MsbuildProperties::default();
        properties.set("Configuration", "Debug");
        properties.set("Platform", "AnyCPU");
        let check = |condition: &str, expect: bool| assert_eq!(properties.holds(condition), expect, "{condition}");
        check("'$(Configuration)' == 'Debug'", true);
        check("'$(configuration)|$(Platform)'=='debug|AnyCPU'", true);
        check("'$(Configuration)' != 'Debug'", false);
        check("'$(Missing)' == ''", true);
        check("'$(Configuration)' == 'Debug' and '$(Platform)' == 'x64'", false);
        check("'$(Configuration)' == 'Debug' OR '$(Platform)' == 'x64'", true);
        check("Exists('a.txt')", false);
        check("'$([System.String]::Copy(a))' == 'a'", false);
        check("", false);
    }

    #[test]
    fn references_are_replaced_and_functions_are_not_evaluated() {
        let mut properties = MsbuildProperties::default();
        properties.set("A", "x");
        let check = |text: &str, expect: Option<&str>| assert_eq!(properties.expand(text).as_deref(), expect, "{text}");
        check("1$(a)2$(B)3", Some("1x23"));
        check("$([MSBuild]::Add(1, 2))", None);
        check("$(open", None);
    }
}
