//! A folder that its user does not trust: the extension is active, and starts nothing.

use serde_json::json;

use super::host_editor::HostEditor;

/// Would connect at once in a folder that is trusted.
const FILES: [(&str, &str); 1] = [("devtools.toml", "[window]\nkind = 'node'\nprogram = 'server.js'\n")];

#[tokio::test]
async fn nothing_is_started_in_a_folder_that_is_not_trusted() {
    let settings = json!({"security.workspace.trust.startupPrompt": "never", "tether.connect": "always"});
    let Some(editor) = HostEditor::start_untrusted(settings, &FILES).await else { return };
    editor.until_shown("Restricted Mode").await;
    editor.run("Tether: Start Window", "this folder is not trusted").await;
    editor.run("Tether: Focus on Overview View", "Trust the folder to use it").await;
    let folder = editor.folder.to_str().unwrap();
    let ours = |line: &str| line.contains("tether") && line.contains(&format!("--workspace {folder}"));
    let started: Vec<_> = editor.sandbox.processes().into_iter().filter(|(_, line)| ours(line)).collect();
    assert!(started.is_empty(), "{started:?}");
    editor.close().await;
}
