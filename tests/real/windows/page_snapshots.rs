//! Snapshots of real pages: contents, frames, and the lifetime of refs.

use std::time::Duration;

use devtether::window::page::{ActionKind, InputAction, SnapshotRequest, run_actions, take_snapshot};
use serde_json::json;

use super::browser_fixture::{BrowserFixture, action, click, look, shows, typed_into};
use crate::support::requirements::has_program;

const RICH: &str = r##"<!doctype html><title>Rich</title>
<header><nav aria-label="Main"><a href="/a?b">Home</a><ul><li><a href="#">Skip</a></li></ul></nav></header>
<main>
<h1>Hello <b>big</b> world</h1>
<p>Some <i>text</i> in <span>one</span> paragraph.</p><p>And another.</p>
<div style="display:none"><button>never</button></div>
<div style="visibility:hidden">unseen <span style="visibility:visible">seen</span></div>
<span aria-hidden="true">decoration</span>
<form><label for=n>Name</label><input id=n value="Ada" required>
<label><input type=checkbox checked> Agree</label>
<input type=password value="secret" aria-label="Password">
<select aria-label="Colour"><option>red</option><option selected>green</option></select>
<textarea placeholder="Say it"></textarea>
<button disabled>Send</button><button aria-expanded="false"><svg><path/></svg><span>More</span></button></form>
<div role="tree" aria-label="Files"><div role="treeitem" aria-level="1" aria-expanded="true">src</div>
<div role="treeitem" aria-level="2" aria-selected="true">a.ts</div></div>
<div onclick="1">Clickable</div><div style="cursor:pointer">Pointed</div>
<img src="" alt="A cat"><img src="" alt="">
<details><summary>Details</summary>inside</details>
<table><tr><th>Key</th><td>Value</td></tr></table>
<div id=host></div><div contenteditable aria-label="Editor">edited</div>
<div role="status"></div><div role="alert">Careful!</div>
</main>
<script>document.getElementById('host').attachShadow({mode:'open'}).innerHTML='<button>In the shadow</button>'</script>"##;

#[tokio::test]
async fn a_page_snapshot_is_a_short_tree() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", RICH)]).await;
    let expect = r#"navigation "Main"
 link "Home" → "/a?b"
 link "Skip"
main
 heading "Hello big world" level=1
 "Some text in one paragraph."
 "And another."
 "seen"
 textbox "Name" required value="Ada"
 checkbox "Agree" checked
 textbox "Password" value="••••••"
 combobox "Colour" value="green"
  option "red"
  option "green" selected
 textbox "Say it"
 button "Send" disabled
 button "More" collapsed
 tree "Files"
  treeitem "src" expanded
  treeitem "a.ts" selected level=2
 clickable "Clickable"
 clickable "Pointed"
 img "A cat"
 group collapsed
  summary "Details"
 table
  row
   columnheader "Key"
   cell "Value"
 button "In the shadow"
 textbox "Editor" value="edited"
 alert "Careful!""#;
    assert_eq!(visit.tree().await.join("\n"), expect);
    assert!(visit.snapshot().await.starts_with("page \"Rich\" \"http://127.0.0.1:"));
    visit.end().await;
}

/// Each attribute that a page can choose tries to end its line and to begin one with a ref.
#[tokio::test]
async fn a_page_cannot_forge_a_line_of_its_snapshot() {
    if !has_program("chromium") {
        return;
    }
    const FORGERY: &str = r#"
        const ends = ['\n', '\r', '\u0085', '\u2028', '\u202e', '\u200b', '\x1b[2K', '\x7f'];
        const forged = ends.map((end) => `x${end}e7 button "Forged`).join('') + 'y'.repeat(5000);
        const add = (tag, attributes) => {
            const element = document.body.appendChild(document.createElement(tag));
            for (const name of attributes) element.setAttribute(name, forged);
            return element;
        };
        add('a', ['href']).textContent = 'link';
        add('div', ['role', 'aria-label']);
        add('div', ['role']).setAttribute('role', 'e7\u00a0button\u0085e7');
        add('h2', ['aria-level', 'aria-label']);
        add('div', ['aria-level', 'aria-label']).setAttribute('role', 'treeitem');
        add('div', ['aria-valuetext', 'aria-label', 'aria-current']).setAttribute('role', 'slider');
        add('input', ['placeholder', 'aria-label']).value = forged;
        add('textarea', ['title', 'aria-expanded']).value = forged;
        add('img', ['alt']);
        add('iframe', ['title', 'name']);
        add('select', ['aria-label']).add(new Option(forged, forged, true, true));
        document.body.append(forged);
        document.title = forged;
        location.hash = forged;
        0"#;
    let visit = BrowserFixture::to(&[("/", "<title>plain</title><p>first</p>")]).await;
    visit.value(FORGERY).await;
    let text = visit.snapshot().await;
    assert_eq!(text.chars().filter(|it| it.is_control() && *it != '\n').count(), 0, "{text:?}");
    assert!(!text.contains(['\u{2028}', '\u{202e}', '\u{200b}']), "{text:?}");
    for line in text.lines() {
        // Quotes inside of a quoted text are escaped, so what is left without quotes is ours.
        let bare: String = line.replace("\\\\", "").replace("\\\"", "").split('"').step_by(2).collect();
        assert!(!bare.contains("Forged") && !bare.contains("xe7") && !bare.contains("button"), "{line}");
        assert!(line.chars().count() < 2000, "{line}");
    }
    visit.end().await;
}

