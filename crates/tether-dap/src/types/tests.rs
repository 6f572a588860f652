//! Validates everything that can be sent against the official schema, which comes with debugpy.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use tether_base::line_anchor::LineAnchor;

use super::*;

mod inspection_and_events;

const SCHEMA: &str =
    "python/lib/python*/site-packages/debugpy/_vendored/pydevd/_pydevd_bundle/_debug_adapter/debugProtocol.json";

/// The schema, or `None` where the tools are not installed; CI must have them.
fn schema() -> Option<Value> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let share = || absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    let data = absolute("DEVTETHER_DATA_DIR").or_else(|| Some(share()?.join("devtether")))?;
    let libraries = data.join("tools/python/lib");
    let found = std::fs::read_dir(&libraries).into_iter().flatten().filter_map(Result::ok).find_map(|version| {
        let inner = SCHEMA.split_once("site-packages").map(|(_, inner)| inner.trim_start_matches('/'))?;
        std::fs::read(version.path().join("site-packages").join(inner)).ok()
    });
    let Some(bytes) = found else {
        assert!(std::env::var_os("CI").is_none(), "{SCHEMA} is missing: run `cargo xtask tools`");
        eprintln!("SKIPPED: no {SCHEMA}; `cargo xtask tools` installs debugpy, which brings it");
        return None;
    };
    Some(serde_json::from_slice(&bytes).unwrap())
}

/// Validates messages against one definition of the schema.
struct SchemaValidator {
    schema: Value,
}

impl SchemaValidator {
    fn errors(&self, definition: &str, message: &Value) -> Vec<String> {
        let mut schema = self.schema.clone();
        schema.as_object_mut().unwrap().remove("oneOf");
        schema["$ref"] = format!("#/definitions/{definition}").into();
        let validator = jsonschema::validator_for(&schema).unwrap();
        validator.iter_errors(message).map(|error| format!("{definition}: {error} in {message}")).collect()
    }

    /// The fields that the protocol does not define: the schema itself accepts any.
    fn unknown_fields(&self, definition: &str, part: &str, body: &Value) -> Vec<String> {
        let known = self.properties(definition, part);
        let fields = body.as_object().into_iter().flatten().map(|(name, _)| name);
        fields.filter(|name| !known.contains(name)).map(|name| format!("{definition} has no {name}")).collect()
    }

