//! What a folder's own build prints is text where VS Code shows it.

use serde_json::json;

use super::host_editor::HostEditor;

const FILES: [(&str, &str); 2] = [
    (
        "devtools.toml",
        "[build]\ncommand = ['sh', '-c', 'echo \"see [notes](https://example.org/a)\"; exit 3']\n[window]\nkind = 'node'\nprogram = 'server.js'\n",
    ),
    ("server.js", ""),
];

#[tokio::test]
async fn the_failure_of_a_build_that_prints_a_link_has_none_in_its_notification() {
    let Some(editor) = HostEditor::start(json!({}), &FILES).await else { return };
    editor.tether(&["trust", "--yes"]).ok();
    editor.run("Tether: Start Window", "Show Log").await;
    let shown = editor.until_shown("Show Log").await;
    assert!(shown.contains("see [notes] (https://example.org/a)"), "{shown}");
    // VS Code keeps a second element of it, to measure it.
    let messages = "[...document.querySelectorAll('.notification-list-item-message')]";
    let seen = format!(
        "(all => [all.some(it => it.textContent.includes('notes')), all.some(it => it.querySelector('a'))])({messages})"
    );
    let result = editor.agent.call("window_evaluate", json!({"expression": seen})).await;
    assert_eq!(result["value"], json!([true, false]), "{result}");
    editor.close().await;
}
