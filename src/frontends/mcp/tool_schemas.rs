//! Writes `tool_list.json`: operations as MCP tools, with their schemas, kept short. Only tests use it: building the schemas
//! takes 5 ms, which each start of a front end would pay.

use std::path::Path;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use serde_json::{Value, json};

use super::tool_list::{ToolSet, tools_text};
use super::tool_names::offered_operations;
use super::tools::IMAGE_FIELD;
use crate::api::{OPERATIONS, Operation, OperationEffect, OperationGroup};

/// The tool of an operation.
fn operation_tool(operation: &'static Operation) -> Tool {
    let mut tool = Tool::new(operation.tool_name(), operation.summary(), Arc::new(input_schema(operation)));
    tool.output_schema = Some(Arc::new(output_schema(operation)));
    tool.annotations = Some(effect_annotations(operation.effect));
    tool
}

/// Tools whose results are a text, or a table of them.
const WITHOUT_OUTLINE: [&str; 5] = ["debug_source", "debug_output", "debug_evaluate", "window_snapshot", "test_run"];

/// The offered operations as tools. Of several with the same result, only the first has its outline: it costs an agent bytes,
/// and each result has a text beside it.
fn all_tools() -> Vec<Tool> {
    let mut tools: Vec<Tool> = offered_operations().map(operation_tool).collect();
    let mut known = Vec::new();
    for tool in &mut tools {
        if known.contains(&tool.output_schema) || WITHOUT_OUTLINE.contains(&&*tool.name) {
            tool.output_schema = None;
        } else {
            known.push(tool.output_schema.clone());
        }
    }
    tools
}

/// The annotations of an effect, where they differ from MCP's defaults.
fn effect_annotations(effect: OperationEffect) -> ToolAnnotations {
    let closed = ToolAnnotations::new().open_world(false);
    match effect {
        OperationEffect::ReadOnly => closed.read_only(true),
        OperationEffect::Idempotent => closed.destructive(false).idempotent(true),
        OperationEffect::Additive => closed.destructive(false),
        OperationEffect::Replacing => closed.idempotent(true),
        OperationEffect::Destructive => closed,
        OperationEffect::RunsCode => ToolAnnotations::new(),
    }
}

/// The parameters as a JSON schema, as short as possible: an agent pays for every byte.
pub(super) fn input_schema(operation: &Operation) -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = (operation.params_schema)(&mut settings.into_generator());
    schema.remove("title");
    // It is the tool's description.
    schema.remove("description");
    simplify_schema(&mut schema);
    let mut schema = std::mem::take(schema.ensure_object());
    // OpenAI refuses an object without them.
    schema.entry("properties").or_insert_with(|| json!({}));
    schema
}

/// The result as a JSON schema: the names of its fields, one level deep. What a field means
/// is clear from its name, the text beside the result, and the result itself.
pub(super) fn output_schema(operation: &Operation) -> JsonObject {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = (operation.result_schema)(&mut settings.into_generator());
    let properties = schema.get("properties").and_then(Value::as_object);
    let fields = properties.into_iter().flatten().filter(|(name, _)| *name != IMAGE_FIELD);
    let fields: JsonObject = fields.map(|(name, _)| (name.clone(), json!({}))).collect();
    let outline = rmcp::object!({ "type": "object", "properties": fields });
    outline
}

/// Removes `null` from optional parameters, which can be left out instead, the width of numbers, the line breaks of doc comments,
/// and what not every provider of models takes.
fn simplify_schema(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    schema.remove("format");
    // The description says it.
    schema.remove("default");
    // The operation itself rejects unknown parameters, and lists its own.
    schema.remove("additionalProperties");
    if schema.get("minimum").is_some_and(|least| *least == 0) {
        schema.remove("minimum");
    }
    schema.remove("maximum");
    let null = |it: &Value| it.is_null() || it == "null" || it.get("type").is_some_and(|of| of == "null");
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|it| !null(it));
    }
    for key in ["type", "anyOf"] {
        let Some(Value::Array(choices)) = schema.get_mut(key) else { continue };
        choices.retain(|it| !null(it));
        if choices.len() != 1 {
            continue;
        }
        match choices.swap_remove(0) {
            Value::Object(only) => {
                schema.remove(key);
                for (name, value) in only {
                    schema.ensure_object().entry(name).or_insert(value);
                }
            }
            only => drop(schema.insert(key.into(), only)),
        }
    }
    transform_subschemas(&mut simplify_schema, schema);
}

/// One tool on each line.
fn tool_list_text() -> String {
    let tools: Vec<String> = all_tools().iter().map(|tool| serde_json::to_string(tool).unwrap()).collect();
    format!("[\n{}\n]\n", tools.join(",\n"))
}

