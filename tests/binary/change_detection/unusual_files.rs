//! Unusual files and failing watches: each check reports whether it used the watch or a scan.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tether_base::error::ErrorKind;
use tether_changes::{ChangeCriterion, ChangeTracker, CheckMethod, FileSnapshot};

use crate::change_detection::workspace_fixture::{Vouched, Workspace, baseline, shown, warm, warm_again};

/// Two trackers of one workspace: one that watches, and one that cannot write its fence file and must scan.
struct Both {
    warm: ChangeTracker,
    cold: ChangeTracker,
    vouched: Vouched,
}

impl Both {
    async fn of(workspace: &Workspace) -> Both {
        let warm = workspace.watched(ChangeCriterion::Metadata).await;
        let cold = walking(workspace, ChangeCriterion::Metadata);
        baseline(&cold).await;
        Both { warm, cold, vouched: Vouched::default() }
    }

    async fn check(&self, expect: &[&str]) {
        let (warm, cold) = (self.vouched.check(&self.warm).await, self.cold.compare_with_baseline().await.unwrap());
        assert_eq!(shown(&warm), expect);
        assert_eq!(shown(&cold), expect);
        // It retries setting watches, and a check may come meanwhile.
        let reasons = ["no fence file", "still being set"];
        let says_why = |because: &str| reasons.iter().any(|reason| because.contains(reason));
        assert!(matches!(&cold.method, CheckMethod::Cold { because } if says_why(because)), "{:?}", cold.method);
    }

    async fn baseline(&self) {
        baseline(&self.warm).await;
        baseline(&self.cold).await;
    }
}

fn walking(workspace: &Workspace, confirm: ChangeCriterion) -> ChangeTracker {
    let (root, cookie_dir) = (workspace.root.clone(), workspace.cookies.path().join("missing"));
    ChangeTracker::start(tether_changes::TrackerOptions {
        root,
        cookie_dir,
        criterion: confirm,
        derived: Default::default(),
    })
}