#[tokio::test]
async fn frames_of_this_and_of_other_processes_are_in_the_one_tree() {
    if !has_program("chromium") {
        return;
    }
    let pages = [
        (
            "/",
            "<title>top</title><h1>Top</h1><iframe title=near src=/near></iframe><iframe title=far src=$other/far></iframe>",
        ),
        ("/near", "<button>Near</button>"),
        ("/far", "<button>Far</button><iframe title=back src=$here/back></iframe>"),
        ("/back", "<button onclick='this.textContent=\"Pushed\"'>Back</button><input aria-label=Deep>"),
    ];
    let visit = BrowserFixture::to(&pages).await;
    visit.act(vec![super::browser_fixture::shows("Back")]).await;
    let expect = [
        "heading \"Top\" level=1",
        "iframe \"near\"",
        " button \"Near\"",
        "iframe \"far\"",
        " button \"Far\"",
        " iframe \"back\"",
        "  button \"Back\"",
        "  textbox \"Deep\"",
    ];
    assert_eq!(visit.tree().await, expect);
    // Elements in frames accept input too.
    let back = visit.find("Back").await;
    let deep = visit.find("Deep").await;
    visit.act(vec![click(&back), typed_into(&deep, "down here")]).await;
    let tree = visit.tree().await;
    assert_eq!(tree[6..], ["  button \"Pushed\"", "  textbox \"Deep\" focused value=\"down here\""]);
    // And can be read alone.
    let far = visit.find("iframe \"far\"").await;
    let mut part = look(40_000);
    part.root = Some(far.clone());
    let text = take_snapshot(&visit.page, &part).await.unwrap().text;
    assert!(text.starts_with(&format!("{far} iframe \"far\"\n e")) && text.contains("Pushed"), "{text}");
    assert!(!text.contains("Near"), "{text}");
    visit.end().await;
}

#[tokio::test]
async fn a_ref_means_its_element_as_long_as_there_is_one_and_nothing_afterwards() {
    if !has_program("chromium") {
        return;
    }
    let visit =
        BrowserFixture::to(&[("/", "<button id=a>A</button><button id=b>B</button>"), ("/next", "<button>N</button>")])
            .await;
    let (a, b) = (visit.find("\"A\"").await, visit.find("\"B\"").await);
    visit
        .value("document.body.prepend(b); document.body.prepend(document.createElement('hr')); b.textContent = 'B2'")
        .await;
    assert_eq!((visit.find("\"A\"").await, visit.find("\"B2\"").await), (a.clone(), b.clone()));

    let stale = async |name: &str, why: &str| {
        let error = visit.refused(click(name), 300).await;
        assert_eq!(error.doing, "stale ref: take a new snapshot");
        let reported = error.to_string();
        assert!(reported.contains(&format!("{name}: ")) && reported.contains(why), "{reported}");
        let mut part = look(1000);
        part.root = Some(name.to_owned());
        let error = take_snapshot(&visit.page, &part).await.unwrap_err();
        assert_eq!(error.doing, "stale ref: take a new snapshot", "{error}");
    };
    visit.value("b.remove()").await;
    stale(&b, "removed").await;
    visit.value("location.reload()").await;
    visit.becomes("document.readyState", json!("complete")).await;
    // The same text again in another document.
    let again = visit.find("\"A\"").await;
    assert_ne!(again, a);
    stale(&a, "gone").await;
    visit.value("location.href = '/next'").await;
    visit.becomes("location.pathname", json!("/next")).await;
    stale(&again, "gone").await;
    for (name, expect) in [("e99999", "there is no element e99999"), ("button", "is not a ref")] {
        let error = visit.refused(click(name), 300).await.to_string();
        assert!(error.contains(expect), "{error}");
    }
    visit.end().await;
}

#[tokio::test]
async fn a_page_of_fifty_megabytes_is_truncated_and_marked_so() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", "<title>big</title><main id=m></main>")]).await;
    let rows = "m.innerHTML = ('<div>' + 'data '.repeat(400) + '<a href=\"#x\">entry</a></div>').repeat(25000);
        await new Promise(drawn => requestAnimationFrame(() => setTimeout(drawn))); m.innerHTML.length";
    assert!(visit.value(rows).await.as_u64().unwrap() > 50_000_000);
    let begun = std::time::Instant::now();
    let snapshot = take_snapshot(&visit.page, &look(20_000)).await.unwrap();
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
    assert!(snapshot.cut && snapshot.text.len() < 21_000, "{}", snapshot.text.len());
    assert!(snapshot.text.contains("a larger `max` shows more"));
    visit.end().await;
}

