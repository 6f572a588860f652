//! Hit conditions have one meaning with every adapter, whoever counts.

use std::collections::BTreeSet;

use devtether::debug::Resume;
use devtether::debug::breakpoints::{BreakpointConditions, ExceptionSpec};

use tether_base::ring::RingQuery;

use crate::adapter_features::debuggees::Subject;
use crate::adapter_features::feature_script::request;
use crate::adapter_features::sessions::FeatureSessions;

/// A breakpoint: its line, its condition, its hit condition, and in which of the five turns, from 0, it stops.
type Counted = (&'static str, Option<&'static str>, &'static str, &'static [u32]);

const ALONE: [Counted; 4] = [
    ("STOP", None, "3", &[2]),
    ("LOG", None, ">= 3", &[2, 3, 4]),
    ("CALL", None, ">3", &[3, 4]),
    ("AFTER", None, "<3", &[0, 1]),
];
const OTHERS: [Counted; 4] = [
    ("STOP", None, "=3", &[2]),
    ("LOG", None, "%2", &[1, 3]),
    // A hit is one at which the condition holds, too.
    ("CALL", Some("number > 0"), ">= 2", &[2, 3, 4]),
    ("AFTER", Some("number > 1"), "2", &[3]),
];

/// Plays the program with these breakpoints. Panics where it stops elsewhere.
async fn play(subject: &Subject, stage: &FeatureSessions, counted: &[Counted]) {
    let sessions = &stage.sessions;
    let text = |text: &str| Some(text.to_owned());
    let mut set = Vec::new();
    for (marker, condition, hits, _) in counted {
        let conditions = BreakpointConditions {
            condition: condition.and_then(text),
            hit_condition: text(hits),
            ..BreakpointConditions::default()
        };
        set.push(
            sessions.set_line_breakpoint(&subject.source, subject.line(marker), conditions).await.unwrap().spec.id,
        );
    }
    let end = subject.line("SPIN");
    set.push(
        sessions.set_line_breakpoint(&subject.source, end, BreakpointConditions::default()).await.unwrap().spec.id,
    );
    let session = stage.start(request(subject)).await;
    let mut found: Vec<(&str, u32)> = Vec::new();
    let (_, _, mut line) = session.stopped().await;
    while line != end {
        let stopped_at = counted.iter().map(|(marker, ..)| *marker).find(|marker| subject.line(marker) == line);
        let marker = stopped_at.unwrap_or_else(|| panic!("it stops at line {line}"));
        let turn = session.evaluate(if matches!(marker, "STOP" | "LOG") { "order" } else { "number" }).await;
        let digits: String =
            turn.chars().skip_while(|it| !it.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        found.push((marker, digits.parse().unwrap_or_else(|_| panic!("{turn}"))));
        (_, _, line) = session.then(Resume::Continue).await;
    }
    for (marker, condition, hits, turns) in counted {
        let at: Vec<u32> = found.iter().filter(|(it, _)| it == marker).map(|(_, turn)| *turn).collect();
        assert_eq!(at, *turns, "{}: `{hits}`, {condition:?}: {found:?}", subject.adapter);
    }
    session.managed.stop(Some(false)).await;
    sessions.remove_breakpoints(move |spec| set.contains(&spec.id)).await.unwrap();
}

pub async fn count(subject: &Subject, stage: &FeatureSessions) -> Result<(), String> {
    stage.sessions.set_exception_spec(ExceptionSpec::default()).await.unwrap();
    play(subject, stage, &ALONE).await;
    play(subject, stage, &OTHERS).await;
    Ok(())
}

/// A log point with a condition, and one with a hit condition: whether each prints in those turns only.
pub async fn log_sometimes(subject: &Subject, stage: &FeatureSessions) -> [Result<(), String>; 2] {
    let sessions = &stage.sessions;
    let text = |text: &str| Some(text.to_owned());
    let conditional = BreakpointConditions {
        condition: text("order > 2"),
        log_message: text("held in {order}."),
        hit_condition: None,
    };
    let counted =
        BreakpointConditions { hit_condition: text(">= 4"), log_message: text("hit in {order}."), condition: None };
    let mut set = Vec::new();
    let end = subject.line("SPIN");
    for (line, conditions) in
        [(subject.line("STOP"), conditional), (subject.line("LOG"), counted), (end, BreakpointConditions::default())]
    {
        set.push(sessions.set_line_breakpoint(&subject.source, line, conditions).await.unwrap().spec.id);
    }
    let session = stage.start(request(subject)).await;
    let mut stops = BTreeSet::new();
    let (_, _, mut line) = session.stopped().await;
    while line != end {
        stops.insert(line);
        (_, _, line) = session.then(Resume::Continue).await;
    }
    let all = RingQuery { limit: 10_000, ..RingQuery::default() };
    let output = session.managed.session.event_log().read_output(&all).entries;
    let printed: String = output.into_iter().map(|it| it.text).collect();
    let mut outcomes = Vec::new();
    for (index, (line, words)) in [("STOP", "held"), ("LOG", "hit")].into_iter().enumerate() {
        let outcome = match session.takes(sessions, set[index]).await {
            Ok(()) if stops.contains(&subject.line(line)) => Err("it stops".to_owned()),
            Ok(()) => {
                let turns: Vec<u32> = (0..5).filter(|turn| printed.contains(&format!("{words} in {turn}."))).collect();
                if turns == [3, 4] { Ok(()) } else { Err(format!("it prints in {turns:?}")) }
            }
            Err(reason) => Err(reason),
        };
        outcomes.push(outcome);
    }
    session.managed.stop(Some(false)).await;
    sessions.remove_breakpoints(move |spec| set.contains(&spec.id)).await.unwrap();
    outcomes.try_into().unwrap()
}