    fn properties(&self, definition: &str, part: &str) -> Vec<String> {
        let definition = &self.schema["definitions"][definition];
        let own = definition["allOf"].as_array().and_then(|all| all.last()).unwrap_or(definition);
        let mut body = &own["properties"][part];
        if let Some(reference) = body["$ref"].as_str() {
            body = self.schema.pointer(reference.trim_start_matches('#')).unwrap();
        }
        body["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    fn check(&self, definition: &str, part: &str, message: Value) {
        let found = [self.errors(definition, &message), self.unknown_fields(definition, part, &message[part])].concat();
        assert!(found.is_empty(), "{found:#?}");
    }

    fn request<R: DapRequest>(&self, requests: &[R]) {
        for request in requests {
            let arguments = serde_json::to_value(request).unwrap();
            let definition = format!("{}Request", capitalize(R::COMMAND));
            self.check(
                &definition,
                "arguments",
                json!({
                    "seq": 1, "type": "request", "command": R::COMMAND, "arguments": arguments
                }),
            );
        }
    }

    fn response<R: DapRequest>(&self, responses: &[R::Response])
    where
        R::Response: Serialize,
    {
        for response in responses {
            let body = serde_json::to_value(response).unwrap();
            let definition = format!("{}Response", capitalize(R::COMMAND));
            self.check(
                &definition,
                "body",
                json!({
                    "seq": 1, "type": "response", "request_seq": 1, "success": true, "command": R::COMMAND, "body": body
                }),
            );
        }
    }

    fn event<T: DapEvent>(&self, events: &[T]) {
        for event in events {
            let body = serde_json::to_value(event).unwrap();
            let definition = format!("{}Event", capitalize(T::EVENT));
            self.check(&definition, "body", json!({"seq": 1, "type": "event", "event": T::EVENT, "body": body}));
        }
    }
}

fn capitalize(name: &str) -> String {
    name[..1].to_uppercase() + &name[1..]
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn source() -> DapSource {
    DapSource {
        name: text("ä b.py"),
        path: text("/w/ä b.py"),
        source_reference: Some(3),
        presentation_hint: text("normal"),
        origin: text("internal module"),
        sources: vec![DapSource::default()],
        adapter_data: Some(json!({"any": 1})),
        checksums: vec![Checksum { algorithm: "SHA256".into(), checksum: "00".into() }],
    }
}

fn breakpoint() -> DapBreakpoint {
    DapBreakpoint {
        verified: true,
        id: Some(1),
        message: text("m"),
        source: Some(source()),
        line: Some(1),
        column: Some(1),
        reason: text("pending"),
        older_code: None,
        ignores_column: None,
    }
}

#[test]
fn every_request_that_we_send_is_valid_with_all_of_its_fields_and_with_few() {
    let Some(schema) = schema() else { return };
    let validator = SchemaValidator { schema };
    validator.request(&[
        InitializeArguments { adapter_id: "x".into(), ..InitializeArguments::default() },
        InitializeArguments {
            adapter_id: "x".into(),
            lines_start_at1: true,
            columns_start_at1: true,
            client_id: text("tether"),
            client_name: text("tether"),
            locale: text("en"),
            path_format: text("path"),
            supports_variable_type: true,
            supports_variable_paging: true,
            supports_run_in_terminal_request: true,
            supports_start_debugging_request: true,
        },
    ]);
    validator.request(&[LaunchArguments::default()]);
    validator.request(&[AttachArguments::default()]);
    validator.request(&[ConfigurationDoneArguments {}]);
    let disconnect = DisconnectArguments { terminate_debuggee: Some(true) };
    validator.request(&[DisconnectArguments::default(), disconnect]);
    validator.request(&[ContinueArguments { thread_id: 1 }]);
    validator.request(&[NextArguments { thread_id: 1 }]);
    validator.request(&[StepInArguments { thread_id: 1, target_id: Some(2) }]);
    validator.request(&[StepOutArguments { thread_id: 1 }]);
    validator.request(&[PauseArguments { thread_id: 1 }]);
}

#[test]
fn every_request_about_breakpoints_is_valid() {
    let Some(schema) = schema() else { return };
    let validator = SchemaValidator { schema };
    let at = SourceBreakpoint {
        line: 3,
        column: Some(1),
        condition: text("x > 1"),
        hit_condition: text("2"),
        log_message: text("{x}"),
        line_anchor: Some(LineAnchor::default()),
    };
    let all = SetBreakpointsArguments { source: source(), breakpoints: vec![at] };
    validator.request(&[SetBreakpointsArguments::default(), all]);
    let function =
        FunctionBreakpoint { name: "f".into(), condition: text("x"), hit_condition: text("1"), log_message: None };
    validator.request(&[
        SetFunctionBreakpointsArguments::default(),
        SetFunctionBreakpointsArguments { breakpoints: vec![function] },
    ]);
    let option = ExceptionFilterOptions { filter_id: "raised".into(), condition: text("E") };
    let all = SetExceptionBreakpointsArguments { filters: vec!["raised".into()], filter_options: vec![option] };
    validator.request(&[SetExceptionBreakpointsArguments::default(), all]);
    let data = DataBreakpoint {
        data_id: "d".into(),
        access_type: text("readWrite"),
        condition: text("x"),
        hit_condition: text("1"),
    };
    validator
        .request(&[SetDataBreakpointsArguments::default(), SetDataBreakpointsArguments { breakpoints: vec![data] }]);
    let info = DataBreakpointInfoArguments { name: "x".into(), variables_reference: Some(1), frame_id: Some(1) };
    validator.request(&[DataBreakpointInfoArguments::default(), info]);
    validator.response::<SetBreakpointsArguments>(&[
        SetBreakpointsResponse::default(),
        SetBreakpointsResponse { breakpoints: vec![breakpoint()] },
    ]);
    validator.response::<SetExceptionBreakpointsArguments>(&[SetExceptionBreakpointsResponse {
        breakpoints: vec![breakpoint()],
    }]);
    let watchable = DataBreakpointInfoResponse {
        data_id: text("d"),
        description: "x".into(),
        access_types: vec!["read".into(), "write".into()],
        can_persist: true,
    };
    validator.response::<DataBreakpointInfoArguments>(&[DataBreakpointInfoResponse::default(), watchable]);
    validator.event(&[BreakpointEvent { reason: "changed".into(), breakpoint: breakpoint() }]);
}

#[test]
fn the_validator_finds_errors_and_unknown_fields() {
    let Some(schema) = schema() else { return };
    let validator = SchemaValidator { schema };
    let wrong = json!({"seq": 1, "type": "request", "command": "next", "arguments": {"threadId": "1"}});
    assert!(!validator.errors("NextRequest", &wrong).is_empty());
    assert!(!validator.errors("NextRequest", &json!({"seq": 1, "type": "request", "command": "next"})).is_empty());
    assert_eq!(
        validator.unknown_fields("NextRequest", "arguments", &json!({"threadID": 1})),
        ["NextRequest has no threadID"]
    );
    assert!(validator.unknown_fields("ThreadsResponse", "body", &json!({"threads": []})).is_empty());
}

#[test]
fn capabilities_are_read_by_name_and_merged_by_field() {
    let mut capabilities: DapCapabilities = serde_json::from_value(json!({
        "supportsLogPoints": true, "supportsStepBack": false, "exceptionBreakpointFilters": null, "x": {"new": 1}
    }))
    .unwrap();
    assert!(capabilities.can("supportsLogPoints"));
    assert!(!capabilities.can("supportsStepBack") && !capabilities.can("x") && !capabilities.can("unheard of"));
    capabilities.change(serde_json::from_value(json!({"supportsStepBack": true})).unwrap());
    assert!(capabilities.can("supportsLogPoints") && capabilities.can("supportsStepBack"));
}
