//! `window/input`: the actions on the window's page, and their short form on the command line.

use std::collections::BTreeMap;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::debug::results::StoppedSession;
use super::window::RefreshNotice;
use crate::vocabulary::MouseButton;

/// Perform mouse and keyboard actions on the page, in order. Each waits for its element; the first failure ends the
/// call.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageInputParams {
    /// Actions to perform, in order.
    #[arg(
        required = true,
        value_name = "ACTION",
        help = "`click e12`, `click 10,20`, `hover e3`, `drag e4 e5`, `scroll e6 0,300`, `type \"text\" [into e7]`, `press Control+Shift+P`, `fill e7=text`, `select e3 \"Blue\"`, `check e4`, `uncheck e4`, `upload e9 a.txt`, `drop e9 a.txt`, `paste \"text\" into e7`, `dialog accept`, `dialog dismiss`, `wait \"text\"`, `wait e8` (until gone), or JSON"
    )]
    pub actions: Vec<InputActionParams>,
    /// Return a new snapshot after the actions.
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub snapshot: Option<bool>,
    /// Another page: its id, or part of its URL or title.
    #[arg(long)]
    pub page: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum InputActionKind {
    #[default]
    Click,
    Hover,
    Drag,
    Scroll,
    Type,
    Press,
    Fill,
    Select,
    Check,
    Uncheck,
    Paste,
    Upload,
    Drop,
    Dialog,
    Wait,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InputActionParams {
    /// Kind of action.
    #[serde(rename = "do")]
    pub does: InputActionKind,
    /// Ref of the element, such as e12; or give x and y. wait: until the element is gone.
    #[serde(rename = "ref")]
    pub at: Option<String>,
    /// Horizontal position in CSS pixels.
    pub x: Option<f64>,
    /// Vertical position in CSS pixels.
    pub y: Option<f64>,
    /// drag: destination, a ref or "x,y".
    pub to: Option<String>,
    /// type, paste, fill: text to enter. wait: until it is shown. dialog: answer to a prompt.
    pub text: Option<String>,
    /// press: a key or chord, such as "Enter" or "Control+Shift+P".
    pub keys: Option<String>,
    /// click: mouse button (default left).
    pub button: Option<MouseButton>,
    /// fill: each as `e7=text`; `true` or `false` for a checkbox.
    #[serde(default, deserialize_with = "form_fields::deserialize")]
    #[schemars(with = "Option<Vec<String>>")]
    pub fields: Option<BTreeMap<String, String>>,
    /// select: labels or values. upload, drop: files of the workspace.
    pub values: Option<Vec<String>>,
    /// dialog, before the action that opens it: accept (default) or dismiss.
    pub accept: Option<bool>,
    /// click: hold this long.
    pub hold_ms: Option<u64>,
    /// click, press: number of times (default 1). 2: double click.
    pub count: Option<u32>,
    /// scroll: horizontal distance in CSS pixels.
    pub dx: Option<f64>,
    /// scroll: vertical distance in CSS pixels.
    pub dy: Option<f64>,
    /// Time limit in milliseconds (default 5000). wait without ref or text: how long to wait.
    pub timeout_ms: Option<u64>,
}

/// The short form of an action on the command line: its verb, then its target; or the action as JSON.
impl FromStr for InputActionParams {
    type Err = String;

    fn from_str(text: &str) -> Result<InputActionParams, String> {
        let text = text.trim();
        if text.starts_with('{') {
            return serde_json::from_str(text).map_err(|error| error.to_string());
        }
        let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let does = InputActionKind::from_str(verb, true).map_err(|_| format!("there is no action {verb:?}"))?;
        if rest.is_empty() {
            return Err("each action is one argument, in quotes: \"click e12\", \"press Enter\"".to_owned());
        }
        let mut action = InputActionParams { does, ..InputActionParams::default() };
        match does {
            InputActionKind::Type => match rest.rsplit_once(" into ").filter(|(_, name)| is_ref(name)) {
                Some((text, name)) => (action.text, action.at) = (Some(strip_quotes(text)), Some(name.to_owned())),
                None => action.text = Some(strip_quotes(rest)),
            },
            InputActionKind::Paste => match rest.rsplit_once(" into ").filter(|(_, name)| is_ref(name)) {
                Some((text, name)) => (action.text, action.at) = (Some(strip_quotes(text)), Some(name.to_owned())),
                None => action.text = Some(strip_quotes(rest)),
            },
            InputActionKind::Fill => {
                let wrong = || format!("{rest:?} is not REF=TEXT");
                let (name, text) = rest.split_once('=').filter(|(name, _)| is_ref(name)).ok_or_else(wrong)?;
                action.fields = Some([(name.to_owned(), strip_quotes(text))].into());
            }
            InputActionKind::Select | InputActionKind::Upload | InputActionKind::Drop => {
                let wrong = || format!("{rest:?} is not a ref and a value");
                let (name, value) = rest.split_once(' ').filter(|(name, _)| is_ref(name)).ok_or_else(wrong)?;
                (action.at, action.values) = (Some(name.to_owned()), Some(vec![strip_quotes(value.trim())]));
            }
            InputActionKind::Dialog => {
                let (word, text) = rest.split_once(' ').unwrap_or((rest, ""));
                action.accept = Some(match word {
                    "accept" => true,
                    "dismiss" => false,
                    _ => return Err(format!("{word:?} is neither `accept` nor `dismiss`")),
                });
                action.text = (!text.is_empty()).then(|| strip_quotes(text.trim()));
            }
            InputActionKind::Press => action.keys = Some(rest.to_owned()),
            InputActionKind::Wait if is_ref(rest) => action.at = Some(rest.to_owned()),
            InputActionKind::Wait => match rest.parse() {
                Ok(span) => action.timeout_ms = Some(span),
                Err(_) => action.text = Some(strip_quotes(rest)),
            },
            InputActionKind::Click
            | InputActionKind::Hover
            | InputActionKind::Drag
            | InputActionKind::Scroll
            | InputActionKind::Check
            | InputActionKind::Uncheck => action.read_target(rest)?,
        }
        Ok(action)
    }
}

impl InputActionParams {
    fn read_target(&mut self, rest: &str) -> Result<(), String> {
        let mut words = rest.split_whitespace();
        let mut first = words.next().unwrap_or_default();
        // `scroll 0,300` is a distance.
        if self.does == InputActionKind::Scroll && !is_ref(first) && words.clone().next().is_none() {
            (self.dx, self.dy) = parse_pair(first)?;
            return Ok(());
        }
        if is_ref(first) {
            self.at = Some(first.to_owned());
        } else {
            (self.x, self.y) = parse_pair(first)?;
        }
        for word in words {
            first = word;
            match self.does {
                InputActionKind::Drag if first != "to" => self.to = Some(first.to_owned()),
                InputActionKind::Scroll => (self.dx, self.dy) = parse_pair(first)?,
                InputActionKind::Drag => {}
                _ => return Err(format!("{word:?} is not understood here; use JSON")),
            }
        }
        Ok(())
    }
}

fn is_ref(word: &str) -> bool {
    word.strip_prefix('e').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()))
}

