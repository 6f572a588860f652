//! The feature script: a program is launched, stopped in every way, inspected, changed, paused and ended.

use devtether::debug::breakpoints::{BreakpointConditions, BreakpointKind, ExceptionSpec};
use devtether::debug::inspect;
use devtether::debug::inspect::{ScopedId, VariableParent};
use devtether::debug::program::{DebugTarget, DebugTargetKind};
use devtether::debug::{Resume, SessionRegistry, SessionRequest};
use devtether::vocabulary::{DataAccess, StopKind};
use tether_base::ring::RingQuery;

use crate::adapter_features::debuggees::Subject;
use crate::adapter_features::feature_table::FeatureResults;
use crate::adapter_features::hit_conditions;
use crate::adapter_features::sessions::{FeatureSession, FeatureSessions, LONG};
use crate::support::requirements::has_hardware_watchpoints;

/// The adapters that watch data without the processor.
const SOFTWARE_WATCHPOINTS: [&str; 3] = ["java", "node", "js-debug"];

pub fn request(subject: &Subject) -> SessionRequest {
    SessionRequest {
        name: "the program".to_owned(),
        debug_target: DebugTarget {
            kind: DebugTargetKind::Program(subject.program.clone()),
            cwd: subject.workspace(),
            ..DebugTarget::default()
        },
        adapter: Some(subject.adapter.to_owned()),
        ..SessionRequest::default()
    }
}

pub async fn tell(subject: &Subject) -> FeatureResults {
    let mut reported = FeatureResults::default();
    let stage = FeatureSessions::of(&subject.workspace());
    let sessions = &stage.sessions;
    let set = async |marker: &str, conditions: BreakpointConditions| {
        sessions.set_line_breakpoint(&subject.source, subject.line(marker), conditions).await.unwrap().spec.id
    };
    let call = set("CALL", BreakpointConditions::default()).await;
    let condition =
        BreakpointConditions { condition: Some("order == 3".to_owned()), ..BreakpointConditions::default() };
    let conditional = set("STOP", condition).await;
    let message =
        BreakpointConditions { log_message: Some("order is {order}".to_owned()), ..BreakpointConditions::default() };
    let log = set("LOG", message).await;
    sessions
        .set_exception_spec(ExceptionSpec { caught: true, uncaught: true, ..ExceptionSpec::default() })
        .await
        .unwrap();

    let play = stage.start(request(subject)).await;
    reported.can("launch", Ok(()));
    let (kind, function, line) = play.stopped().await;
    assert_eq!((kind, line), (StopKind::BreakpointHit, subject.line("CALL")));
    assert!(function.contains("main"), "{function}");
    assert_eq!(play.managed.session.hit_count(call), 1);
    reported.can("line breakpoint", play.takes(sessions, call).await);
    looked_into(subject, &play, &mut reported).await;
    stepped(subject, &play, &mut reported).await;

    sessions.remove_breakpoints(move |requested| requested.id == call).await.unwrap();
    reported.can("log point", logged(&play, sessions, log).await);
    let conditional_set = play.takes(sessions, conditional).await;
    if conditional_set.is_ok() {
        let (kind, _, line) = play.then(Resume::Continue).await;
        assert_eq!((kind, line), (StopKind::BreakpointHit, subject.line("STOP")));
        assert!(play.evaluate("order").await.contains('3'));
    }
    reported.can("conditional breakpoint", conditional_set);
    // The rest of the loop is for the function breakpoint and the watchpoint.
    reported.can("function breakpoint", function_hit(&play, sessions).await);
    let needs_hardware = subject.data.is_some() && !SOFTWARE_WATCHPOINTS.contains(&subject.adapter);
    if !needs_hardware || has_hardware_watchpoints() {
        reported.can("data breakpoint", watched(subject, &play, sessions).await);
    } else {
        reported.skip("data breakpoint");
    }
    sessions.remove_breakpoints(|_| true).await.unwrap();
    reported.can("exception stop", thrown(subject, &play, sessions).await);
    play.resume(Resume::Continue).await;
    play.prints("up").await;
    inspect::pause_thread(&play.managed.session, None).await.unwrap();
    let (kind, ..) = play.stopped().await;
    reported.can("pause", if kind == StopKind::UserSuspend { Ok(()) } else { Err(format!("{kind:?}")) });
    play.managed.stop(Some(false)).await;
    reported.can("stop", Ok(()));
    reported.can("hit condition", hit_conditions::count(subject, &stage).await);
    let [conditional, counted] = hit_conditions::log_sometimes(subject, &stage).await;
    reported.can("log point with a condition", conditional);
    reported.can("log point with a hit condition", counted);
    stage.end().await;
    reported
}

