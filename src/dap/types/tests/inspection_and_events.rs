//! Requests that inspect the program, their responses, reverse requests and events.

use super::*;

#[test]
fn every_request_that_inspects_the_program_is_valid_and_so_is_every_response() {
    let Some(schema) = schema() else { return };
    let validator = SchemaValidator { schema };
    let hint = VariablePresentationHint {
        kind: text("property"),
        attributes: vec!["readOnly".into()],
        visibility: text("public"),
        lazy: true,
    };
    validator.request(&[ThreadsArguments {}]);
    validator
        .response::<ThreadsArguments>(&[ThreadsResponse { threads: vec![DapThread { id: 1, name: "main".into() }] }]);
    let format = StackFrameFormat { hex: true, parameters: true, line: true, module: true };
    let stack = StackTraceArguments { thread_id: 1, start_frame: Some(0), levels: Some(20), format: Some(format) };
    validator.request(&[StackTraceArguments::default(), stack]);
    let frame = DapStackFrame {
        id: 1,
        name: "f".into(),
        line: 1,
        column: 1,
        source: Some(source()),
        end_line: Some(1),
        end_column: Some(1),
        can_restart: Some(true),
        instruction_pointer_reference: text("0x1"),
        module_id: Some(json!("m")),
        presentation_hint: text("subtle"),
    };
    let stack = StackTraceResponse { stack_frames: vec![DapStackFrame::default(), frame], total_frames: Some(2) };
    validator.response::<StackTraceArguments>(&[stack]);
    validator.request(&[ScopesArguments { frame_id: 1 }]);
    let scope = DapScope {
        name: "Locals".into(),
        variables_reference: 1,
        expensive: false,
        presentation_hint: text("locals"),
        named_variables: Some(1),
        indexed_variables: Some(0),
        source: Some(source()),
        line: Some(1),
        column: Some(1),
        end_line: Some(1),
        end_column: Some(1),
    };
    validator.response::<ScopesArguments>(&[ScopesResponse { scopes: vec![DapScope::default(), scope] }]);
    let format = Some(ValueFormat { hex: true });
    let variables = VariablesArguments {
        variables_reference: 1,
        filter: text("indexed"),
        start: Some(0),
        count: Some(10),
        format: format.clone(),
    };
    validator.request(&[VariablesArguments::default(), variables]);
    let variable = DapVariable {
        name: "x".into(),
        value: "1".into(),
        variables_reference: 0,
        kind: text("int"),
        presentation_hint: Some(hint.clone()),
        evaluate_name: text("x"),
        named_variables: Some(0),
        indexed_variables: Some(0),
        memory_reference: text("0x1"),
    };
    validator
        .response::<VariablesArguments>(&[VariablesResponse { variables: vec![DapVariable::default(), variable] }]);
    let evaluate =
        EvaluateArguments { expression: "x".into(), frame_id: Some(1), context: text("repl"), format: format.clone() };
    validator.request(&[EvaluateArguments::default(), evaluate]);
    let result = EvaluateResponse {
        result: "1".into(),
        variables_reference: 0,
        kind: text("int"),
        presentation_hint: Some(hint),
        named_variables: Some(1),
        indexed_variables: Some(1),
        memory_reference: text("0x1"),
    };
    validator.response::<EvaluateArguments>(&[
        EvaluateResponse { variables_reference: 1, ..EvaluateResponse::default() },
        result,
    ]);
    let set =
        SetVariableArguments { variables_reference: 1, name: "x".into(), value: "2".into(), format: format.clone() };
    validator.request(&[SetVariableArguments::default(), set]);
    validator.request(&[SetExpressionArguments {
        expression: "x".into(),
        value: "2".into(),
        frame_id: Some(1),
        format,
    }]);
    let response = SetVariableResponse {
        value: "2".into(),
        kind: text("int"),
        variables_reference: Some(0),
        named_variables: Some(0),
        indexed_variables: Some(0),
    };
    validator.response::<SetVariableArguments>(&[SetVariableResponse::default(), response.clone()]);
    validator.response::<SetExpressionArguments>(&[response]);
    validator.request(&[ExceptionInfoArguments { thread_id: 1 }]);
    let details = DapExceptionDetails {
        message: text("m"),
        type_name: text("E"),
        full_type_name: text("a.E"),
        evaluate_name: text("e"),
        stack_trace: text("at"),
        inner_exception: vec![DapExceptionDetails::default()],
    };
    let info = ExceptionInfoResponse {
        exception_id: "a.E".into(),
        break_mode: "always".into(),
        description: text("m"),
        details: Some(details),
    };
    validator.response::<ExceptionInfoArguments>(&[info]);
    validator.request(&[SourceArguments { source_reference: 1, source: Some(source()) }, SourceArguments::default()]);
    validator.response::<SourceArguments>(&[SourceResponse { content: "x".into(), mime_type: text("text/x-python") }]);
    validator.request(&[LoadedSourcesArguments {}]);
    validator.response::<LoadedSourcesArguments>(&[LoadedSourcesResponse { sources: vec![source()] }]);
    validator.response::<ContinueArguments>(&[
        ContinueResponse { all_threads_continued: Some(true) },
        ContinueResponse::default(),
    ]);
    let target = StepInTarget { id: 1, label: "f".into(), line: Some(1), column: Some(1) };
    validator.response::<StepInTargetsArguments>(&[StepInTargetsResponse { targets: vec![target] }]);
    let target = GotoTarget { id: 1, label: "f".into(), line: 1, column: Some(1) };
    validator.response::<GotoTargetsArguments>(&[GotoTargetsResponse { targets: vec![target] }]);
}

