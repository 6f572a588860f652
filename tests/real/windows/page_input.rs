//! Input to real pages: every action, every obstruction, and its error.

use std::time::{Duration, Instant};

use devtether::vocabulary::MouseButton;
use devtether::window::page::{ActionKind, ActionTarget, InputAction, WaitCondition, run_actions};
use serde_json::json;
use tether_base::error::ErrorKind;

use super::browser_fixture::{BrowserFixture, action, at, click, press, shows, typed, typed_into};
use crate::support::requirements::has_program;

const BENCH: &str = r#"<!doctype html><title>Bench</title><style>#pad{height:1500px}#drop,#card{width:90px;height:40px}</style>
<button id=one onclick="log.push('click')" ondblclick="log.push('double')" oncontextmenu="log.push('right');return false">One</button>
<div id=hover tabindex=0 aria-label=Hover onmouseenter="log.push('hover')">over</div>
<input id=text aria-label=Text value="a"><textarea id=area aria-label=Area></textarea>
<select id=pick aria-label=Pick onchange="log.push('picked ' + value)"><option>x</option><option>y</option></select>
<div id=card draggable=true role=button>Card</div><div id=drop role=button aria-label=Drop ondragover="event.preventDefault()" ondrop="log.push('drop')">here</div>
<div id=pad></div><button id=far onclick="log.push('far')">Far below</button>
<script>
const log = [];
addEventListener('keydown', e => log.push('key ' + [e.ctrlKey && 'C', e.shiftKey && 'S', e.key].filter(Boolean).join('-')));
</script>"#;

#[tokio::test]
async fn every_action_has_the_effect_of_real_input() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", BENCH)]).await;
    let refs = ["One", "Hover", "Text", "Area", "Card", "Drop", "Far below"];
    let mut names = Vec::new();
    for words in refs {
        names.push(visit.find(&format!("\"{words}\"")).await);
    }
    let [one, hover, text, area, card, drop, far] = names.try_into().unwrap();
    let y = visit.find("option \"y\"").await;
    let check = async |does: ActionKind, expect: serde_json::Value| {
        visit.value("log.length = 0").await;
        let did = visit.act(vec![does.clone()]).await.steps.remove(0).did;
        assert!(did.starts_with(&does.to_string()), "{did}");
        assert_eq!(visit.value("log").await, expect, "{does}");
    };
    let with = |button, count| ActionKind::Click { at: at(&one), button, count };
    check(click(&one), json!(["click"])).await;
    check(with(MouseButton::Left, 2), json!(["click", "click", "double"])).await;
    check(with(MouseButton::Right, 1), json!(["right"])).await;
    check(ActionKind::Hover { at: at(&hover) }, json!(["hover"])).await;
    check(ActionKind::Drag { from: at(&card), to: at(&drop) }, json!(["drop"])).await;
    check(click(&y), json!(["picked y"])).await;
    check(click(&far), json!(["far"])).await;
    check(press("Control+Shift+K"), json!(["key C-Control", "key C-S-Shift", "key C-S-K"])).await;
    visit.act(vec![click(&text), press("End"), typed("bC é ü!"), typed_into(&area, "two\nlines")]).await;
    assert_eq!(visit.value("[text.value, area.value]").await, json!(["abC é ü!", "two\nlines"]));
    visit.act(vec![press("Shift+Enter"), typed("as on\r\nWindows\r\n")]).await;
    assert_eq!(visit.value("area.value").await, json!("two\nlines\nas on\nWindows\n"));
    visit.act(vec![click(&text), press("Control+A"), press("Delete"), typed(&"long ".repeat(200))]).await;
    assert_eq!(visit.value("text.value.length").await, json!(1000));
    visit.value("scrollTo(0, 0)").await;
    visit.act(vec![ActionKind::Scroll { at: None, by: Some((0.0, 300.0)) }]).await;
    visit.becomes("scrollY", json!(300)).await;
    let point = visit.value("(r => [r.x + r.width / 2, r.y + r.height / 2])(one.getBoundingClientRect())").await;
    visit.value("scrollTo(0, 0); log.length = 0").await;
    let (x, y) = (point[0].as_f64().unwrap(), point[1].as_f64().unwrap() + 300.0);
    visit.act(vec![ActionKind::Click { at: ActionTarget::Point(x, y), button: MouseButton::Left, count: 1 }]).await;
    assert_eq!(visit.value("log").await, json!(["click"]));
    visit.end().await;
}

