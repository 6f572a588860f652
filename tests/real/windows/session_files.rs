//! Hostile session files: none makes us signal or connect to a process that is not ours.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use devtether::window::identity::{IdentityError, verify_window, verify_without_connecting};
use devtether::window::session_file::{self, VERSION, WindowSession};
use devtether::workspace::workspace_dir::DEVTOOLS_FOLDER;
use tether_process::{read_boot_id, read_environment_value, read_facts};

use super::is_gone;

fn folder() -> tempfile::TempDir {
    let workspace = tempfile::tempdir().unwrap();
    std::fs::create_dir(workspace.path().join(DEVTOOLS_FOLDER)).unwrap();
    workspace
}

/// A session record that is valid but for what a test changes; its process is the test itself.
fn session() -> WindowSession {
    let me = read_facts(std::process::id()).unwrap();
    WindowSession {
        version: VERSION,
        cdp_port: 9222,
        electron_pid: 4711,
        inspector_port: None,
        host_bridge_path: "/run/user/1000/devtether/x.sock".into(),
        user_data_dir: None,
        debug_window_started_at: 1,
        persisted_at: 2,
        launch_id: "0123456789abcdef".into(),
        boot_id: read_boot_id().unwrap(),
        pid_start_ticks: me.start_ticks,
        browser_id: "161d8ae9-9745-4f5c-a16a-eae1e4a430c3".into(),
        extensions: Vec::new(),
    }
}

#[test]
fn files_of_a_wrong_shape_are_refused_and_set_aside() {
    let with = |field: &str, value: serde_json::Value| {
        let mut json = serde_json::to_value(session()).unwrap();
        json[field] = value;
        json.to_string()
    };
    let whole = serde_json::to_string(&session()).unwrap();
    let check = |content: &[u8], expect: &str| {
        let workspace = folder();
        let path = session_file::session_path(workspace.path());
        std::fs::write(&path, content).unwrap();
        let refusal = session_file::load_session(workspace.path()).unwrap_err().to_string();
        assert!(refusal.contains(expect), "{expect:?} is not in {refusal:?}");
        let line = session_file::set_aside(workspace.path(), &refusal).unwrap();
        assert!(line.contains("session.json.stale") && line.contains(expect), "{line}");
        assert!(!path.exists() && path.with_extension("json.stale").exists());
        assert_eq!(session_file::load_session(workspace.path()).unwrap(), None);
    };
    check(b"", "not a session file");
    check(&whole.as_bytes()[..whole.len() / 2], "not a session file");
    check(&[whole.as_bytes(), b"{}"].concat(), "not a session file");
    check(b"\x00\xff\xfe", "not a session file");
    check(b"[]", "`version` is missing");
    check(b"{}", "`version` is missing");
    check(&[b"[".repeat(60_000)].concat(), "not a session file");
    check(&b" ".repeat(70_000), "has 70000 bytes");
    check(with("version", 2.into()).as_bytes(), "newer schema 2");
    check(with("version", u64::MAX.into()).as_bytes(), "newer schema");
    check(with("version", "1".into()).as_bytes(), "`version` is missing or wrong");
    check(with("version", 0.into()).as_bytes(), "`version` is missing or wrong");
    check(with("electronPid", "4711".into()).as_bytes(), "invalid type");
    for pid in [serde_json::json!(-1), serde_json::json!(1.5), serde_json::json!(1_u64 << 40)] {
        check(with("electronPid", pid).as_bytes(), "not a session file");
    }
    for pid in [0_u32, 1, u32::MAX] {
        check(with("electronPid", pid.into()).as_bytes(), "`electronPid` has an impossible value");
    }
    check(with("cdpPort", 0.into()).as_bytes(), "`cdpPort`");
    check(with("cdpPort", 70_000.into()).as_bytes(), "not a session file");
    check(with("launchId", "../../etc".into()).as_bytes(), "`launchId`");
    check(with("launchId", "".into()).as_bytes(), "`launchId`");
    check(with("hostBridgePath", "relative".into()).as_bytes(), "`hostBridgePath`");
    check(with("userDataDir", "../..".into()).as_bytes(), "`userDataDir`");
}