#[test]
fn reverse_requests_and_events_are_valid() {
    let Some(schema) = schema() else { return };
    let validator = SchemaValidator { schema };
    let run = RunInTerminalArguments {
        cwd: "/".into(),
        args: vec!["python".into()],
        kind: text("integrated"),
        title: text("t"),
        env: [("A".to_owned(), text("1")), ("B".to_owned(), None)].into(),
        args_can_be_interpreted_by_shell: true,
    };
    validator.request(&[RunInTerminalArguments::default(), run]);
    validator.response::<RunInTerminalArguments>(&[RunInTerminalResponse {
        process_id: Some(1),
        shell_process_id: Some(2),
    }]);
    validator.request(&[StartDebuggingArguments { configuration: Fields::default(), request: "launch".into() }]);
    let filter = ExceptionBreakpointsFilter {
        filter: "raised".into(),
        label: "Raised".into(),
        description: text("d"),
        default: true,
        supports_condition: true,
        condition_description: text("c"),
    };
    let others = Fields::from_iter([("supportsLogPoints".to_owned(), json!(true))]);
    let capabilities = DapCapabilities { exception_breakpoint_filters: vec![filter], others };
    validator.response::<InitializeArguments>(&[DapCapabilities::default(), capabilities.clone()]);
    validator.event(&[InitializedEvent {}]);
    let stopped = StoppedEvent {
        reason: "breakpoint".into(),
        description: text("d"),
        thread_id: Some(1),
        preserve_focus_hint: true,
        text: text("t"),
        all_threads_stopped: true,
        hit_breakpoint_ids: vec![1],
    };
    validator.event(&[StoppedEvent { reason: "step".into(), ..StoppedEvent::default() }, stopped]);
    validator.event(&[ContinuedEvent::default(), ContinuedEvent { thread_id: 1, all_threads_continued: Some(false) }]);
    validator.event(&[ExitedEvent { exit_code: -9 }]);
    validator.event(&[TerminatedEvent::default(), TerminatedEvent { restart: Some(json!(true)) }]);
    validator.event(&[ThreadEvent { reason: "started".into(), thread_id: 1 }]);
    let output = OutputEvent {
        output: "x\n".into(),
        category: text("stdout"),
        group: text("start"),
        variables_reference: Some(1),
        source: Some(source()),
        line: Some(1),
        column: Some(1),
        data: Some(json!({})),
    };
    validator.event(&[OutputEvent::default(), output]);
    let module = DapModule {
        id: json!(1),
        name: "m".into(),
        path: text("/m"),
        version: text("1"),
        symbol_status: text("loaded"),
    };
    validator.event(&[ModuleEvent { reason: "new".into(), module }]);
    validator.event(&[LoadedSourceEvent { reason: "new".into(), source: source() }]);
    let process = ProcessEvent {
        name: "p".into(),
        system_process_id: Some(1),
        is_local_process: Some(true),
        start_method: text("launch"),
        pointer_size: Some(64),
    };
    validator.event(&[ProcessEvent { name: "p".into(), ..ProcessEvent::default() }, process]);
    validator.event(&[CapabilitiesEvent { capabilities }]);
    let invalidated = InvalidatedEvent { areas: vec!["variables".into()], thread_id: Some(1), stack_frame_id: Some(1) };
    validator.event(&[InvalidatedEvent::default(), invalidated]);
}
