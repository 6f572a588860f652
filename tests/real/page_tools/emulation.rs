//! Emulation and pictures over MCP: what a real page sees of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::ContentBlock;
use serde_json::{Value, json};

use super::page_fixture::PageFixture;
use crate::support::requirements::has_program;

const PAGE: &str = r#"<!doctype html><link rel=icon href="data:,"><meta name=viewport content="width=device-width"><title>Page</title>
<style>body{margin:0}#box{width:200px;height:100px;background:red}#tall{height:9000px}</style>
<div id=box role=img aria-label=Box></div><div id=tall></div>"#;
const SEEN: &str = "({width: innerWidth, height: innerHeight, scale: devicePixelRatio, touch: navigator.maxTouchPoints > 0,
    agent: navigator.userAgent.includes('iPhone'), dark: matchMedia('(prefers-color-scheme: dark)').matches,
    calm: matchMedia('(prefers-reduced-motion: reduce)').matches, print: matchMedia('print').matches,
    language: navigator.language, number: (1234.5).toLocaleString(), zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    online: navigator.onLine})";

#[tokio::test]
async fn what_is_emulated_is_seen_stays_over_relaunches_and_ends_by_one_call() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(&[("/", PAGE)]).await;
    // A window has another height once it has a second tab.
    let without_height = |mut seen: Value| {
        seen["height"] = Value::Null;
        seen
    };
    let before = without_height(page.value(SEEN).await);
    let emulate = async |arguments: Value| page.call("window_emulate", arguments).await;
    emulate(
        json!({"device": "iphone 15", "colorScheme": "dark", "reducedMotion": true, "media": "print", "locale": "de-DE",
        "timeZone": "Asia/Tokyo", "geolocation": "52.5,13.4", "cpu": 4}),
    )
    .await;
    let expect = json!({"width": 393, "height": 852, "scale": 3, "touch": true, "agent": true, "dark": true, "calm": true,
        "print": true, "language": "de-DE", "number": "1.234,5", "zone": "Asia/Tokyo", "online": true});
    assert_eq!(page.value(SEEN).await, expect);
    let status = page.call("window_status", json!({})).await["notes"].to_string();
    assert!(status.contains("pages emulate iPhone 15 (393×852 ×3), mobile, touch, dark"), "{status}");
    // A value that the browser does not know changes nothing.
    let refused = page.refused("window_emulate", json!({"timeZone": "Nowhere/Land", "colorScheme": "light"})).await;
    assert!(refused.contains("cannot emulate this"), "{refused}");
    assert_eq!(page.value(SEEN).await, expect);
    page.call("window_restart", json!({})).await;
    page.arrive().await;
    assert_eq!(page.value(SEEN).await, expect);
    page.call("window_page", json!({"do": "new", "url": page.site.url("/")})).await;
    page.call("window_page", json!({"do": "reload"})).await;
    assert_eq!(page.value(SEEN).await, expect);
    let ended = emulate(json!({"reset": true})).await;
    assert_eq!(ended["emulation"], json!({}));
    page.call("window_page", json!({"do": "reload"})).await;
    assert_eq!(without_height(page.value(SEEN).await), before);
    page.end().await;
}

#[tokio::test]
async fn a_page_is_offline_or_somewhere_else() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(&[("/", PAGE)]).await;
    page.call("window_emulate", json!({"network": "offline"})).await;
    let fetched = "fetch('/').then(it => it.status, error => String(error))";
    assert!(page.value(fetched).await.as_str().unwrap().contains("Failed to fetch"));
    assert_eq!(page.value("navigator.onLine").await, false);
    page.call("window_emulate", json!({"network": "none", "geolocation": "52.5,13.4"})).await;
    assert_eq!(page.value(fetched).await, 200);
    let place = "new Promise((done, failed) => navigator.geolocation.getCurrentPosition(it => done([it.coords.latitude, it.coords.longitude]), it => failed(it.message)))";
    assert_eq!(page.value(place).await, json!([52.5, 13.4]));
    page.call("window_emulate", json!({"network": "slow3g", "viewport": "500x400x2"})).await;
    let slow =
        "(async () => { const at = performance.now(); await fetch('/?' + at); return performance.now() - at })()";
    assert!(page.value(slow).await.as_f64().unwrap() >= 1500.0);
    assert_eq!(page.value("[innerWidth, innerHeight, devicePixelRatio]").await, json!([500, 400, 2]));
    page.end().await;
}

/// Width and height of the picture of a call.
async fn picture_size(page: &PageFixture, arguments: Value) -> (usize, [u32; 2], String) {
    let result = page.agent.ask("window_screenshot", arguments).await;
    let text = crate::support::mcp_client::text(&result);
    assert_ne!(result.is_error, Some(true), "{text}");
    let image = result.content.iter().find_map(ContentBlock::as_image).expect("a picture");
    let bytes = STANDARD.decode(&image.data).unwrap();
    let side = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let size = if bytes.starts_with(b"\x89PNG") { [side(16), side(20)] } else { [0, 0] };
    (bytes.len(), size, text)
}

#[tokio::test]
async fn a_picture_has_the_part_and_the_size_that_are_asked_for() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(&[("/", PAGE)]).await;
    page.call("window_emulate", json!({"viewport": "800x600"})).await;
    let size = async |arguments: Value| picture_size(&page, arguments).await.1;
    let element = page.find("img \"Box\"").await;
    assert_eq!(size(json!({})).await, [800, 600]);
    assert_eq!(size(json!({"scale": 0.5})).await, [400, 300]);
    assert_eq!(size(json!({"clip": "10,10,100,50", "scale": 2})).await, [200, 100]);
    assert_eq!(size(json!({"clip": "700,500,300,300"})).await, [100, 100]);
    assert_eq!(size(json!({"ref": element})).await, [200, 100]);
    // A tall page costs no more than 1,500 tokens, and it is said.
    let (_, [width, height], text) = picture_size(&page, json!({"fullPage": true})).await;
    assert!(width * height <= 1500 * 750 + 4000 && height > 3000, "{width}×{height}");
    assert!(text.contains("are shown at"), "{text}");
    let (large, ..) = picture_size(&page, json!({"format": "jpeg", "quality": 90})).await;
    let (small, ..) = picture_size(&page, json!({"format": "jpeg", "quality": 5})).await;
    assert!(small < large, "{small} {large}");
    for wrong in [
        json!({"clip": "1,2"}),
        json!({"clip": "0,0,10,10", "ref": element}),
        json!({"scale": 100}),
        json!({"quality": 0}),
    ] {
        page.refused("window_screenshot", wrong).await;
    }
    page.end().await;
}