const DRAGS: &str = r#"<!doctype html><title>Drags</title><style>div{width:90px;height:40px;margin:20px}</style>
<div id=knob role=button>Knob</div><div id=card draggable=true role=button>Card</div><div id=drop role=button>Drop</div>
<script>
let button = 'up', over = false, dragged = false, dropped = 0;
addEventListener('mousedown', () => { button = 'down'; console.log('the button is down'); });
addEventListener('mouseup', () => button = 'up');
card.ondragstart = () => dragged = true;
card.ondragend = () => dragged = false;
drop.ondragenter = e => { e.preventDefault(); over = true; console.log('it is over there'); };
drop.ondragover = e => e.preventDefault();
drop.ondragleave = () => over = false;
drop.ondrop = () => { over = false; dropped++; };
</script>"#;

#[tokio::test]
async fn a_cancelled_drag_releases_the_button() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", DRAGS)]).await;
    let (knob, card, drop) = (visit.find("Knob").await, visit.find("Card").await, visit.find("Drop").await);
    let drag = |what: &str| ActionKind::Drag { from: at(what), to: at(&drop) };
    let (moves, carries) = ([action(drag(&knob))], [action(drag(&card))]);
    visit.gives_up(run_actions(&visit.page, &moves, None, None, |_| {}), "the button is down").await;
    visit.becomes("button", json!("up")).await;
    visit.gives_up(run_actions(&visit.page, &carries, None, None, |_| {}), "it is over there").await;
    visit.becomes("[over, dragged, dropped]", json!([false, false, 0])).await;
    // The next one has the same result.
    visit.act(vec![drag(&card)]).await;
    visit.becomes("[over, dragged, dropped]", json!([false, false, 1])).await;
    visit.end().await;
}

const SLOW: &str = r#"<!doctype html><title>Slow</title>
<button id=late disabled onclick="this.textContent='Done'">Late</button>
<button id=mover style="position:absolute;left:0;top:200px" onclick="this.textContent='Caught'">Mover</button>
<button id=below style="position:absolute;left:0;top:300px;width:90px" onclick="this.textContent='Reached'">Below</button>
<div id=veil role=dialog aria-label=Veil style="position:absolute;left:0;top:290px;width:200px;height:60px;background:#ccc"></div>
<button id=ghost>Ghost</button>"#;

#[tokio::test]
async fn an_action_waits_until_its_element_is_ready() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", SLOW)]).await;
    let late = visit.find("\"Late\"").await;
    let (mover, below) = (visit.find("Mover").await, visit.find("Below").await);
    visit
        .value(
            "setTimeout(() => late.disabled = false, 150);
             setTimeout(() => veil.remove(), 300);
             setTimeout(() => document.body.append('All is there'), 500);
             // It moves once this request is answered, since a busy machine starts late.
             mover.animate([{left: '0px'}, {left: '400px'}], 400).ready.then(() => 0)",
        )
        .await;
    visit.act(vec![click(&late), click(&mover), click(&below), shows("All is there")]).await;
    let tree = visit.tree().await.join("\n");
    for words in ["Done", "Caught", "Reached"] {
        assert!(tree.contains(words), "{words}: {tree}");
    }
    let gone = ActionKind::Wait(WaitCondition::ElementGone(below));
    visit.value("setTimeout(() => below.hidden = true, 100); 0").await;
    visit.act(vec![gone]).await;
    visit.end().await;
}

