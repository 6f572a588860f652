//! Windows that cannot be launched: each is an error with subject, cause and next step, and leaves no process.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use devtether::config::{WindowKind, WindowSettings};
use devtether::window::cleanup;
use devtether::window::launch::launch_window;
use tether_base::error::ErrorKind;

use super::{WindowFolder, settings};
use crate::support::requirements::{has_code_server, has_program};

fn command(words: &[&str]) -> WindowSettings {
    WindowSettings { command: words.iter().map(ToString::to_string).collect(), ..settings() }
}

async fn check(kind: WindowKind, what: WindowSettings, expect: ErrorKind, parts: &[&str]) {
    let error = WindowFolder::fresh().refused(kind, what).await;
    assert_eq!(error.kind, expect, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} is not in:\n{error}");
    }
}

#[tokio::test]
async fn a_missing_program_is_named_with_the_setting_to_change() {
    let missing = |name: &str| Some(PathBuf::from(name));
    let browser = WindowSettings { browser: missing("no-browser"), ..settings() };
    check(WindowKind::Browser, browser, ErrorKind::MissingTool, &["no-browser", "no such program", "`browser`"]).await;
    let node = WindowSettings { node: missing("no-node"), program: missing("x.js"), ..settings() };
    check(WindowKind::Node, node, ErrorKind::MissingTool, &["no-node", "`node`"]).await;
    let command = command(&["no-such-program", "${cdpPort}"]);
    check(WindowKind::Command, command, ErrorKind::MissingTool, &["`no-such-program ", "no such program"]).await;
    let desktop = WindowSettings { vscode: missing("no/code"), ..settings() };
    check(WindowKind::ExtensionHost, desktop, ErrorKind::MissingTool, &["desktop VS Code", "`vscode`"]).await;
    let server = WindowSettings { node: missing("/bin/true"), code_server: missing("nowhere"), ..settings() };
    check(WindowKind::WebExtensionHost, server, ErrorKind::MissingTool, &["code-server", "`codeServer`"]).await;
}

#[tokio::test]
async fn settings_that_name_no_window_are_refused_before_anything_starts() {
    check(WindowKind::Node, settings(), ErrorKind::Usage, &["no script for node", "program = "]).await;
    let program = Some(PathBuf::from("missing.js"));
    check(
        WindowKind::Node,
        WindowSettings { program, ..settings() },
        ErrorKind::Usage,
        &["missing.js", "no such file"],
    )
    .await;
    let url = Some("--load-extension=/tmp".to_owned());
    check(WindowKind::Browser, WindowSettings { url, ..settings() }, ErrorKind::Usage, &["has no scheme", "url = "])
        .await;
    let args = vec!["--user-data-dir=/tmp/x".to_owned()];
    check(
        WindowKind::Browser,
        WindowSettings { args, ..settings() },
        ErrorKind::Usage,
        &["--user-data-dir", "`profile = "],
    )
    .await;
    check(WindowKind::Command, settings(), ErrorKind::Usage, &["no command to launch"]).await;
    check(WindowKind::Command, command(&["sleep", "60"]), ErrorKind::Usage, &["has no ${cdpPort}"]).await;
    if has_code_server() {
        check(WindowKind::WebExtensionHost, settings(), ErrorKind::Usage, &["no package.json", "extension = "]).await;
    }
}

#[tokio::test]
async fn a_program_that_exits_early_is_an_error_with_its_last_output() {
    let words = ["sh", "-c", "echo first ${cdpPort}; echo last words >&2; exit 3"];
    check(WindowKind::Command, command(&words), ErrorKind::Other, &["ended before", "code 3", "last words", "hint:"])
        .await;
    check(WindowKind::Command, command(&["true", "${cdpPort}"]), ErrorKind::Other, &["code 0", "without any output"])
        .await;
    if has_program("node") {
        let place = WindowFolder::fresh();
        place.file("broken.js", "throw new Error('broken at once')");
        let program = Some(PathBuf::from("broken.js"));
        // Whether it exits before or after it counts as ready is a race; both results are correct.
        match place.launch(WindowKind::Node, WindowSettings { program, ..settings() }).await {
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("code 1") && error.contains("broken at once"), "{error}");
            }
            Ok(launched) => {
                assert_eq!(launched.process.wait_for_exit().await, tether_process::ProcessExit::Code(1));
                let reported = tether_process::read_tail(&launched.output, 20).unwrap();
                assert!(reported.contains("broken at once"), "{reported}");
                place.stop(&launched, None).await;
            }
        }
        place.nothing_left().await;
    }
    // A browser that cannot start.
    let place = WindowFolder::fresh();
    let fake = place.file("browser", "#!/bin/sh\necho no display >&2\nexit 5\n");
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = place.refused(WindowKind::Browser, WindowSettings { browser: Some(fake), ..settings() }).await;
    assert!(error.to_string().contains("code 5; its last output:\n    | no display"), "{error}");
}

