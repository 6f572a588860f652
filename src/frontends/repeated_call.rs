//! A call that goes on when its supervisor has exited: the next one is asked again, if the operation may be repeated.
//!
//! Does not depend on how the next supervisor is found.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tether_base::clock::now_ms;
use tether_base::error::Result;
use tokio::sync::mpsc;

use crate::api::debug::{DEFAULT_STOP_TIMEOUT, WaitForStopParams};
use crate::api::timeline::WaitForAnyParams;
use crate::api::{Operation, OperationEffect, OperationParams};
use crate::supervisor::connect::SupervisorConnection;

/// A supervisor that exits at each of so many calls has another fault.
const MAX_REPEATS: usize = 100;

/// Calls an operation over the connections that `connect` returns; over the next one where `is_repeated` holds for its effect.
pub async fn call_operation<C: Future<Output = Result<Arc<SupervisorConnection>>>>(
    operation: &Operation,
    params: &Value,
    progress: &mpsc::UnboundedSender<Value>,
    is_repeated: fn(OperationEffect) -> bool,
    connect: impl Fn() -> C,
) -> Result<Value> {
    let (began, began_at) = (Instant::now(), now_ms());
    let mut left = params.clone();
    let mut repeats = 0;
    loop {
        let connection = connect().await?;
        let outcome = connection.call(operation.method, &left, progress.clone()).await;
        let is_interrupted = outcome.is_err() && connection.peer.is_closed();
        if !is_interrupted || !is_repeated(operation.effect) || repeats == MAX_REPEATS {
            return outcome;
        }
        repeats += 1;
        left = params_left(operation.method, params, began.elapsed(), began_at);
    }
}

/// The parameters of a repetition: a wait has what is left of its time; one for any event misses none since `began_at`.
fn params_left(method: &str, params: &Value, elapsed: Duration, began_at: u64) -> Value {
    let mut left = params.clone();
    if [WaitForStopParams::METHOD, WaitForAnyParams::METHOD].contains(&method) {
        let whole = params.get("timeout").and_then(Value::as_f64);
        let whole = whole.unwrap_or(DEFAULT_STOP_TIMEOUT.duration().as_secs_f64());
        let seconds = (whole - elapsed.as_secs_f64()).max(0.0);
        if left.is_null() {
            left = serde_json::json!({});
        }
        if let Some(fields) = left.as_object_mut() {
            fields.insert("timeout".to_owned(), seconds.into());
            if method == WaitForAnyParams::METHOD {
                fields.insert("beganAt".to_owned(), began_at.into());
            }
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wait_has_what_is_left_of_its_time() {
        let check = |params: Value, elapsed: u64, expect: Value| {
            let left = params_left(WaitForStopParams::METHOD, &params, Duration::from_secs(elapsed), 7);
            assert_eq!(left, expect);
        };
        check(json!({"timeout": 10, "budget": 0}), 4, json!({"timeout": 6.0, "budget": 0}));
        check(json!({"timeout": 10}), 11, json!({"timeout": 0.0}));
        check(Value::Null, 10, json!({"timeout": 20.0}));
        let of_any = params_left(WaitForAnyParams::METHOD, &json!({"since": 3}), Duration::from_secs(10), 7);
        assert_eq!(of_any, json!({"timeout": 20.0, "since": 3, "beganAt": 7}));
        assert_eq!(params_left("debug/status", &Value::Null, Duration::from_secs(9), 7), Value::Null);
    }
}
