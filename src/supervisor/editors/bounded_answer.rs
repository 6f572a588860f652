//! Bounds the value that an editor, a host or a window has answered with: it is what a command has returned, and anything.
//!
//! The bounds are those of our own extension, with some room for its remarks: what it sends passes unchanged. How deep a value
//! nests is bounded by the parser. Does not depend on what is answered.

use serde_json::Value;

/// The values in it, all together.
const MAX_VALUES: usize = 50_000;
/// Its texts and names, all together, in bytes.
const MAX_TEXT: usize = 2 << 20;

/// The value within the bounds: what is more is left out, with a remark at its place.
pub fn bound_answer(mut answer: Value) -> Value {
    let mut left = BoundsLeft { values: MAX_VALUES, text: MAX_TEXT };
    left.bound(&mut answer);
    answer
}

/// What is left of the bounds.
struct BoundsLeft {
    values: usize,
    text: usize,
}

impl BoundsLeft {
    fn bound(&mut self, value: &mut Value) {
        self.values = self.values.saturating_sub(1);
        match value {
            Value::String(text) => self.cut(text),
            Value::Array(items) => {
                let count = items.iter_mut().map_while(|item| self.has_room().then(|| self.bound(item))).count();
                let more = items.len() - count;
                items.truncate(count);
                if more > 0 {
                    items.push(format!("({more} more)").into());
                }
            }
            Value::Object(members) => {
                let all = std::mem::take(members).into_iter();
                for (name, mut member) in all {
                    if !self.has_room() || name.len() > self.text {
                        members.insert("…".to_owned(), "(more was left out)".into());
                        break;
                    }
                    self.text -= name.len();
                    self.bound(&mut member);
                    members.insert(name, member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn has_room(&self) -> bool {
        self.values > 0 && self.text > 0
    }

    fn cut(&mut self, text: &mut String) {
        if text.len() > self.text {
            text.truncate(text.floor_char_boundary(self.text));
            text.push_str("… (cut)");
        }
        self.text = self.text.saturating_sub(text.len());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn count(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Object(members) => members.values().map(count).sum(),
            _ => 0,
        }
    }

    #[test]
    fn what_our_extension_sends_passes_unchanged() {
        let text = "ä".repeat(128 * 1024);
        for answer in [json!(null), json!({"value": {"a": [1, "b", {}], "c": text}}), json!(vec![0; 20_000])] {
            assert_eq!(bound_answer(answer.clone()), answer);
        }
    }

    #[test]
    fn what_is_more_is_left_out_with_a_remark() {
        let wide = bound_answer(json!(vec![vec![0; 300]; 300]));
        assert!(count(&wide) <= MAX_VALUES + 600, "{}", count(&wide));
        assert!(wide.to_string().ends_with("more)\"]"), "the remark is last");
        let members: serde_json::Map<String, Value> = (0..100_000).map(|at| (at.to_string(), json!(at))).collect();
        let members = bound_answer(members.into());
        assert!(count(&members) <= MAX_VALUES + 1 && members["…"] == "(more was left out)");
        for long in [
            json!("€".repeat(MAX_TEXT)),
            json!({"n".repeat(MAX_TEXT + 1): 1}),
            json!(vec!["x".repeat(MAX_TEXT / 4); 9]),
        ] {
            let bounded = bound_answer(long).to_string();
            assert!(bounded.len() <= MAX_TEXT + 200, "{}", bounded.len());
        }
    }
}