#[test]
fn only_a_regular_file_of_our_own_in_a_folder_of_our_own_is_read() {
    let good = serde_json::to_string(&session()).unwrap();
    let check = |make: &dyn Fn(&Path), expect: &str| {
        let workspace = tempfile::tempdir().unwrap();
        make(workspace.path());
        let refusal = session_file::load_session(workspace.path()).unwrap_err().to_string();
        assert!(refusal.contains(expect), "{expect:?} is not in {refusal:?}");
        session_file::set_aside(workspace.path(), &refusal).unwrap();
    };
    let file = |workspace: &Path| {
        std::fs::create_dir_all(workspace.join(DEVTOOLS_FOLDER)).unwrap();
        session_file::session_path(workspace)
    };
    check(&|at| symlink("/etc/passwd", file(at)).unwrap(), "not a regular file");
    check(&|at| symlink("session.json", file(at)).unwrap(), "not a regular file");
    check(&|at| std::fs::create_dir(file(at)).unwrap(), "not a regular file");
    check(&|at| assert!(Command::new("mkfifo").arg(file(at)).status().unwrap().success()), "not a regular file");
    check(&|at| std::fs::write(at.join(DEVTOOLS_FOLDER), &good).unwrap(), "a link or a file");
    check(&|at| symlink("/tmp", at.join(DEVTOOLS_FOLDER)).unwrap(), "a link or a file");
    // The rest needs another user's file, which only root can create.
    if rustix::process::geteuid().is_root() {
        let chown = |path: &Path| std::os::unix::fs::chown(path, Some(65534), None).unwrap();
        check(
            &|at| {
                std::fs::write(file(at), &good).unwrap();
                chown(&file(at))
            },
            "another user (65534)",
        );
        check(
            &|at| {
                std::fs::write(file(at), &good).unwrap();
                chown(&at.join(DEVTOOLS_FOLDER))
            },
            "belongs to user 65534",
        );
    }
}

#[test]
fn saving_is_private_atomic_and_ignored_by_git() {
    let workspace = tempfile::tempdir().unwrap();
    let session = session();
    session_file::save_session(workspace.path(), &session).unwrap();
    let path = session_file::session_path(workspace.path());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(std::fs::read_to_string(path.with_file_name(".gitignore")).unwrap(), "*\n");
    // A partial temporary file of a killed supervisor is replaced, and a link in its place is not followed.
    let bait = workspace.path().join("bait");
    std::fs::write(&bait, "untouched").unwrap();
    symlink(&bait, path.with_file_name("session.json.new")).unwrap();
    let other = WindowSession { cdp_port: 1234, ..session.clone() };
    session_file::save_session(workspace.path(), &other).unwrap();
    assert_eq!(session_file::load_session(workspace.path()).unwrap().unwrap(), other);
    assert_eq!(std::fs::read_to_string(&bait).unwrap(), "untouched");
    let names = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(names, 2, "something was left beside session.json and .gitignore");
    session_file::remove_session(workspace.path()).unwrap();
    session_file::remove_session(workspace.path()).unwrap();
    assert_eq!(session_file::load_session(workspace.path()).unwrap(), None);
}

#[test]
fn a_folder_that_is_not_ours_is_not_written_to() {
    let workspace = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), workspace.path().join(DEVTOOLS_FOLDER)).unwrap();
    let error = session_file::save_session(workspace.path(), &session()).unwrap_err().to_string();
    assert!(error.contains(".devtools") && error.contains("hint:"), "{error}");
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_full_disk_keeps_the_old_file_and_is_an_error() {
    // A small tmpfs stands in for the full disk; only root can mount one.
    let workspace = tempfile::tempdir().unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"]).arg(workspace.path()).stderr(Stdio::null());
    let mounted = mount.status();
    if !mounted.is_ok_and(|status| status.success()) {
        return crate::support::requirements::report_missing("`mount -t tmpfs` fails");
    }
    let old = session();
    session_file::save_session(workspace.path(), &old).unwrap();
    while std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(workspace.path().join("fill"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, &[0; 512]))
        .is_ok()
    {}
    let new = WindowSession { cdp_port: 1234, ..old.clone() };
    let error = session_file::save_session(workspace.path(), &new).unwrap_err().to_string();
    assert!(error.contains("session.json") && error.contains("No space left"), "{error}");
    assert_eq!(session_file::load_session(workspace.path()).unwrap().unwrap(), old);
    assert!(Command::new("umount").arg(workspace.path()).status().unwrap().success());
}