fn set_modified(path: &Path, time: SystemTime) {
    File::options().append(true).open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

#[tokio::test]
async fn every_kind_of_edit_counts_and_other_events_do_not() {
    let workspace = Workspace::with_folders(3);
    let (a, b) = ("p0/m0/f0/s0.ts", "p0/m0/f0/s1.ts");
    let both = Both::of(&workspace).await;
    both.check(&[]).await;
    fs::set_permissions(workspace.path(a), fs::Permissions::from_mode(0o755)).unwrap();
    fs::read(workspace.path(a)).unwrap();
    workspace.write("p0/m0/f0/noise.log", "ignored");
    workspace.write("node_modules/new/index.js", "ignored");
    fs::create_dir(workspace.path("empty")).unwrap();
    both.check(&[]).await;
    set_modified(&workspace.path(a), SystemTime::UNIX_EPOCH + Duration::from_secs(86_400));
    both.check(&[&format!("M {a}")]).await;
    fs::rename(workspace.path(b), workspace.path("renamed.ts")).unwrap();
    both.check(&[&format!("M {a}"), &format!("R {b}"), "A renamed.ts"]).await;
    fs::remove_file(workspace.path("renamed.ts")).unwrap();
    fs::remove_file(workspace.path(a)).unwrap();
    both.check(&[&format!("R {a}"), &format!("R {b}")]).await;
}

#[tokio::test]
async fn a_write_whose_mtime_was_put_back_counts() {
    let workspace = Workspace::with_folders(1);
    let (name, other) = ("p0/m0/f0/s0.ts", "p0/m0/f0/s1.ts");
    let before = SystemTime::now() - Duration::from_secs(3600);
    set_modified(&workspace.path(name), before);
    let tracker = workspace.watched(ChangeCriterion::Metadata).await;
    workspace.tick();
    let length = fs::read(workspace.path(name)).unwrap().len();
    // In place: the file keeps its inode.
    fs::write(workspace.path(name), "y".repeat(length)).unwrap();
    set_modified(&workspace.path(name), before);
    fs::set_permissions(workspace.path(other), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(shown(&tracker.compare_with_baseline().await.unwrap()), [format!("M {name}")]);
    baseline(&tracker).await;
    assert_eq!(shown(&tracker.compare_with_baseline().await.unwrap()), [""; 0]);
}

#[tokio::test]
async fn a_future_mtime_counts_once() {
    let workspace = Workspace::with_folders(1);
    let both = Both::of(&workspace).await;
    let far = SystemTime::now() + Duration::from_secs(86_400 * 3650);
    set_modified(&workspace.path("p0/m0/f0/s0.ts"), far);
    both.check(&["M p0/m0/f0/s0.ts"]).await;
    both.baseline().await;
    both.check(&[]).await;
}

#[tokio::test]
async fn links_count_as_themselves_and_nothing_is_followed_or_opened() {
    let workspace = Workspace::with_folders(1);
    symlink("..", workspace.path("p0/loop")).unwrap();
    symlink("itself", workspace.path("itself")).unwrap();
    symlink(workspace.cookies.path(), workspace.path("outside")).unwrap();
    fs::write(workspace.cookies.path().join("inside-outside.ts"), "x").unwrap();
    assert!(Command::new("mkfifo").arg(workspace.path("pipe")).status().unwrap().success());
    let _socket = UnixListener::bind(workspace.path("socket")).unwrap();
    let both = Both::of(&workspace).await;
    assert_eq!(both.warm.take_snapshot().await.unwrap().file_count(), 10 + 3 + 1);
    fs::remove_file(workspace.path("itself")).unwrap();
    symlink("elsewhere", workspace.path("itself")).unwrap();
    fs::write(workspace.cookies.path().join("inside-outside.ts"), "more").unwrap();
    assert!(Command::new("mkfifo").arg(workspace.path("p0/pipe")).status().unwrap().success());
    both.check(&["M itself"]).await;
    fs::remove_file(workspace.path("p0/m0/f0/s0.ts")).unwrap();
    assert!(Command::new("mkfifo").arg(workspace.path("p0/m0/f0/s0.ts")).status().unwrap().success());
    both.check(&["M itself", "R p0/m0/f0/s0.ts"]).await;
}

#[tokio::test]
async fn a_folder_and_a_file_may_replace_each_other() {
    let workspace = Workspace::with_folders(1);
    workspace.write("x/a", "1");
    workspace.write("y", "1");
    let both = Both::of(&workspace).await;
    fs::remove_dir_all(workspace.path("x")).unwrap();
    workspace.write("x", "a file now");
    fs::remove_file(workspace.path("y")).unwrap();
    workspace.write("y/b", "a folder now");
    both.check(&["A x", "R x/a", "R y", "A y/b"]).await;
    fs::remove_file(workspace.path("x")).unwrap();
    symlink("p0", workspace.path("x")).unwrap();
    both.check(&["A x", "R x/a", "R y", "A y/b"]).await;
}

#[tokio::test]
async fn a_name_that_is_not_utf_8_is_a_name_like_any_other() {
    let workspace = Workspace::with_folders(1);
    let odd = workspace.root.join(OsStr::from_bytes(b"odd-\xff\xfe\n.ts"));
    fs::write(&odd, "1").unwrap();
    let tracker = workspace.watched(ChangeCriterion::Metadata).await;
    let file = workspace.cookies.path().join("snapshot");
    tracker.take_snapshot().await.unwrap().save(&file).unwrap();
    fs::write(&odd, "22").unwrap();
    let check = tracker.compare_with_baseline().await.unwrap();
    assert_eq!(check.changed[0].path.as_os_str().as_bytes(), b"odd-\xff\xfe\n.ts");
    let loaded = FileSnapshot::load(&file, &workspace.root).unwrap().unwrap();
    tracker.set_baseline(Arc::new(loaded)).await;
    assert_eq!(tracker.compare_with_baseline().await.unwrap().total, 1);
}

#[tokio::test]
async fn a_new_supervisor_sees_changes_made_while_none_was_running() {
    let workspace = Workspace::with_folders(20);
    let file = workspace.cookies.path().join("snapshot");
    let first = workspace.watched(ChangeCriterion::Metadata).await;
    first.take_snapshot().await.unwrap().save(&file).unwrap();
    drop(first);
    fs::remove_file(workspace.path("p0/m0/f0/s0.ts")).unwrap();
    workspace.write("p0/m1/f19/s9.ts", "edited meanwhile");
    let second = workspace.start(ChangeCriterion::Metadata);
    second.set_baseline(Arc::new(FileSnapshot::load(&file, &workspace.root).unwrap().unwrap())).await;
    assert_eq!(shown(&second.compare_with_baseline().await.unwrap()), ["R p0/m0/f0/s0.ts", "M p0/m1/f19/s9.ts"]);
}

#[tokio::test]
async fn new_rules_hold_at_once_and_an_ignored_file_is_not_a_removed_one() {
    let workspace = Workspace::with_folders(2);
    workspace.write("gen/out.ts", "1");
    workspace.write("dist/app.js", "1");
    let both = Both::of(&workspace).await;
    workspace.tick();
    workspace.write("gen/out.ts", "22");
    both.check(&["M gen/out.ts"]).await;
    workspace.write(".devtoolsignore", "*.log\ngen/\n!dist\n");
    both.check(&["M .devtoolsignore"]).await;
    workspace.write("gen/out.ts", "333");
    workspace.write("dist/app.js", "22");
    both.check(&["M .devtoolsignore", "A dist/app.js"]).await;
    workspace.write(".devtoolsignore", "[a-\n");
    both.check(&["M .devtoolsignore", "M gen/out.ts"]).await;
    for tracker in [&both.warm, &both.cold] {
        let problems: Vec<_> = tracker.problems().iter().map(ToString::to_string).collect();
        assert!(problems[0].contains(".devtoolsignore:1: the pattern `[a-` never matches"), "{problems:?}");
    }
}

#[tokio::test]
async fn contents_decide_when_confirm_is_content() {
    let workspace = Workspace::with_folders(2);
    symlink("a", workspace.path("link")).unwrap();
    let (watching, walking) =
        (workspace.watched(ChangeCriterion::Content).await, walking(&workspace, ChangeCriterion::Content));
    baseline(&walking).await;
    let check = async |expect: &[&str]| {
        for tracker in [&watching, &walking] {
            assert_eq!(shown(&tracker.compare_with_baseline().await.unwrap()), expect);
        }
    };
    let file = workspace.path("p0/m0/f0/s0.ts");
    let before = fs::read(&file).unwrap();
    fs::write(&file, "let x = 2;\n").unwrap();
    check(&["M p0/m0/f0/s0.ts"]).await;
    // As after `git checkout` there and back: a new file with the same content.
    fs::remove_file(&file).unwrap();
    fs::write(&file, &before).unwrap();
    fs::remove_file(workspace.path("link")).unwrap();
    symlink("a", workspace.path("link")).unwrap();
    check(&[]).await;
    fs::remove_file(workspace.path("link")).unwrap();
    symlink("b", workspace.path("link")).unwrap();
    check(&["M link"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_concurrent_check_after_a_write_includes_it() {
    let workspace = Arc::new(Workspace::with_folders(10));
    let tracker = workspace.watched(ChangeCriterion::Metadata).await;
    let checks = (0..200).map(|number| {
        let (workspace, tracker) = (Arc::clone(&workspace), tracker.clone());
        tokio::spawn(async move {
            let name = format!("new{number}.ts");
            workspace.write(&name, "x");
            let check = tracker.compare_with_baseline().await.unwrap();
            assert!(check.changed.iter().any(|change| change.path == Path::new(&name)), "{name} was missed");
        })
    });
    for check in checks.collect::<Vec<_>>() {
        check.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folders_swapped_during_a_scan_are_correct_once_they_are_stable() {
    let workspace = Arc::new(Workspace::with_folders(40));
    let both = Both::of(&workspace).await;
    let mover = Arc::clone(&workspace);
    let moving = tokio::task::spawn_blocking(move || {
        for round in 0..300 {
            let (one, other) = (format!("p0/m{}", round % 4), format!("p0/x{}", round % 3));
            let _ = fs::rename(mover.path(&one), mover.path(&other));
            let _ = fs::rename(mover.path(&format!("p0/x{}", (round + 1) % 3)), mover.path(&one));
            mover.write(&format!("{one}/f{}/deep/t{round}.ts", round % 40), "x");
            if round % 7 == 0 {
                let _ = fs::remove_dir_all(mover.path(&one));
            }
        }
    });
    while !moving.is_finished() {
        both.vouched.check(&both.warm).await;
        both.cold.compare_with_baseline().await.unwrap();
    }
    moving.await.unwrap();
    let cold = both.cold.compare_with_baseline().await.unwrap();
    let warm = both.vouched.check(&both.warm).await;
    assert_eq!(shown(&warm), shown(&cold));
    // Every remaining folder is still watched.
    let mut left = vec![workspace.path("p0")];
    while let Some(folder) = left.pop() {
        fs::write(folder.join("probe.ts"), "x").unwrap();
        left.extend(fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).filter(|path| path.is_dir()));
    }
    let (warm, cold) =
        (both.warm.compare_with_baseline().await.unwrap(), both.cold.compare_with_baseline().await.unwrap());
    assert_eq!(shown(&warm), shown(&cold));
}

#[tokio::test]
async fn an_unreliable_watch_is_replaced_and_meanwhile_checks_scan() {
    let workspace = Workspace::with_folders(5);
    let tracker = workspace.watched(ChangeCriterion::Metadata).await;
    // A cleaner of temporary files removes the fence file's folder.
    for entry in fs::read_dir(workspace.cookies.path()).unwrap() {
        fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    workspace.write("p0/m0/f0/s0.ts", "edited");
    let check = tracker.compare_with_baseline().await.unwrap();
    assert!(
        matches!(&check.method, CheckMethod::Cold { because } if because.contains("no fence file")),
        "{:?}",
        check.method
    );
    assert_eq!(shown(&check), ["M p0/m0/f0/s0.ts"]);
    assert!(tracker.problems()[0].what.contains("no fence file"));
    warm_again(&tracker).await;
    assert!(tracker.problems().is_empty());
    assert_eq!(shown(&tracker.compare_with_baseline().await.unwrap()), ["M p0/m0/f0/s0.ts"]);
}

#[tokio::test]
async fn a_missing_workspace_is_an_error_and_its_return_is_noticed() {
    let workspace = Workspace::with_folders(1);
    let tracker = workspace.watched(ChangeCriterion::Metadata).await;
    fs::rename(&workspace.root, workspace.cookies.path().join("away")).unwrap();
    let error = tracker.compare_with_baseline().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(error.to_string().contains(&format!("the workspace folder {} is gone", workspace.root.display())));
    fs::rename(workspace.cookies.path().join("away"), &workspace.root).unwrap();
    assert!(!tracker.compare_with_baseline().await.unwrap().stale);
}

#[tokio::test]
async fn without_a_baseline_there_is_nothing_to_compare_with() {
    let workspace = Workspace::with_folders(1);
    let error = workspace.start(ChangeCriterion::Metadata).compare_with_baseline().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(error.to_string().contains("hint: `tether start`"), "{error}");
}

#[tokio::test]
async fn a_path_is_explained_by_the_rule_and_the_line_that_decided() {
    let workspace = Workspace::with_folders(1);
    symlink("p0", workspace.path("link")).unwrap();
    let tracker = workspace.watched(ChangeCriterion::Metadata).await;
    workspace.write("p0/m0/f0/s0.ts", "edited");
    let check = async |path: &str, expect: &str| {
        let reported = tracker.explain_path(Path::new(path)).await.unwrap();
        let rule = reported.decision.rule.map(|rule| {
            let place = rule.file.map(|file| format!("{}:", file.file_name().unwrap().display()));
            format!(" by {} at {}{}", rule.pattern, place.unwrap_or("built in ".into()), rule.line.unwrap_or(0))
        });
        let tracked = if reported.decision.tracked { "tracked" } else { "not tracked" };
        let change = reported.change.map(|change| format!(", {:?}", change.kind)).unwrap_or_default();
        let note = reported.note.map(|note| format!(", {note}")).unwrap_or_default();
        assert_eq!(format!("{tracked}{}{change}{note}", rule.unwrap_or_default()), expect, "{path}");
    };
    check("p0/m0/f0/s0.ts", "tracked, Modified").await;
    check(workspace.path("p0/m0/../m0/f0/s1.ts").to_str().unwrap(), "tracked").await;
    check("a/b.log", "not tracked by *.log at .devtoolsignore:1").await;
    check("node_modules/lib/index.js", "not tracked by node_modules at built in 0").await;
    check("nothing.ts", "tracked, there is no such file now").await;
    check("link/m0/f0/s0.ts", "not tracked, it is behind a symlink, which is not followed").await;
    assert_eq!(tracker.explain_path(Path::new("../x")).await.unwrap_err().kind, ErrorKind::Usage);
}

/// Runs the second half of a test in a separate process; without the variable that half returns at once.
fn in_a_child(test: &str, mut command: Command) {
    let output = command.env("TETHER_CHILD", "1").output().unwrap();
    let reported = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && reported.contains("1 passed"), "{test}: {reported}");
}

fn arguments(test: &str) -> [String; 3] {
    ["--exact", &format!("change_detection::unusual_files::{test}"), "--nocapture"].map(str::to_owned)
}

#[test]
fn when_inotify_watches_run_out_checks_scan_and_the_sysctl_is_named() {
    let possible = Command::new("unshare").args(["--user", "--map-root-user", "true"]).status();
    if !possible.is_ok_and(|status| status.success()) {
        return crate::support::requirements::report_missing("`unshare --user` fails: no user namespaces");
    }
    // A user namespace has its own limits, which its owner may lower.
    for (limit, value) in [("max_inotify_watches", "20"), ("max_inotify_instances", "0")] {
        let lower = format!("echo {value} > /proc/sys/user/{limit} && exec \"$0\" \"$@\"");
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", &lower]).arg(std::env::current_exe().unwrap());
        command.args(arguments("child_without_watches")).env("TETHER_LIMIT", limit);
        in_a_child("child_without_watches", command);
    }
}

#[tokio::test]
async fn child_without_watches() {
    // The second half of the test above, in a user namespace with few watches.
    let Ok(limit) = std::env::var("TETHER_LIMIT") else { return };
    let (reason, hint) = match limit.as_str() {
        "max_inotify_watches" => ("no inotify watches left", "sudo sysctl fs.inotify.max_user_watches=524288"),
        _ => ("no inotify instances left", "sudo sysctl fs.inotify.max_user_instances=512"),
    };
    let workspace = Workspace::with_folders(100);
    let tracker = workspace.start(ChangeCriterion::Metadata);
    warm(&tracker).await;
    baseline(&tracker).await;
    workspace.write("p0/m9/f99/s0.ts", "edited");
    let check = tracker.compare_with_baseline().await.unwrap();
    assert_eq!(shown(&check), ["M p0/m9/f99/s0.ts"]);
    assert!(matches!(&check.method, CheckMethod::Cold { because } if because.contains(reason)), "{:?}", check.method);
    assert_eq!(tracker.problems()[0].hint.as_deref(), Some(hint));
}

#[test]
fn an_unreadable_folder_is_reported_and_the_rest_is_still_scanned() {
    if !rustix::process::geteuid().is_root() {
        return without_rights();
    }
    // Root reads everything, so a process of another user runs the check, in a workspace that it cannot write to.
    let workspace = Workspace::reachable(3);
    fs::set_permissions(&workspace.root, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(workspace.path("p0/m0/f1"), fs::Permissions::from_mode(0o000)).unwrap();
    let executable = workspace.cookies.path().join("test");
    crate::support::copy_program(&std::env::current_exe().unwrap(), &executable);
    let own = workspace.cookies.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::set_permissions(workspace.cookies.path(), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&own, Some(65_534), Some(65_534)).unwrap();
    let mut command = Command::new(executable);
    command.args(arguments("child_without_rights")).uid(65_534).gid(65_534).current_dir("/");
    command.env("TETHER_ROOT", &workspace.root).env("TETHER_COOKIES", own);
    in_a_child("child_without_rights", command);
}

#[test]
fn child_without_rights() {
    if std::env::var_os("TETHER_CHILD").is_some() {
        without_rights(); // the half of the test above that runs as a user without rights
    }
}

fn without_rights() {
    let own = Workspace::reachable(3);
    let given = |name: &str| std::env::var_os(name).map(std::path::PathBuf::from);
    let root = given("TETHER_ROOT").unwrap_or_else(|| {
        fs::set_permissions(own.path("p0/m0/f1"), fs::Permissions::from_mode(0o000)).unwrap();
        own.root.clone()
    });
    let cookie_dir = given("TETHER_COOKIES").unwrap_or(own.cookies.path().to_path_buf());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        for (cookie_dir, warmly) in [(cookie_dir.clone(), true), (cookie_dir.join("missing"), false)] {
            let confirm = ChangeCriterion::Metadata;
            let tracker = ChangeTracker::start(tether_changes::TrackerOptions {
                root: root.clone(),
                cookie_dir,
                criterion: confirm,
                derived: Default::default(),
            });
            warm(&tracker).await;
            let snapshot = tracker.take_snapshot().await.unwrap();
            assert_eq!(snapshot.file_count(), 20 + 1);
            tracker.set_baseline(snapshot).await;
            let check = match warmly {
                true => Vouched::default().check(&tracker).await,
                false => tracker.compare_with_baseline().await.unwrap(),
            };
            assert!(!check.stale && (warmly || check.method != CheckMethod::Warm), "{check:?}");
            let problems: Vec<_> = tracker.problems().iter().map(ToString::to_string).collect();
            let reported = format!("{}: the folder cannot be read", root.join("p0/m0/f1").display());
            assert!(problems.iter().any(|problem| problem.starts_with(&reported)), "{problems:?}");
        }
    });
    let _ = fs::set_permissions(own.path("p0/m0/f1"), fs::Permissions::from_mode(0o755));
}
