//! When a breakpoint that was reached stops the program: its condition, its count, its log message.

use tether_backend::Answer;
use tether_backend::hit_condition::HitCondition;
use tether_backend::log_message::{MessagePart, split_log_message};
use tether_backend::request_failure::RequestFailure;
use tether_base::display_text::break_links;
use tether_dap::types::{ConditionFailure, OutputEvent};
use tether_jdwp::values::{JdwpValue, ObjectId};

use super::breakpoint_table::{LogPart, StopConditions};
use super::expression::parser::parse_expression;
use super::session::{FrameSpot, JavaSession};
use super::{line_code, thread_control};
use crate::expression::operations;

/// The conditions as a client sends them. Errors: one of them cannot be evaluated.
pub(crate) fn parse_conditions(
    condition: Option<&str>,
    hit_condition: Option<&str>,
    log_message: Option<&str>,
) -> Result<StopConditions, String> {
    let given = |text: Option<&'_ str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let condition_text = given(condition);
    let condition = condition_text.as_deref().map(parse_expression).transpose()?;
    let hits = given(hit_condition).map(|text| HitCondition::parse(&text)).transpose()?;
    let log = log_message.filter(|text| !text.is_empty()).map(parse_log_message).transpose()?;
    Ok(StopConditions { condition, condition_text, hits, log })
}

fn parse_log_message(text: &str) -> Result<Vec<LogPart>, String> {
    let parse = |part| {
        Ok(match part {
            MessagePart::Text(plain) => LogPart::Text(plain),
            MessagePart::Expression(source) => {
                let parsed = parse_expression(&source)?;
                LogPart::Expression(source, parsed)
            }
        })
    };
    split_log_message(text)?.into_iter().map(parse).collect()
}

/// Which of the breakpoints that a thread has reached stop it.
pub(crate) async fn filter_reached(session: &JavaSession, thread: ObjectId, reached: &[i64]) -> Vec<i64> {
    let mut stopping = Vec::new();
    for id in reached {
        let entry = session.with_tables(|tables| tables.breakpoints.entries.get(id).cloned());
        let Some(entry) = entry else { continue };
        match decide_stop(session, thread, *id, &entry.conditions).await {
            Ok(true) => stopping.push(*id),
            Ok(false) => {}
            // A condition that fails is shown where it fails.
            Err(failure) => {
                report_condition_failure(session, entry.conditions.condition_text, failure).await;
                stopping.push(*id);
            }
        }
    }
    stopping
}

async fn report_condition_failure(session: &JavaSession, condition: Option<String>, failure: RequestFailure) {
    let Some(condition) = condition else {
        return print(session, "important", &format!("a breakpoint stops: {failure}\n")).await;
    };
    let text = break_links(&format!("the condition `{condition}` failed: {failure}\n"));
    let failure = ConditionFailure { condition, reason: failure.0, is_stopped: true, ..ConditionFailure::default() };
    // Fails when the client has gone, which ends the session.
    let _ = session.dap.send_event(&OutputEvent::new("important", text).with_condition_failure(&failure)).await;
}

async fn decide_stop(session: &JavaSession, thread: ObjectId, id: i64, conditions: &StopConditions) -> Answer<bool> {
    let spot = FrameSpot { thread, depth: 0 };
    let _turn = match conditions.condition.is_some() || conditions.log.is_some() {
        true => Some(thread_control::take_turn(session, thread, true).await?),
        false => None,
    };
    if let Some(condition) = &conditions.condition {
        let value = operations::evaluate_once(session, spot, condition).await;
        if value.is_err() && line_code::is_meant_for_other(session, spot, id, condition).await? {
            return Ok(false);
        }
        match value? {
            JdwpValue::Boolean(true) => {}
            JdwpValue::Boolean(false) => return Ok(false),
            _ => return Err("it is neither true nor false".into()),
        }
    }
    let hits = session.with_tables(|tables| {
        tables.breakpoints.entries.get_mut(&id).map_or(0, |entry| {
            entry.hits = entry.hits.saturating_add(1);
            entry.hits
        })
    });
    if conditions.hits.is_some_and(|condition| !condition.is_met(hits)) {
        return Ok(false);
    }
    let Some(log) = &conditions.log else { return Ok(true) };
    let mut text = String::new();
    for part in log {
        match part {
            LogPart::Text(plain) => text.push_str(plain),
            LogPart::Expression(source, expression) => {
                match operations::evaluate_text(session, spot, expression).await {
                    Ok(value) => text.push_str(&value),
                    Err(failure) => text.push_str(&format!("{{{source}: {failure}}}")),
                }
            }
        }
    }
    text.push('\n');
    print(session, "console", &text).await;
    Ok(false)
}

/// Sends a text to the client's console.
pub(crate) async fn print(session: &JavaSession, category: &str, text: &str) {
    // An editor shows what is important as a notification.
    let text = if category == "important" { break_links(text) } else { text.to_owned() };
    let output = OutputEvent::new(category, text);
    // Fails when the client has gone, which ends the session.
    let _ = session.dap.send_event(&output).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::syntax::JavaExpression;

    #[test]
    fn log_messages_have_expressions_in_braces() {
        let name = |text: &str| LogPart::Expression(text.to_owned(), JavaExpression::Name(text.to_owned()));
        let text = |text: &str| LogPart::Text(text.to_owned());
        let check = |message: &str, expect: &[LogPart]| assert_eq!(parse_log_message(message).unwrap(), expect);
        check("order is {order}!", &[text("order is "), name("order"), text("!")]);
        check("{a}{ b }", &[name("a"), name("b")]);
        check("\\{a\\} \\n", &[text("{a} \\n")]);
        check("ä", &[text("ä")]);
        assert!(parse_log_message("{a").is_err() && parse_log_message("{a b}").is_err());
        assert!(parse_conditions(Some(" "), Some(""), Some("")).unwrap() == StopConditions::default());
        assert!(parse_conditions(Some("a +"), None, None).is_err());
    }
}