#[tokio::test]
async fn a_port_that_another_program_took_is_never_connected_to() {
    let place = WindowFolder::fresh();
    let words = ["sh", "-c", "echo ${cdpPort} > port.new; mv port.new port; sleep 60"];
    let plan = place.plan(WindowKind::Command, command(&words));
    let stranger = async {
        let file = place.workspace.join("port");
        let port =
            tether_process::watch_until(&place.workspace, || Ok(std::fs::read_to_string(&file).ok())).await.unwrap();
        tokio::net::TcpListener::bind(format!("127.0.0.1:{}", port.trim())).await.unwrap()
    };
    let launching = async {
        let error = launch_window(&plan, |_| {}).await.unwrap_err();
        place.nothing_left().await;
        error
    };
    tokio::pin!(launching);
    let listener = tokio::select! {
        listener = stranger => listener,
        error = &mut launching => panic!("{error}"),
    };
    let accepting = async { listener.accept().await.map(|_| "somebody connected to the stranger") };
    let error = tokio::select! {
        error = &mut launching => error,
        accepted = accepting => panic!("{accepted:?}"),
    };
    let text = error.to_string();
    assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
    assert!(text.contains("cannot trust the debugging port"), "{text}");
}

#[tokio::test]
async fn a_stale_port_file_and_a_stale_lock_do_no_harm() {
    if !has_program("chromium") {
        return;
    }
    let place = WindowFolder::fresh();
    let profile = place.state.join("kept profile");
    std::fs::create_dir_all(&profile).unwrap();
    std::fs::write(profile.join("DevToolsActivePort"), "1\n/devtools/browser/161d8ae9-9745-4f5c-a16a-eae1e4a430c3")
        .unwrap();
    let host = rustix::system::uname().nodename().to_str().unwrap().to_owned();
    std::os::unix::fs::symlink(format!("{host}-{}", i32::MAX), profile.join("SingletonLock")).unwrap();
    let kept = WindowSettings { profile: Some(profile.clone()), ..settings() };
    let launched = place.launch(WindowKind::Browser, kept.clone()).await.unwrap();
    assert_ne!(launched.cdp_port, 1);

    // The profile is in use now: a second launch must neither hand over to it nor disturb it.
    let second = WindowFolder::fresh();
    let error = second.refused(WindowKind::Browser, kept).await.to_string();
    assert!(error.contains(&format!("process {}", launched.process.pid())), "{error}");
    assert!(error.contains("remove `profile`"), "{error}");
    assert!(launched.process.is_alive());
    place.stop(&launched, None).await;
    assert!(profile.is_dir(), "a profile that is to be kept was removed");
}

#[tokio::test]
async fn a_dropped_launch_kills_what_it_had_started() {
    let place = WindowFolder::fresh();
    let words = ["sh", "-c", "setsid sleep 60 & echo ${cdpPort} > up.new; mv up.new up; exec sleep 60"];
    let plan = place.plan(WindowKind::Command, command(&words));
    let up = place.workspace.join("up");
    let started = tether_process::watch_until(&place.workspace, || Ok(up.exists().then_some(())));
    let started = async { tokio::time::timeout(Duration::from_secs(10), started).await };
    tokio::select! {
        launched = launch_window(&plan, |_| {}) => panic!("{launched:?}"),
        started = started => started.unwrap().unwrap(),
    }
    // The drop sends the signal; this only waits for their exit.
    for left in tether_process::find_launch_processes(&place.launch_id).unwrap() {
        tokio::time::timeout(Duration::from_secs(5), left.wait_for_exit()).await.unwrap();
    }
    place.nothing_left().await;
}

#[tokio::test]
async fn a_program_that_never_opens_its_port_is_stopped_at_the_deadline() {
    let timeout = Some(Duration::from_millis(300));
    let words = ["sh", "-c", "trap '' TERM; echo waiting for ${cdpPort}; while :; do sleep 60; done"];
    let deaf = WindowSettings { timeout, ..command(&words) };
    check(WindowKind::Command, deaf, ErrorKind::TimedOut, &["within 300ms", "waiting for", "was stopped"]).await;
    let place = WindowFolder::fresh();
    let fake = place.file("browser", "#!/bin/sh\necho thinking\nexec sleep 60\n");
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = place.refused(WindowKind::Browser, WindowSettings { browser: Some(fake), timeout, ..settings() }).await;
    assert!(error.to_string().contains("the browser has not opened its debugging port within 300ms"), "{error}");
}

#[tokio::test]
async fn processes_of_a_launch_whose_supervisor_was_killed_are_cleaned_up() {
    let place = WindowFolder::fresh();
    let words = ["sh", "-c", "setsid sleep 60 & echo ${cdpPort} > up.new; mv up.new up; exec sleep 60"];
    let plan = place.plan(WindowKind::Command, command(&words));
    let up = place.workspace.join("up");
    let started = tether_process::watch_until(&place.workspace, || Ok(up.exists().then_some(())));
    let mut launching = Box::pin(launch_window(&plan, |_| {}));
    tokio::select! {
        launched = &mut launching => panic!("{launched:?}"),
        started = started => started.unwrap(),
    }
    // As after SIGKILL: no code of ours runs, not even a destructor.
    std::mem::forget(launching);
    assert!(tether_process::find_launch_processes(&place.launch_id).unwrap().len() >= 2);
    cleanup::clean_up_abandoned(&place.state, Some(&place.launch_id)).await.unwrap();
    assert!(
        tether_process::find_launch_processes(&place.launch_id).unwrap().len() >= 2,
        "the living window was harmed"
    );
    cleanup::clean_up_abandoned(&place.state, None).await.unwrap();
    place.nothing_left().await;
}