#[test]
fn the_list_of_tools_is_that_of_the_operations() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/frontends/mcp/tool_list.json");
    if std::env::var_os("UPDATE_TOOL_LIST").is_some() {
        return std::fs::write(&file, tool_list_text()).unwrap();
    }
    let is_same = std::fs::read_to_string(&file).unwrap_or_default() == tool_list_text();
    assert!(
        is_same,
        "an operation has changed: `UPDATE_TOOL_LIST=1 cargo test --workspace --lib mcp` writes {file:?} again"
    );
    let tools = all_tools();
    let listed = |group| serde_json::from_str::<Vec<Tool>>(&tools_text(ToolSet { group, by_search: false })).unwrap();
    assert_eq!(listed(None), tools);
    let of_window = listed(Some(OperationGroup::Window));
    let is_of_window =
        |tool: &Tool| tool.name.starts_with("window_") || ["wait_for_any", "test_run"].contains(&&*tool.name);
    assert!(!of_window.is_empty() && of_window.iter().all(is_of_window));
}

/// The size of `tools/list` in bytes: all of it, and without the output schemas.
#[test]
fn the_list_of_tools_stays_within_its_budget() {
    let whole = all_tools();
    let bytes = |tools: &[Tool]| serde_json::to_vec(&json!({ "tools": tools })).unwrap().len();
    let mut input_side = whole.clone();
    for tool in &mut input_side {
        tool.output_schema = None;
        tool.annotations = None;
    }
    let (whole_bytes, input_bytes) = (bytes(&whole), bytes(&input_side));
    println!("{} tools: {whole_bytes} bytes, input side {input_bytes}", whole.len());
    assert!(input_bytes <= 28 * 1024, "{input_bytes}");
    assert!(whole_bytes <= 34 * 1024, "{whole_bytes}");
}

/// What a provider of models would refuse of a parameter's schema. What all of them take: the six types, one in each schema; texts as
/// `enum`; no reference, alternative or open object. <https://ai.google.dev/api/caching#Schema> is the narrowest.
fn refused_by_a_provider(schema: &Value, path: &str, depth: usize) -> Vec<String> {
    let Some(fields) = schema.as_object() else { return vec![format!("{path}: {schema} is no object")] };
    let mut refused = Vec::new();
    let mut refuse = |why: String| refused.push(format!("{path}: {why}"));
    for keyword in fields.keys() {
        if !["type", "description", "enum", "properties", "required", "items"].contains(&keyword.as_str()) {
            refuse(format!("`{keyword}`"));
        }
    }
    let kind = schema["type"].as_str().unwrap_or_default();
    if !["object", "array", "string", "integer", "number", "boolean"].contains(&kind) {
        refuse(format!("the type {}", schema["type"]));
    }
    let are_texts = |it: &Value| it.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string));
    if fields.get("enum").is_some_and(|values| kind != "string" || !are_texts(values)) {
        refuse("an `enum` of other than texts".to_owned());
    }
    if (kind == "array") != fields.contains_key("items") {
        refuse("`items` belong to an array".to_owned());
    }
    // Below the top, Gemini refuses an object without properties.
    let properties = schema["properties"].as_object();
    if (kind == "object") != properties.is_some_and(|properties| depth == 0 || !properties.is_empty()) {
        refuse("`properties` belong to an object".to_owned());
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required.filter(|name| schema["properties"].get(*name).is_none()) {
        refuse(format!("`{name}` is required, and no property"));
    }
    if depth > 4 {
        refuse("more than five levels".to_owned());
    }
    for (name, property) in properties.into_iter().flatten() {
        if !is_plain_name(name) {
            refused.push(format!("{path}: the name {name:?}"));
        }
        refused.extend(refused_by_a_provider(property, &format!("{path}.{name}"), depth + 1));
    }
    let items = fields.get("items").into_iter();
    refused.extend(items.flat_map(|items| refused_by_a_provider(items, &format!("{path}[]"), depth + 1)));
    refused
}

fn is_plain_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.chars().all(|it| it.is_ascii_alphanumeric() || "_-".contains(it))
}

#[test]
fn every_provider_of_models_takes_the_tools() {
    for tool in offered_operations().map(operation_tool) {
        let schema = Value::Object((*tool.input_schema).clone());
        assert_eq!(refused_by_a_provider(&schema, &tool.name, 0), [""; 0]);
        assert_eq!(schema["type"], "object", "{}", tool.name);
        assert!(
            is_plain_name(&tool.name) && tool.name.len() <= 40,
            "clients put the server's name before {}",
            tool.name
        );
        let description = tool.description.as_deref().unwrap_or_default();
        assert!((1..=1024).contains(&description.len()), "OpenAI refuses a longer description: {}", tool.name);
    }
}

