//! Cookies and storage over MCP, and Playwright's storage state.

use serde_json::{Value, json};

use super::page_fixture::PageFixture;
use crate::support::TEST_TIMEOUT;
use crate::support::requirements::{has_program, installed_tool};

const SITE: &[(&str, &str)] = &[("/", "<!doctype html><link rel=icon href=\"data:,\"><title>Store</title>")];

fn entries(report: &Value) -> Vec<[String; 2]> {
    let all = report["entries"].as_array().cloned().unwrap_or_default();
    all.iter().map(|it| ["name", "value"].map(|field| it[field].as_str().unwrap().to_owned())).collect()
}

fn pairs<const N: usize>(expect: [[&str; 2]; N]) -> Vec<[String; 2]> {
    expect.map(|it| it.map(str::to_owned)).into()
}

#[tokio::test]
async fn cookies_and_storage_are_read_set_and_cleared() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(SITE).await;
    let storage = async |arguments: Value| page.call("window_storage", arguments).await;
    page.value("fetch('/login').then(it => it.text())").await;
    storage(json!({"do": "set", "name": "theme", "value": "dark", "cookie": {"sameSite": "Strict", "path": "/"}}))
        .await;
    let cookies = storage(json!({})).await;
    let mut listed = entries(&cookies);
    listed.sort();
    assert_eq!(listed, pairs([["session", "s3cret"], ["theme", "dark"]]));
    assert!(cookies.to_string().contains("httpOnly") && cookies.to_string().contains("sameSite=Strict"), "{cookies}");
    assert_eq!(page.value("document.cookie").await, "theme=dark");
    storage(json!({"do": "clear", "name": "theme"})).await;
    assert_eq!(entries(&storage(json!({})).await), pairs([["session", "s3cret"]]));
    for area in ["local", "session"] {
        storage(json!({"do": "set", "area": area, "name": "a", "value": "\"1\"\n"})).await;
        page.value(&format!("{area}Storage.setItem('b', '2')")).await;
        assert_eq!(entries(&storage(json!({"area": area})).await), pairs([["a", "\"1\"\n"], ["b", "2"]]), "{area}");
        assert_eq!(entries(&storage(json!({"area": area, "name": "b"})).await), pairs([["b", "2"]]), "{area}");
        storage(json!({"do": "clear", "area": area, "name": "a"})).await;
        assert_eq!(page.value(&format!("JSON.stringify({area}Storage)")).await, r#"{"b":"2"}"#, "{area}");
    }
    // An origin that no page shows.
    let other = page.site.other_url("");
    storage(json!({"do": "set", "area": "local", "name": "far", "value": "away", "origin": other})).await;
    assert_eq!(entries(&storage(json!({"area": "local", "origin": other})).await), pairs([["far", "away"]]));
    assert_eq!(page.call("window_page", json!({})).await["tabs"].as_array().unwrap().len(), 1);
    let database = "new Promise(done => indexedDB.open('db').onsuccess = () => done(1))";
    page.value(database).await;
    storage(json!({"do": "clear", "area": "all"})).await;
    let left = "(async () => [localStorage.length, sessionStorage.length, document.cookie, (await indexedDB.databases()).length])()";
    assert_eq!(page.value(left).await, json!([0, 0, "", 0]));
    for wrong in [
        json!({"do": "set", "name": "a"}),
        json!({"do": "load"}),
        json!({"area": "all"}),
        json!({"origin": "about:blank"}),
    ] {
        page.refused("window_storage", wrong).await;
    }
    page.end().await;
}

/// Reads a storage state, adds to it, and writes one.
const PLAYWRIGHT: &str = r#"
const { chromium } = require(process.argv[2]);
(async () => {
    const browser = await chromium.launch({ executablePath: process.argv[3], args: ['--no-sandbox'] });
    const context = await browser.newContext({ storageState: process.argv[4] });
    const page = await context.newPage();
    await page.goto(process.argv[5]);
    console.log(JSON.stringify([await page.evaluate(() => localStorage.who), (await context.cookies()).map(it => it.name + '=' + it.value)]));
    await page.evaluate(() => { localStorage.back = 'again'; document.cookie = 'added=yes; max-age=1000'; });
    await context.storageState({ path: process.argv[6] });
    await browser.close();
})().catch((error) => { console.error(error); process.exit(1); });
"#;

#[tokio::test]
async fn a_login_is_handed_to_playwright_and_back_and_over_a_relaunch() {
    let Some(playwright) =
        installed_tool("playwright/node_modules/@playwright/test").filter(|_| has_program("chromium"))
    else {
        return;
    };
    let page = PageFixture::open(SITE).await;
    page.value("fetch('/login').then(() => localStorage.who = 'Ann')").await;
    let saved = page.call("window_storage", json!({"do": "save", "file": "login.json"})).await;
    assert_eq!(saved["file"], ".devtools/files/login.json", "{saved}");
    let script = page.sandbox.home().join("state.js");
    std::fs::write(&script, PLAYWRIGHT).unwrap();
    let chromium = std::process::Command::new("sh").args(["-c", "command -v chromium"]).output().unwrap();
    let chromium = String::from_utf8(chromium.stdout).unwrap();
    let (state, back) = (page.sandbox.path(".devtools/files/login.json"), page.sandbox.path("back.json"));
    let ran = tokio::process::Command::new("node")
        .arg(&script)
        .args([
            playwright.as_os_str(),
            chromium.trim().as_ref(),
            state.as_os_str(),
            page.site.url("/").as_ref(),
            back.as_os_str(),
        ])
        .kill_on_drop(true)
        .output();
    let ran = tokio::time::timeout(TEST_TIMEOUT, ran).await.unwrap().unwrap();
    let output = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert_eq!(output.trim(), r#"["Ann",["session=s3cret"]]"#);
    page.call("window_restart", json!({})).await;
    page.arrive().await;
    assert_eq!(page.value("[document.cookie, localStorage.length]").await, json!(["", 0]));
    page.call("window_storage", json!({"do": "load", "file": "back.json"})).await;
    assert_eq!(
        page.value("[document.cookie, localStorage.who, localStorage.back]").await,
        json!(["added=yes", "Ann", "again"])
    );
    let echoed = page.value("fetch('/echo').then(it => it.json()).then(it => it.head)").await;
    assert!(echoed.as_str().unwrap().contains("session=s3cret"), "{echoed}");
    page.sandbox.write("wrong.json", "{\"cookies\": 1}");
    for (file, expect) in
        [("wrong.json", "is no storage state"), ("../x", "is not a file of the workspace"), ("none", "cannot read")]
    {
        let refused = page.refused("window_storage", json!({"do": "load", "file": file})).await;
        assert!(refused.contains(expect), "{file}: {refused}");
    }
    page.end().await;
}