#[tokio::test]
async fn an_obstructed_element_is_an_error_within_the_deadline() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", SLOW)]).await;
    let (late, below, ghost) = (visit.find("\"Late\"").await, visit.find("Below").await, visit.find("Ghost").await);
    let (mover, veil) = (visit.find("Mover").await, visit.find("Veil").await);
    // By a timer: a page that draws no frame for a while counts as hidden, and then nothing moves.
    visit.value("ghost.style.display = 'none'; setInterval(() => mover.style.left = (parseFloat(mover.style.left) + 37) % 400 + 'px', 5)").await;
    let check = async |does: ActionKind, expect: String| {
        let begun = Instant::now();
        let error = visit.refused(does, 300).await;
        assert!(error.to_string().contains(&expect), "{expect:?}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        assert!(!error.hints.is_empty());
    };
    check(click(&late), format!("{late} button \"Late\" is disabled")).await;
    check(click(&below), format!("{below} button \"Below\" is covered by {veil} dialog \"Veil\"")).await;
    check(click(&ghost), format!("{ghost} button \"Ghost\" is hidden")).await;
    check(click(&mover), format!("{mover} button \"Mover\" does not stop moving")).await;
    check(shows("nowhere"), "the page does not show \"nowhere\"".into()).await;
    check(ActionKind::Wait(WaitCondition::ElementGone(late.clone())), format!("{late} is still there")).await;
    check(press("Contrl+P"), "there is no key \"Contrl\"".into()).await;
    // The batch stops there and reports the completed actions.
    let actions = [click(&veil), typed("x"), click(&ghost), typed("never")]
        .map(|does| InputAction { timeout: Duration::from_millis(300), ..action(does) });
    let error = run_actions(&visit.page, &actions, None, None, |_| {}).await.unwrap_err().to_string();
    let expect =
        ["action 3 of 4 failed: ", "is hidden", &format!("done before: click {veil}: dialog \"Veil\"; type \"x\"")];
    for words in expect {
        assert!(error.contains(words), "{words:?}: {error}");
    }
    visit.end().await;
}

#[tokio::test]
async fn an_element_over_a_frame_obstructs_what_is_in_it() {
    if !has_program("chromium") {
        return;
    }
    let pages = [
        (
            "/",
            "<div style='height:2000px'></div><iframe title=far src=$other/far></iframe><div id=veil role=dialog aria-label=Veil style='position:fixed;inset:0'></div>",
        ),
        ("/far", "<button onclick=\"this.textContent='Pushed'\">Push</button>"),
    ];
    let visit = BrowserFixture::to(&pages).await;
    visit.act(vec![shows("Push")]).await;
    let push = visit.find("Push").await;
    let error = visit.refused(click(&push), 300).await.to_string();
    assert!(error.contains("is covered by") && error.contains("dialog \"Veil\""), "{error}");
    visit.value("veil.remove()").await;
    visit.act(vec![click(&push)]).await;
    assert!(visit.snapshot().await.contains("button \"Pushed\""));
    visit.end().await;
}

#[tokio::test]
async fn dialogs_navigations_and_downloads_are_reported_and_block_nothing() {
    if !has_program("chromium") {
        return;
    }
    let pages = [
        ("/", "<button onclick=\"alert('stop!'); confirm('sure?')\">Ask</button><a href=/next>Next</a>"),
        (
            "/next",
            "<title>Next</title><h1>There</h1><a href=/file.zip download>Fetch</a><button onclick='onbeforeunload = e => e.preventDefault(); setTimeout(() => location.href = \"/\")'>Leave</button>",
        ),
        ("/file.zip", "PK"),
    ];
    let visit = BrowserFixture::to(&pages).await;
    let notes = visit.click("Ask").await.steps.remove(0).notes;
    assert_eq!(notes, ["a dialog was dismissed: alert \"stop!\"", "a dialog was dismissed: confirm \"sure?\""]);
    assert_eq!(visit.console("dialog").len(), 2);
    let acted = run_actions(&visit.page, &[action(click(&visit.find("Next").await))], None, Some(10_000), |_| {})
        .await
        .unwrap();
    assert_eq!(acted.steps[0].notes, [format!("the page went to {}", visit.site.url("/next"))]);
    assert!(acted.snapshot.unwrap().text.contains("heading \"There\""), "the snapshot is of the new page");
    // A dialog that no action awaits is reported with the next result.
    assert!(visit.page.take_notices().is_empty());
    visit.value("prompt('who?')").await;
    assert_eq!(visit.page.take_notices(), ["a dialog was dismissed: prompt \"who?\""]);

    visit.click("Fetch").await;
    let report = visit.console_says("a download began").await;
    assert!(report.text.contains("file.zip"), "{report:?}");
    visit.click("Leave").await;
    visit.becomes("location.pathname", json!("/")).await;
    visit.end().await;
}

