//! Frames, elements, dialogs and forms over MCP, on a real page.

use serde_json::{Value, json};

use super::page_fixture::PageFixture;
use crate::support::requirements::has_program;

const FRAMES: &str = r#"<!doctype html><link rel=icon href="data:,"><title>Outer</title><h1 id=top>Outer</h1>
<script>var who = 'outer';</script>
<iframe name=near src="/near"></iframe><iframe title=Far src="$other/far"></iframe>"#;
const NEAR: &str = "<!doctype html><title>Near</title><p>Near</p><script>var who = 'near';</script>";
const FAR: &str = "<!doctype html><title>Far</title><button id=go>Far away</button><script>var who = 'far';</script>";

#[tokio::test]
async fn an_expression_runs_in_any_frame_and_on_any_element() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(&[("/", FRAMES), ("/near", NEAR), ("/far", FAR)]).await;
    let evaluate = async |arguments: Value| page.call("window_evaluate", arguments).await["value"].clone();
    let far = page.find("iframe \"Far\"").await;
    let go = page.find("button \"Far away\"").await;
    for (frame, expect) in [("near", "near"), ("/far", "far"), ("localhost", "far"), (far.as_str(), "far")] {
        assert_eq!(evaluate(json!({"expression": "who", "frame": frame})).await, expect, "{frame}");
    }
    assert_eq!(evaluate(json!({"expression": "who"})).await, "outer");
    for (expression, expect) in [
        ("it => it.id + ' of ' + who", json!("go of far")),
        ("element.textContent", json!("Far away")),
        (
            "async it => { await null; return [it.localName, it === document.getElementById('go')] };",
            json!(["button", true]),
        ),
        ("function (it) { return this === it }", json!(true)),
    ] {
        assert_eq!(evaluate(json!({"expression": expression, "ref": go})).await, expect, "{expression}");
    }
    let thrown = page.call("window_evaluate", json!({"expression": "it => it.nothing()", "ref": go})).await;
    assert!(thrown["exception"].as_str().unwrap().contains("nothing is not a function"), "{thrown}");
    let wrong = page.call("window_evaluate", json!({"expression": "it => {", "ref": go})).await;
    assert!(wrong["exception"].as_str().unwrap().contains("SyntaxError"), "{wrong}");
    let missing = page.refused("window_evaluate", json!({"expression": "1", "frame": "nowhere"})).await;
    assert!(missing.contains("has no frame") && missing.contains("\"near\""), "{missing}");
    evaluate(json!({"expression": "element.remove()", "ref": go})).await;
    let removed = page.refused("window_evaluate", json!({"expression": "element.id", "ref": go})).await;
    assert!(removed.contains("stale ref"), "{removed}");
    // A long value is cut, and the whole of it is a file.
    let long = page.call("window_evaluate", json!({"expression": "Array.from({length: 20000}, (_, at) => at)"})).await;
    let note = long["notes"][0].as_str().unwrap();
    let file = note.rsplit(' ').next().unwrap();
    let whole: Value = serde_json::from_slice(&std::fs::read(page.sandbox.path(file)).unwrap()).unwrap();
    assert_eq!((whole[19_999].as_u64(), note.starts_with("cut: the first 40000 of")), (Some(19_999), true), "{note}");
    page.end().await;
}

const DIALOGS: &str = r#"<!doctype html><link rel=icon href="data:,"><title>Dialogs</title>
<button onclick="said.textContent = [confirm('Sure?'), prompt('Name?', 'nobody'), confirm('Really?')]">Ask</button><p id=said></p>"#;