fn parse_pair(text: &str) -> Result<(Option<f64>, Option<f64>), String> {
    let wrong = || format!("{text:?} is neither a ref nor x,y");
    let (x, y) = text.split_once(',').ok_or_else(wrong)?;
    Ok((Some(x.trim().parse().map_err(|_| wrong())?), Some(y.trim().parse().map_err(|_| wrong())?)))
}

fn strip_quotes(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text).to_owned()
}

/// What the actions did.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageInputResult {
    /// Those that are done.
    pub actions: Vec<InputActionReport>,
    /// A session in the window is stopped; an action that is missing was under way.
    pub stopped: Option<StoppedSession>,
    pub snapshot: Option<String>,
    pub generation: u64,
    pub refreshed: Option<RefreshNotice>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What one action did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputActionReport {
    pub did: String,
    /// Dialogs, downloads, another document, a new page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The values of a form: `["e7=text"]`, or an object. Not every provider of models takes an object without names.
mod form_fields {
    use std::collections::BTreeMap;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer};

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "neither a list of REF=TEXT nor an object of texts")]
    enum Fields {
        Listed(Vec<String>),
        Named(BTreeMap<String, String>),
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<BTreeMap<String, String>>, D::Error> {
        let read = |text: String| {
            let (name, value) =
                text.split_once('=').ok_or_else(|| D::Error::custom(format!("{text:?} is not REF=TEXT")))?;
            Ok((name.to_owned(), value.to_owned()))
        };
        match Option::<Fields>::deserialize(deserializer)? {
            None => Ok(None),
            Some(Fields::Listed(texts)) => texts.into_iter().map(read).collect::<Result<_, _>>().map(Some),
            Some(Fields::Named(fields)) => Ok(Some(fields)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_values_of_a_form_are_a_list_or_an_object() {
        let read = |fields: serde_json::Value| {
            let action = serde_json::from_value::<InputActionParams>(json!({"do": "fill", "fields": fields}));
            action.map(|it| it.fields.unwrap_or_default().into_iter().collect::<Vec<_>>()).ok()
        };
        let expect = Some(vec![("e7".to_owned(), "a=b".to_owned())]);
        assert_eq!(read(json!(["e7=a=b"])), expect);
        assert_eq!(read(json!({"e7": "a=b"})), expect);
        assert_eq!(read(json!(["e7"])), None);
    }

    #[test]
    fn actions_are_read_from_words_or_json() {
        let check = |text: &str, expect: Value| {
            let action: InputActionParams = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(serde_json::to_value(&action).unwrap(), expect, "{text}");
        };
        check("click e12", json!({"do": "click", "ref": "e12"}));
        check("click 10,20.5", json!({"do": "click", "x": 10.0, "y": 20.5}));
        check("drag e1 to e2", json!({"do": "drag", "ref": "e1", "to": "e2"}));
        check("drag e1 5,6", json!({"do": "drag", "ref": "e1", "to": "5,6"}));
        check("scroll 0,300", json!({"do": "scroll", "dx": 0.0, "dy": 300.0}));
        check("scroll e3 0,-300", json!({"do": "scroll", "ref": "e3", "dx": 0.0, "dy": -300.0}));
        check("scroll e3", json!({"do": "scroll", "ref": "e3"}));
        check("type hello world", json!({"do": "type", "text": "hello world"}));
        check("type \" a into b\" into e7", json!({"do": "type", "text": " a into b", "ref": "e7"}));
        check("press Control+Shift+P", json!({"do": "press", "keys": "Control+Shift+P"}));
        check("wait e8", json!({"do": "wait", "ref": "e8"}));
        check("wait 250", json!({"do": "wait", "timeoutMs": 250}));
        check("wait \"250\"", json!({"do": "wait", "text": "250"}));
        check(r#"{"do": "click", "ref": "e1", "count": 2}"#, json!({"do": "click", "ref": "e1", "count": 2}));
        check("fill e7=a b", json!({"do": "fill", "fields": {"e7": "a b"}}));
        check("select e3 \"Dark blue\"", json!({"do": "select", "ref": "e3", "values": ["Dark blue"]}));
        check("upload e9 a b.txt", json!({"do": "upload", "ref": "e9", "values": ["a b.txt"]}));
        check("uncheck e4", json!({"do": "uncheck", "ref": "e4"}));
        check("paste x into e1", json!({"do": "paste", "text": "x", "ref": "e1"}));
        check("dialog accept \"yes\"", json!({"do": "dialog", "accept": true, "text": "yes"}));
        check("dialog dismiss", json!({"do": "dialog", "accept": false}));
        for wrong in [
            "fill e1",
            "select e1",
            "dialog maybe",
            "jump e1",
            "click",
            "press",
            "click here",
            "click e1 e2",
            r#"{"do": "click", "typo": 1}"#,
            "",
        ] {
            assert!(wrong.parse::<InputActionParams>().is_err(), "{wrong}");
        }
    }
}