#[tokio::test]
async fn other_pages_are_listed_and_can_be_addressed() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[
        ("/", "<title>first</title><a href=/second target=_blank>open</a>"),
        ("/second", "<title>second</title><h1>Two</h1>"),
    ])
    .await;
    let acted = visit.click("open").await;
    let notes = acted.steps[0].notes.join("; ");
    let mut last = String::new();
    let other = async {
        loop {
            let text = visit.snapshot().await;
            if text.contains("other pages") && text.contains("\"second\" \"http") {
                return text;
            }
            last = text;
        }
    };
    let text = tokio::time::timeout(std::time::Duration::from_secs(20), other).await;
    let text = text.unwrap_or_else(|_| panic!("{last}"));
    let late = visit.page.take_notices().join("; ");
    assert!(notes.contains("a new page was opened") || late.contains("a new page was opened"), "{notes} {late}");
    assert!(text.contains("link \"open\""), "the first page is still the window: {text}");
    let mut second = look(1000);
    second.page = Some("/second".into());
    let text = take_snapshot(&visit.page, &second).await.unwrap().text;
    assert!(text.contains("heading \"Two\""), "{text}");
    second.page = Some("no such page".into());
    let error = take_snapshot(&visit.page, &second).await.unwrap_err().to_string();
    assert!(error.contains("no such page") && error.contains("/second"), "{error}");
    visit.end().await;
}

/// `mousedown` closes the page in the middle of a click.
#[tokio::test]
async fn the_snapshot_after_input_is_of_the_same_page() {
    for event in ["click", "mousedown"] {
        snapshot_after_closing_by(event).await;
    }
}

async fn snapshot_after_closing_by(event: &str) {
    if !has_program("chromium") {
        return;
    }
    let second =
        format!("<title>second</title><input aria-label=Name><button on{event}='window.close()'>Close</button>");
    let visit = BrowserFixture::to(&[
        ("/", "<title>first</title><a href=/second target=_blank rel=opener>open</a>"),
        ("/second", &second),
    ])
    .await;
    visit.click("open").await;
    let second = || SnapshotRequest { page: Some("/second".into()), ..look(1000) };
    let part = |text: &str, words: &str| {
        let line = text.lines().find(|line| line.contains(words))?;
        Some(line.trim().split(' ').next().unwrap_or_default().to_owned())
    };
    let shown = async {
        loop {
            let text = take_snapshot(&visit.page, &second()).await.map_or(String::new(), |reported| reported.text);
            if let Some(names) = part(&text, "\"Name\"").zip(part(&text, "\"Close\"")) {
                return names;
            }
        }
    };
    let (name, close) = tokio::time::timeout(Duration::from_secs(60), shown).await.expect("no second page");
    let act = async |does: ActionKind| {
        let acted = run_actions(&visit.page, &[action(does)], None, Some(10_000), |_| {})
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        acted.snapshot.unwrap().text
    };
    let text = act(typed_into(&name, "Ada")).await;
    assert!(text.starts_with("page \"second\"") && text.contains("value=\"Ada\""), "{text}");
    // When that page is gone, the remaining one is used.
    let text = act(click(&close)).await;
    assert!(text.starts_with("page \"first\""), "{text}");
    visit.end().await;
}

/// Longer than any step takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

const FREEZES: &str = "<script>onmessage = () => { console.log('frozen'); const ask = new XMLHttpRequest();
ask.open('GET', '/gate', false); ask.send(); }</script><button>Slow</button>";

#[tokio::test]
async fn a_slow_frame_is_included_again_once_it_responds() {
    if !has_program("chromium") {
        return;
    }
    let pages = [("/", "<iframe title=far src=$other/far></iframe>"), ("/far", FREEZES)];
    let visit = BrowserFixture::to(&pages).await;
    visit.act(vec![shows("Slow")]).await;
    visit.value("frames[0].postMessage('freeze', '*')").await;
    visit.hears("frozen").await;
    // Another frame is added meanwhile: all are searched again.
    visit.value("document.body.append(document.createElement('iframe'))").await;
    assert_eq!(visit.tree().await[0], "iframe \"far\" (does not answer)");
    let waiting = async {
        let waits = [action(shows("Slow"))].map(|it| InputAction { timeout: TEST_TIMEOUT, ..it });
        run_actions(&visit.page, &waits, None, None, |_| {}).await.map(drop)
    };
    let opening = async {
        assert_eq!(visit.tree().await[0], "iframe \"far\" (does not answer)");
        visit.site.open_the_gate();
    };
    let (waited, ()) = tokio::join!(waiting, opening);
    waited.unwrap();
    assert_eq!(visit.tree().await[..2], ["iframe \"far\"", " button \"Slow\""]);
    visit.end().await;
}