#[tokio::test]
async fn dialogs_are_answered_as_the_actions_before_say() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(&[("/", DIALOGS)]).await;
    let ask = page.find("button \"Ask\"").await;
    let click = json!({"do": "click", "ref": ask});
    let done = page
        .act(json!([{"do": "dialog"}, {"do": "dialog", "text": "Ann"}, {"do": "dialog", "accept": false}, click]))
        .await;
    assert_eq!(page.value("said.textContent").await, "true,Ann,false");
    assert!(done.contains("a dialog was accepted: confirm \"Sure?\""), "{done}");
    assert!(done.contains("a dialog was accepted with \"Ann\": prompt \"Name?\""), "{done}");
    assert!(done.contains("a dialog was dismissed: confirm \"Really?\""), "{done}");
    page.act(json!([{"do": "dialog"}, {"do": "dialog"}, click])).await;
    assert_eq!(page.value("said.textContent").await, "true,nobody,false");
    // What a call has not used answers no dialog of a later one.
    page.act(json!([{"do": "dialog"}, {"do": "press", "keys": "Escape"}])).await;
    page.act(json!([click])).await;
    assert_eq!(page.value("said.textContent").await, "false,,false");
    page.end().await;
}

const FORM: &str = r#"<!doctype html><link rel=icon href="data:,"><title>Form</title><style>#zone{width:200px;height:60px}</style>
<form onsubmit="event.preventDefault(); said.textContent = 'sent'">
<label>Name <input id=name value=old></label><label>Notes <textarea id=notes>old</textarea></label>
<label>Born <input id=born type=date></label><label>Level <input id=level type=range max=10></label>
<label>Color <select id=color><option value=r>Red</option><option value=b>Dark blue</option></select></label>
<label>Tags <select id=tags multiple><option>a</option><option>b</option><option>c</option></select></label>
<label><input id=terms type=checkbox> Terms</label>
<div id=switch role=switch aria-checked=false aria-label=Switch tabindex=0 onclick="this.setAttribute('aria-checked', this.getAttribute('aria-checked') !== 'true')">s</div>
<div id=rich contenteditable role=textbox aria-label=Rich>old</div>
<label>File <input id=file type=file multiple></label>
<button type=button id=choose onclick="it = document.createElement('input'); it.type = 'file'; it.onchange = () => said.textContent = 'chose ' + it.files[0].name; it.click()">Choose</button>
<div id=zone role=button aria-label=Zone ondragover="event.preventDefault()" ondrop="event.preventDefault(); [...event.dataTransfer.files].forEach(async it => said.textContent = it.name + ' ' + await it.text())">Zone</div>
<button>Send</button></form><p id=said></p><div id=hold role=button aria-label=Hold>Hold</div>
<script>
let changes = [];
addEventListener('change', event => changes.push(event.target.id));
addEventListener('paste', event => { changes.push('paste ' + event.clipboardData.getData('text/plain')); });
hold.onmousedown = () => at = performance.now();
hold.onmouseup = () => said.textContent = performance.now() - at >= 300 ? 'held' : 'clicked';
</script>"#;

