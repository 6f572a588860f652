//! Requests that inspect the program, their responses, reverse requests and events.

use super::*;

#[test]
fn every_request_that_inspects_the_program_is_valid_and_so_is_every_response() {
    let Some(schema) = schema() else { return };
    let validator = SchemaValidator { schema };
    validator.request(&[ThreadsArguments {}]);
    validator.response::<ThreadsArguments>(&[ThreadsResponse {
        threads: vec![DapThread { id: 1, name: "main".into(), ..DapThread::default() }],
        ..ThreadsResponse::default()
    }]);
    let stack = StackTraceArguments { thread_id: 1, start_frame: Some(0), levels: Some(20) };
    validator.request(&[StackTraceArguments::default(), stack]);
    let frame = DapStackFrame {
        id: 1,
        name: "f".into(),
        line: 1,
        column: 1,
        source: Some(source()),
        presentation_hint: text("subtle"),
    };
    let stack = StackTraceResponse { stack_frames: vec![DapStackFrame::default(), frame], total_frames: Some(2) };
    validator.response::<StackTraceArguments>(&[stack]);
    validator.request(&[ScopesArguments { frame_id: 1 }]);
    let scope =
        DapScope { name: "Locals".into(), variables_reference: 1, expensive: false, presentation_hint: text("locals") };
    validator.response::<ScopesArguments>(&[ScopesResponse { scopes: vec![DapScope::default(), scope] }]);
    let variables =
        VariablesArguments { variables_reference: 1, filter: text("indexed"), start: Some(0), count: Some(10) };
    validator.request(&[VariablesArguments::default(), variables]);
    let variable = DapVariable {
        name: "x".into(),
        value: "1".into(),
        variables_reference: 0,
        kind: text("int"),
        named_variables: Some(0),
        indexed_variables: Some(0),
    };
    validator
        .response::<VariablesArguments>(&[VariablesResponse { variables: vec![DapVariable::default(), variable] }]);
    let evaluate = EvaluateArguments { expression: "x".into(), frame_id: Some(1), context: text("repl") };
    validator.request(&[EvaluateArguments::default(), evaluate]);
    let result = EvaluateResponse {
        result: "1".into(),
        variables_reference: 0,
        kind: text("int"),
        named_variables: Some(1),
        indexed_variables: Some(1),
    };
    validator.response::<EvaluateArguments>(&[
        EvaluateResponse { variables_reference: 1, ..EvaluateResponse::default() },
        result,
    ]);
    let set = SetVariableArguments { variables_reference: 1, name: "x".into(), value: "2".into() };
    validator.request(&[SetVariableArguments::default(), set]);
    validator.request(&[SetExpressionArguments { expression: "x".into(), value: "2".into(), frame_id: Some(1) }]);
    let response = SetVariableResponse { value: text("2"), kind: text("int"), variables_reference: Some(0) };
    let shortest = SetVariableResponse { value: text(""), ..SetVariableResponse::default() };
    validator.response::<SetVariableArguments>(&[shortest, response.clone()]);
    validator.response::<SetExpressionArguments>(&[response]);
    validator.request(&[ExceptionInfoArguments { thread_id: 1 }]);
    let details = DapExceptionDetails {
        message: text("m"),
        type_name: text("E"),
        full_type_name: text("a.E"),
        stack_trace: text("at"),
    };
    let info = ExceptionInfoResponse {
        exception_id: "a.E".into(),
        break_mode: "always".into(),
        description: text("m"),
        details: Some(details),
    };
    validator.response::<ExceptionInfoArguments>(&[info]);
    validator.request(&[SourceArguments { source_reference: 1, source: Some(source()) }, SourceArguments::default()]);
    validator.response::<SourceArguments>(&[SourceResponse { content: "x".into() }]);
    validator.response::<ContinueArguments>(&[
        ContinueResponse { all_threads_continued: Some(true) },
        ContinueResponse::default(),
    ]);
}

#[test]
fn reverse_requests_and_events_are_valid() {
    let Some(schema) = schema() else { return };
    let validator = SchemaValidator { schema };
    let run = RunInTerminalArguments {
        cwd: "/".into(),
        args: vec!["python".into()],
        env: [("A".to_owned(), text("1")), ("B".to_owned(), None)].into(),
        args_can_be_interpreted_by_shell: true,
    };
    validator.request(&[RunInTerminalArguments::default(), run]);
    validator.response::<RunInTerminalArguments>(&[RunInTerminalResponse { process_id: Some(1) }]);
    validator.request(&[StartDebuggingArguments { configuration: Fields::default(), request: "launch".into() }]);
    let filter = ExceptionBreakpointsFilter { filter: "raised".into(), label: "Raised".into(), default: true };
    let others = Fields::from_iter([("supportsLogPoints".to_owned(), json!(true))]);
    let capabilities = DapCapabilities { exception_breakpoint_filters: vec![filter], others };
    validator.response::<InitializeArguments>(&[DapCapabilities::default(), capabilities.clone()]);
    validator.event(&[InitializedEvent {}]);
    let stopped = StoppedEvent {
        reason: "breakpoint".into(),
        description: text("d"),
        thread_id: Some(1),
        text: text("t"),
        all_threads_stopped: true,
        hit_breakpoint_ids: vec![1],
        data_change: None,
        thread_name: None,
    };
    validator.event(&[StoppedEvent { reason: "step".into(), ..StoppedEvent::default() }, stopped]);
    validator.event(&[ContinuedEvent::default(), ContinuedEvent { thread_id: 1, all_threads_continued: Some(false) }]);
    validator.event(&[ExitedEvent { exit_code: -9, ..ExitedEvent::default() }]);
    validator.event(&[TerminatedEvent::default()]);
    validator.event(&[ThreadEvent { reason: "started".into(), thread_id: 1 }]);
    let output = OutputEvent { output: "x\n".into(), category: text("stdout"), data: None };
    validator.event(&[OutputEvent::default(), output]);
    let module = DapModule { id: json!(1), name: "m".into(), path: text("/m"), version: text("1") };
    validator.event(&[ModuleEvent { reason: "new".into(), module }]);
    validator.event(&[LoadedSourceEvent { reason: "new".into(), source: source() }]);
    validator.event(&[InvalidatedEvent { areas: vec!["stacks".into()] }]);
    let process = ProcessEvent { name: "p".into(), system_process_id: Some(1), is_child: None };
    validator.event(&[ProcessEvent { name: "p".into(), ..ProcessEvent::default() }, process]);
    validator.event(&[CapabilitiesEvent { capabilities }]);
}
