//! Edits of every kind, each followed at once by a check: none is missed, and none is reported that was not made.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tether_changes::ChangeCriterion;

use crate::change_detection::random::SeededRandom;
use crate::change_detection::workspace_fixture::{Files, Vouched, Workspace, baseline, difference, forget, shown};

/// Makes one random edit; returns the paths that it touched.
fn edit(workspace: &Workspace, dice: &mut SeededRandom, number: usize) -> Vec<String> {
    let (file, other) = (some_file(dice), some_file(dice));
    let folder = |file: &str| file.rsplit_once('/').unwrap().0.to_owned();
    let path = |rel: &str| workspace.path(rel);
    let scratch = workspace.cookies.path().join("scratch");
    let aged = |path: &Path, days: u64| {
        let then = SystemTime::now() - Duration::from_secs(days * 86_400);
        File::options().append(true).open(path).unwrap().set_times(FileTimes::new().set_modified(then)).unwrap();
    };
    let fresh = format!("{}/new{number}", folder(&file));
    match dice.below(16) {
        0 => append(&path(&file)),
        1 => workspace.write(&file, &format!("let x = {};\n", number % 10)),
        2 | 3 => {
            fs::write(&scratch, format!("saved {number}")).unwrap();
            fs::create_dir_all(path(&folder(&file))).unwrap();
            fs::rename(&scratch, path(&file)).unwrap();
        }
        4 => {
            fs::write(&scratch, "an older file").unwrap();
            aged(&scratch, 400);
            fs::create_dir_all(path(&folder(&file))).unwrap();
            fs::rename(&scratch, path(&file)).unwrap();
        }
        5 if path(&file).exists() => aged(&path(&file), number as u64 + 1),
        5 | 6 => drop(fs::remove_file(path(&file))),
        7 => {
            drop(fs::rename(path(&file), path(&other)));
            return vec![file, other];
        }
        8 => {
            workspace.write(&format!("{fresh}/deep/er/file.ts"), "x");
            return vec![fresh];
        }
        9 => {
            let moved = format!("p0/moved{number}");
            fs::create_dir_all(path("p0")).unwrap();
            drop(fs::rename(path(&folder(&file)), path(&moved)));
            return vec![folder(&file), moved];
        }
        10 if dice.below(4) == 0 => {
            drop(fs::remove_dir_all(path(&folder(&file))));
            return vec![folder(&file)];
        }
        10 => {
            drop(fs::remove_file(path(&file)));
            fs::create_dir_all(path(&folder(&file))).unwrap();
            std::os::unix::fs::symlink("s1.ts", path(&file)).unwrap();
        }
        11 => workspace.write(&format!("{}/noise{number}.log", folder(&file)), "not tracked"),
        12 => workspace.write(&format!("node_modules/lib/{number}.js"), "not tracked"),
        13 if path(&file).is_file() => {
            let _ = fs::set_permissions(path(&file), fs::Permissions::from_mode(0o600 + (number as u32 % 2) * 0o44));
        }
        13 | 14 => {
            // A whole folder, moved out of an ignored one.
            fs::create_dir_all(path(&format!("node_modules/ready{number}/inner"))).unwrap();
            fs::write(path(&format!("node_modules/ready{number}/inner/f.ts")), "x").unwrap();
            let target = format!("p1/ready{number}");
            fs::create_dir_all(path("p1")).unwrap();
            fs::rename(path(&format!("node_modules/ready{number}")), path(&target)).unwrap();
            return vec![target];
        }
        _ => {
            // A folder that is replaced by another one of the same name.
            let (there, away) = (folder(&file), format!("node_modules/away{number}"));
            drop(fs::rename(path(&there), path(&away)));
            workspace.write(&format!("{there}/s1.ts"), "of the second folder");
            return vec![there];
        }
    }
    vec![file]
}

fn some_file(dice: &mut SeededRandom) -> String {
    let folder = dice.below(1000);
    format!("p{}/m{}/f{folder}/s{}.ts", folder / 100, folder / 10, dice.below(10))
}

fn append(path: &Path) {
    use std::io::Write;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Whatever is there, also a dangling link.
    if let Ok(mut file) = File::options().append(true).create(true).open(path) {
        file.write_all(b"// more\n").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_random_edits_are_each_seen_at_once_and_ten_thousand_checks_see_no_others() {
    let mut dice = SeededRandom::new("edits");
    let workspace = Workspace::with_folders(1000);
    let tracker = workspace.watched(ChangeCriterion::Metadata).await;
    let mut now = Files::new();
    workspace.look(Path::new(""), &mut now);
    let mut then = now.clone();
    let (mut seen, vouched) = (0, Vouched::default());
    for number in 0..1000 {
        let mut touched = edit(&workspace, &mut dice, number);
        let check = vouched.check(&tracker).await;
        // A link's target is written through the link.
        touched.extend(touched.clone().iter().map(|path| format!("{}/s1.ts", path.rsplit_once('/').unwrap().0)));
        for rel in &touched {
            forget(&mut now, rel);
            workspace.look(Path::new(rel), &mut now);
        }
        let expect = difference(&then, &now);
        seen += usize::from(!expect.is_empty());
        assert_eq!(shown(&check), expect, "after edit {number} of {touched:?}");
        if number % 100 == 99 {
            baseline(&tracker).await;
            then = now.clone();
        }
    }
    assert!(seen > 900);
    let mut everything = Files::new();
    workspace.look(Path::new(""), &mut everything);
    assert_eq!(difference(&everything, &now), [""; 0], "the test's own books are right");
    for number in 0..10_000 {
        let check = vouched.check(&tracker).await;
        assert!(!check.stale, "question {number}: {check:?}");
    }
}
