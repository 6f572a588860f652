//! Conversion of the actions of `window/input`, with the checks that come before any action is done.

use std::time::Duration;

use tether_base::error::{Error, Result};

use crate::api::page_input;
use crate::window::page;

/// How long an action waits until it can be done, when the caller does not say.
const DEFAULT_ACTION_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_ACTIONS: usize = 200;
const MAX_FILES: usize = 100;
/// The longest press of the button.
const MAX_HOLD: Duration = Duration::from_secs(60);

/// Converts the actions. Missing or contradictory parameters of any of them are an error before the first is done.
pub fn input_actions(actions: Vec<page_input::InputActionParams>) -> Result<Vec<page::InputAction>> {
    if actions.is_empty() || actions.len() > MAX_ACTIONS {
        return Err(Error::usage(format!("{} actions cannot be done at once", actions.len()))
            .hint(format!("pass 1 to {MAX_ACTIONS} in `actions`")));
    }
    let count = actions.len();
    let read = |(index, it): (usize, page_input::InputActionParams)| {
        let timeout = it.timeout_ms.map_or(DEFAULT_ACTION_TIMEOUT, Duration::from_millis);
        let does = input_action(it).map_err(|error| match count {
            1 => error,
            _ => Error { doing: format!("action {} of {count}: {}", index + 1, error.doing), ..error },
        })?;
        Ok(page::InputAction { kind: does, timeout })
    };
    actions.into_iter().enumerate().map(read).collect()
}

fn input_action(it: page_input::InputActionParams) -> Result<page::ActionKind> {
    let at = action_point(&it)?;
    let needs = |what: &str| Error::usage(format!("{} needs {what}", kind_name(it.does)));
    let named = || match &at {
        Some(page::ActionTarget::Point(..)) => Err(needs("a `ref`, not `x` and `y`")),
        Some(page::ActionTarget::Ref(name)) => Ok(Some(name.clone())),
        None => Ok(None),
    };
    let count = it.count.unwrap_or(1).clamp(1, 100);
    let button = it.button.unwrap_or_default();
    let place = || at.clone().ok_or_else(|| needs("a `ref`, or `x` and `y`"));
    let element = || named()?.ok_or_else(|| needs("a `ref`"));
    let files = || match it.values.clone().filter(|files| !files.is_empty()) {
        Some(files) if files.len() <= MAX_FILES => Ok(files),
        _ => Err(needs("`values`: 1 to 100 files of the workspace")),
    };
    Ok(match it.does {
        page_input::InputActionKind::Click if it.hold_ms.is_some() => {
            let hold = Duration::from_millis(it.hold_ms.unwrap_or_default()).min(MAX_HOLD);
            page::ActionKind::LongPress { at: place()?, hold }
        }
        page_input::InputActionKind::Click => page::ActionKind::Click { at: place()?, button, count: count.min(3) },
        page_input::InputActionKind::Hover => page::ActionKind::Hover { at: place()? },
        page_input::InputActionKind::Drag => {
            let to = it.to.as_deref().ok_or_else(|| needs("`to`: a ref or \"x,y\""))?;
            page::ActionKind::Drag { from: place()?, to: drag_target(to)? }
        }
        page_input::InputActionKind::Scroll => {
            let by = (it.dx.is_some() || it.dy.is_some()).then(|| (it.dx.unwrap_or(0.0), it.dy.unwrap_or(0.0)));
            if at.is_none() && by.is_none() {
                return Err(needs("`dx` or `dy`, or a `ref` to bring into view"));
            }
            page::ActionKind::Scroll { at: at.clone(), by }
        }
        page_input::InputActionKind::Type => {
            let text = it.text.clone().ok_or_else(|| needs("`text`"))?;
            page::ActionKind::Type { into: named()?, text }
        }
        page_input::InputActionKind::Press => {
            let keys = it.keys.clone().filter(|keys| !keys.trim().is_empty()).ok_or_else(|| needs("`keys`"))?;
            page::ActionKind::Press { at: named()?, keys, count }
        }
        page_input::InputActionKind::Fill => {
            let mut fields: Vec<(String, String)> = it.fields.clone().unwrap_or_default().into_iter().collect();
            if let Some(text) = &it.text {
                fields.push((named()?.ok_or_else(|| needs("the `ref` of its field"))?, text.clone()));
            }
            // In the order of the snapshot, not of the names.
            fields.sort_by_key(|(name, _)| name.get(1..).and_then(|digits| digits.parse::<u32>().ok()));
            match fields.is_empty() {
                true => return Err(needs("`fields`, or `ref` and `text`")),
                false => page::ActionKind::Fill { fields },
            }
        }
        page_input::InputActionKind::Select => {
            page::ActionKind::Select { at: element()?, values: it.values.clone().ok_or_else(|| needs("`values`"))? }
        }
        page_input::InputActionKind::Check => page::ActionKind::Check { at: element()?, checked: true },
        page_input::InputActionKind::Uncheck => page::ActionKind::Check { at: element()?, checked: false },
        page_input::InputActionKind::Paste => {
            let text = it.text.clone().ok_or_else(|| needs("`text`"))?;
            page::ActionKind::Paste { into: named()?, text }
        }
        page_input::InputActionKind::Upload => page::ActionKind::Upload { at: element()?, files: files()? },
        page_input::InputActionKind::Drop => page::ActionKind::DropFiles { at: place()?, files: files()? },
        page_input::InputActionKind::Dialog => {
            page::ActionKind::Dialog(page::DialogAnswer { accept: it.accept.unwrap_or(true), text: it.text.clone() })
        }
        page_input::InputActionKind::Wait => page::ActionKind::Wait(match (&it.text, named()?) {
            (Some(_), Some(_)) => return Err(needs("`text` or `ref`, not both")),
            (Some(text), None) => page::WaitCondition::TextShown(text.clone()),
            (None, Some(name)) => page::WaitCondition::ElementGone(name),
            (None, None) if it.timeout_ms.is_some() => page::WaitCondition::TimeElapsed,
            (None, None) => return Err(needs("`text`, `ref` or `timeoutMs`")),
        }),
    })
}

