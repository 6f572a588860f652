//! `restart` of a configuration: how often a program is attached to again that has ended.

use std::time::Duration;

use serde_json::Value;

/// Between two attempts, unless the configuration says otherwise.
const DEFAULT_DELAY: Duration = Duration::from_secs(1);

/// How often a program is attached to again, and after which pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RestartPolicy {
    /// Before each attempt.
    pub delay: Duration,
    /// How many attempts there are at most; `None`: as many as it takes.
    pub attempts: Option<u64>,
}

impl RestartPolicy {
    /// Of `restart`: a boolean, or `{"delay": MILLISECONDS, "maxAttempts": NUMBER}`. Errors: it is another value.
    pub(crate) fn parse(value: Option<&Value>) -> Result<Option<RestartPolicy>, String> {
        let bad = |value: &Value| format!("`restart` is {value}: it is a boolean, or has a `delay` and `maxAttempts`");
        let number = |of: &Value, key: &str| match of.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(number) => number.as_f64().filter(|number| *number >= 0.0).map(|number| Some(number as u64)).ok_or(()),
        };
        match value {
            None | Some(Value::Bool(false)) => Ok(None),
            Some(Value::Bool(true)) => Ok(Some(RestartPolicy { delay: DEFAULT_DELAY, attempts: None })),
            Some(value @ Value::Object(_)) => {
                let delay = number(value, "delay").map_err(|()| bad(value))?;
                let attempts = number(value, "maxAttempts").map_err(|()| bad(value))?;
                Ok(Some(RestartPolicy { delay: delay.map_or(DEFAULT_DELAY, Duration::from_millis), attempts }))
            }
            Some(other) => Err(bad(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_has_the_forms_of_launch_json() {
        let check = |value: Value, expect: Option<(u64, Option<u64>)>| {
            let policy = RestartPolicy::parse(Some(&value)).unwrap();
            assert_eq!(policy.map(|it| (it.delay.as_millis() as u64, it.attempts)), expect, "{value}");
        };
        check(json!(false), None);
        check(json!(true), Some((1000, None)));
        check(json!({"delay": 50, "maxAttempts": 3}), Some((50, Some(3))));
        check(json!({"maxAttempts": null}), Some((1000, None)));
        assert_eq!(RestartPolicy::parse(None), Ok(None));
        for bad in [json!("yes"), json!({"delay": -1}), json!({"maxAttempts": "3"})] {
            assert!(RestartPolicy::parse(Some(&bad)).is_err(), "{bad}");
        }
    }
}