#[test]
fn what_a_provider_refuses_is_found_at_any_depth() {
    let check = |property: Value, expect: &[&str]| {
        let refused = refused_by_a_provider(&json!({"type": "object", "properties": {"a": property}}), "t", 0);
        assert_eq!(refused, expect);
    };
    check(json!({"type": "string", "enum": ["x"], "description": "d"}), &[]);
    check(json!(true), &["t.a: true is no object"]);
    check(json!({"type": ["string", "null"]}), &["t.a: the type [\"string\",\"null\"]"]);
    check(json!({"$ref": "#/b", "type": "string"}), &["t.a: `$ref`"]);
    check(json!({"type": "array", "items": {}}), &["t.a[]: the type null"]);
    check(json!({"type": "array"}), &["t.a: `items` belong to an array"]);
    check(json!({"type": "object"}), &["t.a: `properties` belong to an object"]);
    check(json!({"type": "integer", "enum": [1]}), &["t.a: an `enum` of other than texts"]);
    let open = json!({"type": "object", "properties": {"$b": {"type": "string"}}, "additionalProperties": false, "required": ["c"]});
    check(open, &["t.a: `additionalProperties`", "t.a: `c` is required, and no property", "t.a: the name \"$b\""]);
}

/// The paths of the properties below `schema` that have no description.
fn undescribed_properties(schema: &Value, path: &str) -> Vec<String> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut found: Vec<String> = properties
        .flat_map(|(name, property)| {
            let path = format!("{path}.{name}");
            let below = undescribed_properties(property, &path);
            let description = property["description"].as_str().unwrap_or_default();
            description.trim().is_empty().then_some(path).into_iter().chain(below).collect::<Vec<_>>()
        })
        .collect();
    if let Some(items) = schema.get("items") {
        found.extend(undescribed_properties(items, &format!("{path}[]")));
    }
    found
}

#[test]
fn every_parameter_of_every_tool_has_a_description() {
    let of_tool = |tool: Tool| undescribed_properties(&Value::Object((*tool.input_schema).clone()), &tool.name);
    let undescribed: Vec<String> = offered_operations().map(operation_tool).flat_map(of_tool).collect();
    assert_eq!(undescribed, [""; 0]);
    let nested = json!({"properties": {"a": {"items": {"properties": {"b": {"description": " "}}}}}});
    assert_eq!(undescribed_properties(&nested, "tool"), ["tool.a", "tool.a[].b"]);
}

/// The command line has parameters that are no MCP tool's, and texts of its own.
#[test]
fn every_argument_of_every_command_has_a_help_text() {
    for operation in OPERATIONS {
        let command = (operation.augment)(clap::Command::new(operation.last_word()));
        for argument in command.get_arguments() {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.trim().is_empty(), "{}: {}", operation.method, argument.get_id());
        }
    }
}

/// What a client may allow without asking its user.
#[test]
fn annotations_tell_what_a_call_may_do() {
    let tools: Vec<Tool> = offered_operations().map(operation_tool).collect();
    let with = |is: fn(&ToolAnnotations) -> bool| -> Vec<&str> {
        let tools = tools.iter().filter(|tool| is(tool.annotations.as_ref().unwrap()));
        tools.map(|tool| tool.name.as_ref()).collect()
    };
    let read_only = "window_status window_changes window_console window_network window_output debug_status \
        wait_for_stop breakpoint_list debug_stack debug_variables debug_source debug_output debug_events wait_for_any";
    assert_eq!(with(|it| it.read_only_hint == Some(true)), read_only.split_whitespace().collect::<Vec<_>>());
    // MCP's defaults: what is not said to be otherwise is destructive, and reaches the world.
    let harmless = "window_profile debug_continue debug_pause debug_step debug_run_to";
    assert_eq!(with(|it| it.destructive_hint == Some(false)), harmless.split_whitespace().collect::<Vec<_>>());
    let open_world = "window_evaluate window_input window_page window_command debug_launch debug_attach debug_evaluate debug_set_variable debug_probe \
        test_run";
    assert_eq!(with(|it| it.open_world_hint.is_none()), open_world.split_whitespace().collect::<Vec<_>>());
}

#[test]
pub(super) fn output_schemas_are_an_outline_and_leave_the_picture_out() {
    let of = |verb: &str| {
        let operation = OPERATIONS.iter().find(|operation| operation.words == [verb]).unwrap();
        Value::Object(output_schema(operation))
    };
    let status = of("status");
    assert_eq!(status["properties"]["generation"], json!({}));
    assert_eq!(status["properties"]["lastBuild"], json!({}));
    let screenshot = of("screenshot");
    assert!(screenshot["properties"].get("data").is_none(), "{screenshot}");
    assert_eq!(of("evaluate")["properties"]["value"], json!({}));
}

#[test]
fn schemas_are_short_and_say_what_is_optional_by_leaving_it_out() {
    let of = |verb: &str| {
        let operation = OPERATIONS.iter().find(|operation| operation.words == [verb]).unwrap();
        serde_json::to_value(input_schema(operation)).unwrap()
    };
    let evaluate = of("evaluate");
    assert_eq!(evaluate["required"], serde_json::json!(["expression"]));
    assert_eq!(evaluate["properties"]["timeoutMs"]["type"], "integer");
    let rebuild = &of("start")["properties"]["rebuild"];
    assert_eq!(rebuild["enum"], serde_json::json!(["auto", "always", "never"]));
    assert!(rebuild.get("anyOf").is_none(), "{rebuild}");
}