async fn looked_into(subject: &Subject, play: &FeatureSession, reported: &mut FeatureResults) {
    let session = &play.managed.session;
    let stack = inspect::read_stack(session, None, None, None).await.unwrap();
    let path = stack.frames[0].path().unwrap();
    assert_eq!(std::path::Path::new(path), subject.source);
    reported.can("stack", Ok(()));
    let groups = inspect::list_variables(session, &VariableParent::default()).await.unwrap();
    let number = groups.iter().flat_map(|group| &group.variables).find(|it| it.name == "number");
    assert_eq!(number.map(|it| it.value.as_str()), Some("0"), "{groups:?}");
    reported.can("variables", Ok(()));
    assert!(play.evaluate("number + 40").await.contains("40"));
    reported.can("evaluate", Ok(()));
    // The stop summary of the same stop.
    let thread = stack.thread;
    let look = inspect::summarize_stop(session, ScopedId { ..thread }, StopKind::BreakpointHit, 6000).await.unwrap();
    assert!(look.source.iter().any(|(_, text)| text.contains("CALL")), "{look:?}");
}

async fn stepped(subject: &Subject, play: &FeatureSession, reported: &mut FeatureResults) {
    let (kind, function, _) = play.then(Resume::Into).await;
    assert_eq!(kind, StopKind::StepComplete);
    assert!(function.contains("total"), "{function}");
    let (kind, mut function, mut line) = play.then(Resume::Out).await;
    assert_eq!(kind, StopKind::StepComplete);
    // A step out ends at the end of the function (rdbg), on the call or behind it, depending on the adapter.
    for _ in 0..3 {
        if line != subject.line("AFTER") {
            (_, function, line) = play.then(Resume::Over).await;
        }
    }
    assert_eq!((line, function.contains("main")), (subject.line("AFTER"), true));
    reported.can("step over, into, out", Ok(()));
    let set = inspect::set_variable(&play.managed.session, "value", "7", &VariableParent::default()).await;
    if set.is_ok() {
        assert!(play.evaluate("value").await.contains('7'));
    }
    reported.can("set variable", set.map(drop).map_err(|error| why(&error)));
}

/// The adapter's own message.
fn why(error: &tether_base::error::Error) -> String {
    error.causes().pop().unwrap_or_else(|| error.doing.clone())
}

async fn logged(play: &FeatureSession, sessions: &SessionRegistry, log: u32) -> Result<(), String> {
    play.takes(sessions, log).await?;
    play.prints("order is 0").await;
    Ok(())
}

async fn function_hit(play: &FeatureSession, sessions: &SessionRegistry) -> Result<(), String> {
    let name = if play.managed.adapter.name == "dlv" { "main.total" } else { "total" };
    sessions.remove_breakpoints(|_| true).await.unwrap();
    let kind = BreakpointKind::Function { name: name.to_owned() };
    let set = sessions.set_function_breakpoint(kind, BreakpointConditions::default()).await.unwrap();
    play.takes(sessions, set.spec.id).await?;
    let (kind, function, _) = play.then(Resume::Continue).await;
    assert!(matches!(kind, StopKind::BreakpointHit | StopKind::MethodEntry), "{kind:?}");
    assert!(function.contains("total"), "{function}");
    sessions.remove_breakpoints(|_| true).await.unwrap();
    Ok(())
}

async fn watched(subject: &Subject, play: &FeatureSession, sessions: &SessionRegistry) -> Result<(), String> {
    let name = subject.data.unwrap_or("result");
    let set = sessions.set_data_breakpoint(name.to_owned(), DataAccess::Write).await.map_err(|error| why(&error))?;
    play.takes(sessions, set.spec.id).await?;
    play.resume(Resume::Continue).await;
    let waited = play.managed.session.wait_for_stop(LONG).await;
    let (target, stop) = waited.stop.unwrap();
    let reason = inspect::stop_cause(&play.managed.session, target, &stop).await;
    assert_eq!(reason.kind, StopKind::WatchpointModify, "{reason:?}");
    let (field, old, new) = reason.watched.unwrap();
    assert_eq!(field, name);
    assert!(old.is_some() && new.is_some() && old != new, "{old:?} {new:?}");
    Ok(())
}

async fn thrown(subject: &Subject, play: &FeatureSession, sessions: &SessionRegistry) -> Result<(), String> {
    if sessions.exception_support().known_filters.is_empty() {
        return Err("no exception filters".to_owned());
    }
    play.resume(Resume::Continue).await;
    let waited = play.managed.session.wait_for_stop(LONG).await;
    let output = play.managed.session.event_log().read_output(&RingQuery { limit: 40, ..RingQuery::default() });
    let (target, stop) = waited.stop.unwrap_or_else(|| panic!("{output:?}"));
    let reason = inspect::stop_cause(&play.managed.session, target, &stop).await;
    assert_eq!(reason.kind, StopKind::Exception, "{reason:?}");
    let class = reason.thrown_exception().class;
    assert_eq!(subject.class.unwrap_or(&class), class, "{reason:?}");
    Ok(())
}
