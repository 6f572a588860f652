//! Steps past code without a source.

use serde_json::{Value, json};

use super::conversation::{NodeConversation, installed_nodes};

/// Its third and fourth line are of no line of its source.
const GENERATED: &str = "\
let sum = 1;
sum += 2;
sum += 0;
sum += 0;
console.log(sum);
console.log('end');
//# sourceMappingURL=app.js.map
";
const SOURCE: &str = "\
let sum: number = 1;
sum += 2; // STOP
console.log(sum);
console.log('end');
";
const SPARSE_MAP: &str =
    r#"{"version":3,"file":"app.js","sources":["app.ts"],"names":[],"mappings":"AAAA;AACA;A;A;AACA;AACA"}"#;

#[tokio::test]
async fn a_step_goes_on_through_code_without_a_source_to_the_next_line_of_one() {
    for node in installed_nodes() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("app.js", GENERATED), ("app.ts", SOURCE), ("app.js.map", SPARSE_MAP)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let arguments = json!({"runtimeExecutable": node, "program": "app.js", "cwd": folder.path()});
        let mut conversation = NodeConversation::begin("launch", arguments).await;
        conversation.set_breakpoints(&folder.path().join("app.ts"), "STOP").await;
        conversation.configure().await;
        let thread = conversation.event("stopped").await["threadId"].clone();
        assert_eq!(top_line(&conversation, &thread).await, 2);
        for line in [3, 4] {
            conversation.request("next", json!({"threadId": thread})).await;
            let stopped = conversation.event("stopped").await;
            assert_eq!((&stopped["reason"], top_line(&conversation, &thread).await), (&json!("step"), line));
        }
        conversation.request("continue", json!({"threadId": thread})).await;
        assert_eq!(conversation.ends().await.0, Some(0));
    }
}

async fn top_line(conversation: &NodeConversation, thread: &Value) -> i64 {
    let stack = conversation.request("stackTrace", json!({"threadId": thread})).await;
    stack["stackFrames"][0]["line"].as_i64().unwrap()
}