#[tokio::test]
async fn input_batches_of_two_agents_never_interleave() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", "<textarea aria-label=Area></textarea>")]).await;
    let area = visit.find("Area").await;
    let batch = |letter: &str| -> Vec<InputAction> {
        std::iter::once(typed_into(&area, letter)).chain((0..9).map(|_| typed(letter))).map(action).collect()
    };
    let (ones, twos) = (batch("1"), batch("2"));
    let act = |actions| run_actions(&visit.page, actions, None, None, |_| {});
    let (a, b, c, d) = tokio::join!(act(&ones), act(&twos), act(&ones), act(&twos));
    for outcome in [a, b, c, d] {
        assert_eq!(outcome.unwrap().steps.len(), 10);
    }
    let text = visit.value("document.querySelector('textarea').value").await;
    let text = text.as_str().unwrap();
    assert_eq!(text.len(), 40);
    for part in text.as_bytes().chunks(10) {
        assert!(part.iter().all(|letter| *letter == part[0]), "{text}");
    }
    visit.end().await;
}

#[tokio::test]
async fn a_wait_ends_at_its_timeout_and_not_before() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", "x")]).await;
    let begun = Instant::now();
    let wait = InputAction { kind: ActionKind::Wait(WaitCondition::TimeElapsed), timeout: Duration::from_millis(300) };
    run_actions(&visit.page, &[wait], None, None, |_| {}).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    let error = visit.refused(shows("later"), 100).await;
    assert_eq!(error.kind, ErrorKind::TimedOut);
    visit.end().await;
}

#[tokio::test]
async fn a_wait_for_a_text_is_not_ended_by_the_element_that_it_was_typed_into() {
    if !has_program("chromium") {
        return;
    }
    let page = "<input aria-label=Name><div contenteditable aria-label=Note></div><p id=echo></p><script>
        const field = document.querySelector('input');
        field.onkeydown = (event) => { if (event.key === 'Enter') echo.textContent = `Hello ${field.value}`; };
        </script>";
    let visit = BrowserFixture::to(&[("/", page)]).await;
    for name in ["Name", "Note"] {
        let typing = action(typed_into(&visit.find(name).await, "agent one"));
        run_actions(&visit.page, &[typing], None, None, |_| {}).await.unwrap();
        assert_eq!(visit.refused(shows("agent one"), 300).await.kind, ErrorKind::TimedOut, "{name}");
    }
    // What the page makes of it counts, and so does what it writes into the same element.
    let change = action(ActionKind::Press { at: Some(visit.find("Name").await), keys: "Enter".into(), count: 1 });
    run_actions(
        &visit.page,
        &[change, action(shows("Hello agent one")), action(shows("agent one"))],
        None,
        None,
        |_| {},
    )
    .await
    .unwrap();
    visit.value("document.querySelector('input').value = 'filled in'").await;
    run_actions(&visit.page, &[action(shows("filled in"))], None, None, |_| {}).await.unwrap();
    visit.end().await;
}

#[tokio::test]
async fn a_connection_token_is_not_in_the_address_that_an_action_reports() {
    if !has_program("chromium") {
        return;
    }
    let pages = [("/", "<a href='/next?tkn=s3cret'>Next</a>"), ("/next?tkn=s3cret", "<h1>There</h1>")];
    let visit = BrowserFixture::to(&pages).await;
    let next = visit.find("Next").await;
    let acted = run_actions(&visit.page, &[action(click(&next))], None, Some(10_000), |_| {}).await.unwrap();
    assert_eq!(acted.steps[0].notes, [format!("the page went to {}", visit.site.url("/next?tkn=…"))]);
    let snapshot = acted.snapshot.unwrap().text;
    assert!(snapshot.contains("heading \"There\"") && snapshot.contains("/next?tkn=…"), "{snapshot}");
    visit.end().await;
}