fn action_point(it: &page_input::InputActionParams) -> Result<Option<page::ActionTarget>> {
    match (&it.at, it.x, it.y) {
        (Some(name), None, None) => Ok(Some(page::ActionTarget::Ref(name.clone()))),
        (None, Some(x), Some(y)) => Ok(Some(page::ActionTarget::Point(x, y))),
        (None, None, None) => Ok(None),
        _ => Err(Error::usage(format!("{} needs either `ref` or both `x` and `y`", kind_name(it.does)))),
    }
}

fn drag_target(text: &str) -> Result<page::ActionTarget> {
    let point = text.split_once(',').and_then(|(x, y)| Some((x.trim().parse().ok()?, y.trim().parse().ok()?)));
    match point {
        Some((x, y)) => Ok(page::ActionTarget::Point(x, y)),
        None if text.contains(',') => Err(Error::usage(format!("{text:?} is neither a ref nor \"x,y\""))),
        None => Ok(page::ActionTarget::Ref(text.to_owned())),
    }
}

fn kind_name(does: page_input::InputActionKind) -> String {
    format!("{does:?}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(actions: Value) -> Result<Vec<String>> {
        let actions = super::input_actions(serde_json::from_value(actions).unwrap())?;
        Ok(actions.into_iter().map(|action| format!("{} ({:?})", action.kind, action.timeout)).collect())
    }

    #[test]
    fn actions_are_understood() {
        let check =
            |action: Value, expect: &str| assert_eq!(read(json!([action.clone()])).unwrap(), [expect], "{action}");
        check(json!({"do": "click", "ref": "e1"}), "click e1 (5s)");
        check(json!({"do": "click", "x": 1, "y": 2.5, "button": "right", "count": 2}), "double right click 1,2.5 (5s)");
        check(json!({"do": "drag", "ref": "e1", "to": "3, 4"}), "drag e1 to 3,4 (5s)");
        check(json!({"do": "scroll", "dy": 100, "timeoutMs": 10}), "scroll by 0,100 (10ms)");
        check(json!({"do": "type", "text": "hi", "ref": "e1"}), "type \"hi\" into e1 (5s)");
        check(json!({"do": "press", "keys": "Enter", "count": 3}), "press Enter 3 times (5s)");
        check(json!({"do": "click", "ref": "e1", "holdMs": 800}), "press e1 for 800 ms (5s)");
        check(json!({"do": "fill", "fields": {"e12": "a", "e7": "b"}}), "fill e7, e12 (5s)");
        check(json!({"do": "fill", "ref": "e1", "text": "secret"}), "fill e1 (5s)");
        check(json!({"do": "select", "ref": "e1", "values": ["a"]}), "select [\"a\"] in e1 (5s)");
        check(json!({"do": "uncheck", "ref": "e1"}), "uncheck e1 (5s)");
        check(json!({"do": "upload", "ref": "e1", "values": ["a.txt"]}), "upload [\"a.txt\"] to e1 (5s)");
        check(json!({"do": "dialog", "text": "yes"}), "accept the next dialog with \"yes\" (5s)");
        check(json!({"do": "wait", "text": "done"}), "wait for \"done\" (5s)");
        check(json!({"do": "wait", "ref": "e2"}), "wait until e2 is gone (5s)");
        check(json!({"do": "wait", "timeoutMs": 50}), "wait (50ms)");
    }

    #[test]
    fn what_is_missing_is_named_before_anything_is_done() {
        let check = |actions: Value, expect: &str| {
            let error = read(actions.clone()).unwrap_err().to_string();
            assert!(error.contains(expect), "{actions}: {error}");
        };
        check(json!([]), "0 actions");
        check(json!([{"do": "click"}]), "click needs a `ref`, or `x` and `y`");
        check(json!([{"do": "click", "x": 1}]), "click needs either `ref` or both `x` and `y`");
        check(json!([{"do": "click", "ref": "e1", "x": 1, "y": 1}]), "either");
        check(json!([{"do": "hover", "ref": "e1"}, {"do": "drag", "ref": "e1"}]), "action 2 of 2: drag needs `to`");
        check(json!([{"do": "drag", "ref": "e1", "to": "1,b"}]), "neither a ref nor");
        check(json!([{"do": "scroll"}]), "scroll needs `dx` or `dy`");
        check(json!([{"do": "type"}]), "type needs `text`");
        check(json!([{"do": "type", "text": "x", "x": 1, "y": 1}]), "type needs a `ref`");
        check(json!([{"do": "press", "keys": " "}]), "press needs `keys`");
        check(json!([{"do": "fill"}]), "fill needs `fields`");
        check(json!([{"do": "fill", "text": "a"}]), "fill needs the `ref`");
        check(json!([{"do": "select", "ref": "e1"}]), "select needs `values`");
        check(json!([{"do": "upload", "ref": "e1"}]), "upload needs `values`");
        check(json!([{"do": "check", "x": 1, "y": 1}]), "check needs a `ref`");
        check(json!([{"do": "wait"}]), "wait needs `text`, `ref` or `timeoutMs`");
    }
}