#[tokio::test]
async fn a_form_is_filled_in_one_action_and_files_of_the_workspace_are_given_to_it() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(&[("/", FORM)]).await;
    page.sandbox.write("files/a.txt", "from the workspace");
    page.sandbox.write("files/b.txt", "b");
    let snapshot = crate::support::mcp_client::text(&page.agent.ask("window_snapshot", json!({})).await);
    let find = |words: &str| super::find(&snapshot, words);
    let [name, notes, born, level] = ["textbox \"Name", "textbox \"Notes", "date \"Born", "slider \"Level"].map(find);
    let [color, tags, terms, rich] =
        ["combobox \"Color", "listbox \"Tags", "checkbox \"Terms", "textbox \"Rich"].map(find);
    let fields = json!({(name.as_str()): "Ann é", (notes.as_str()): "two\nlines", (born.as_str()): "2001-02-03", (level.as_str()): "7",
        (color.as_str()): "Dark blue", (tags.as_str()): "a, c", (terms.as_str()): "true", (rich.as_str()): "rich"});
    page.act(json!([{"do": "fill", "fields": fields}])).await;
    let read = "[document.getElementById('name').value, notes.value, born.value, level.value, color.value, [...tags.selectedOptions].map(it => it.value).join(), terms.checked, rich.textContent]";
    assert_eq!(page.value(read).await, json!(["Ann é", "two\nlines", "2001-02-03", "7", "b", "a,c", true, "rich"]));
    for id in ["born", "level", "color", "tags", "terms"] {
        assert_eq!(page.value(&format!("changes.includes({id:?})")).await, true, "{id}");
    }
    page.act(json!([{"do": "fill", "ref": name, "text": ""}, {"do": "uncheck", "ref": terms}, {"do": "select", "ref": tags, "values": ["b"]},
        {"do": "check", "ref": find("switch")}])).await;
    let rest = page.value("[document.getElementById('name').value, terms.checked, tags.value, document.getElementById('switch').getAttribute('aria-checked')]").await;
    assert_eq!(rest, json!(["", false, "b", "true"]));
    page.act(json!([{"do": "paste", "ref": name, "text": "pasted"}])).await;
    assert_eq!(
        page.value("[document.getElementById('name').value, changes.includes('paste pasted')]").await,
        json!(["pasted", true])
    );
    for (action, expect) in [
        (
            json!({"do": "select", "ref": color, "values": ["Green"]}),
            "has no option \"Green\", only \"Red\", \"Dark blue\"",
        ),
        (json!({"do": "fill", "ref": born, "text": "soon"}), "does not take \"soon\""),
        (json!({"do": "fill", "ref": terms, "text": "yes"}), "it takes `true` or `false`"),
        (json!({"do": "check", "ref": name}), "cannot be checked"),
        (json!({"do": "upload", "ref": name, "values": ["../secret"]}), "is not a file of the workspace"),
        (json!({"do": "upload", "ref": find("File"), "values": ["/etc/hostname"]}), "is not a file of the workspace"),
        (
            json!({"do": "upload", "ref": find("Send"), "values": ["files/a.txt"], "timeoutMs": 700}),
            "opened no dialog for files",
        ),
    ] {
        let refused = page.refused("window_input", json!({"actions": [action]})).await;
        assert!(refused.contains(expect), "{action}: {refused}");
    }
    page.act(json!([{"do": "upload", "ref": find("File"), "values": ["files/a.txt", "files/b.txt"]}])).await;
    assert_eq!(
        page.value("Promise.all([...file.files].map(it => it.text()))").await,
        json!(["from the workspace", "b"])
    );
    page.act(json!([{"do": "upload", "ref": find("Choose"), "values": ["files/b.txt"]}, {"do": "wait", "text": "chose b.txt"}])).await;
    page.act(json!([{"do": "drop", "ref": find("Zone"), "values": ["files/a.txt"]}, {"do": "wait", "text": "a.txt from the workspace"}])).await;
    page.act(json!([{"do": "click", "ref": find("Hold"), "holdMs": 350}, {"do": "wait", "text": "held"}])).await;
    page.act(json!([{"do": "press", "ref": name, "keys": "ControlOrMeta+A"}, {"do": "press", "keys": "Delete"}])).await;
    assert_eq!(page.value("document.getElementById('name').value").await, "");
    page.end().await;
}

const OUTER_FORM: &str = r#"<!doctype html><link rel=icon href="data:,"><title>Outer</title><iframe title=Inner src="$other/inner"></iframe>"#;

#[tokio::test]
async fn input_reaches_a_frame_of_another_process_in_a_page_that_is_not_in_front() {
    if !has_program("chromium") {
        return;
    }
    let inner = "<!doctype html><title>Inner</title><input aria-label=Word><button onclick=\"this.textContent = document.querySelector('input').value\">Take</button>";
    let page = PageFixture::open(&[("/", OUTER_FORM), ("/inner", inner), ("/next", "<title>Next</title>")]).await;
    let (word, take) = (page.find("textbox \"Word\"").await, page.find("button \"Take\"").await);
    page.call("window_page", json!({"do": "new", "url": "/next"})).await;
    let did = page.act(json!([{"do": "type", "ref": word, "text": "typed"}, {"do": "click", "ref": take}])).await;
    let shown = page.call("window_snapshot", json!({"page": "Outer"})).await;
    assert!(shown["text"].as_str().unwrap().contains("button \"typed\""), "{did}\n{shown}");
    page.end().await;
}