/// A process that a hostile file names. It must run until drop, which kills it.
struct Victim(Child);

impl Victim {
    fn with_launch_id(launch_id: Option<&str>) -> Victim {
        let mut command = Command::new("sleep");
        command.arg("60").envs(launch_id.map(|id| (tether_process::LAUNCH_ID, id)));
        Victim::of(command)
    }

    /// Starts it, and waits until its environment can be read: during exec it cannot.
    fn of(mut command: Command) -> Victim {
        let victim = Victim(command.spawn().unwrap());
        let started = std::time::Instant::now();
        while read_environment_value(victim.0.id(), "PATH").unwrap().is_none() {
            assert!(started.elapsed().as_secs() < 5, "the victim has no environment");
        }
        victim
    }

    fn session(&self) -> WindowSession {
        let pid = self.0.id();
        WindowSession { electron_pid: pid, pid_start_ticks: read_facts(pid).unwrap().start_ticks, ..session() }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let alive = !is_gone(self.0.id());
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        assert!(alive || std::thread::panicking(), "the victim was harmed");
    }
}

#[tokio::test]
async fn no_other_process_is_taken_for_the_window() {
    let ours = session().launch_id;
    let victim = Victim::with_launch_id(None);
    let marked = Victim::with_launch_id(Some(&ours));
    // A listener on a victim's port, to notice connections.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    port.set_nonblocking(true).unwrap();
    let cdp_port = port.local_addr().unwrap().port();
    let check = async |session: WindowSession, expect: &str| {
        let session = WindowSession { cdp_port, ..session };
        let doubt = verify_window(&session).await.unwrap_err();
        assert!(doubt.to_string().contains(expect), "{expect:?} is not in {doubt}");
        assert!(verify_without_connecting(&session).is_err());
    };
    check(WindowSession { electron_pid: std::process::id(), ..session() }, "can never be a window").await;
    check(WindowSession { electron_pid: 0, ..session() }, "can never be a window").await;
    check(WindowSession { electron_pid: 1, ..session() }, "can never be a window").await;
    check(WindowSession { electron_pid: i32::MAX as u32, ..session() }, "has ended").await;
    check(WindowSession { boot_id: "another boot".into(), ..victim.session() }, "before this machine was started")
        .await;
    check(victim.session(), "does not carry the launch id").await;
    check(WindowSession { launch_id: "another-launch".into(), ..marked.session() }, "does not carry the launch id")
        .await;
    let reused = marked.session().pid_start_ticks + 1;
    check(WindowSession { pid_start_ticks: reused, ..marked.session() }, "was reused").await;
    // Everything is valid but the port, which is a victim's.
    let doubt = format!("but by process {}", std::process::id());
    check(marked.session(), &doubt).await;
    assert!(port.accept().is_err_and(|cause| cause.kind() == std::io::ErrorKind::WouldBlock), "somebody connected");
}

#[tokio::test]
async fn a_process_of_another_user_is_never_ours() {
    if !crate::support::requirements::is_root() {
        return;
    }
    use std::os::unix::process::CommandExt;
    let id = session().launch_id;
    let mut command = Command::new("sleep");
    command.arg("60").env(tether_process::LAUNCH_ID, id).uid(65534);
    let victim = Victim::of(command);
    let doubt = verify_window(&victim.session()).await.unwrap_err();
    assert!(matches!(doubt, IdentityError::OtherUser { uid: 65534, .. }), "{doubt}");
    assert!(tether_process::find_launch_processes(&session().launch_id).unwrap().is_empty());
}

#[tokio::test]
async fn an_unresponsive_window_is_not_taken_for_a_foreign_one() {
    // It listens and never responds, like a frozen window.
    let script =
        "const s = require('net').createServer(() => {}).listen(0, '127.0.0.1', () => console.log(s.address().port))";
    if !crate::support::requirements::has_program("node") {
        return;
    }
    let id = "silent-window-1";
    let mut child = Command::new("node")
        .args(["-e", script])
        .env(tether_process::LAUNCH_ID, id)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
    let victim = Victim(child);
    let session = WindowSession { cdp_port: line.trim().parse().unwrap(), launch_id: id.into(), ..victim.session() };
    let doubt = verify_window(&session).await.unwrap_err();
    assert!(matches!(doubt, IdentityError::Unresponsive { .. }), "{doubt}");
}
