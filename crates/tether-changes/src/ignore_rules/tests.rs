//! Which rule decides, and what is wrong with an ignore file.

use super::*;
use std::fs;

#[test]
fn patterns_beyond_the_limit_are_reported_and_not_used() {
    let text = "*a*b*c*\n".repeat(MAX_WILDCARDS) + "*late\n";
    let (rules, problems) = rules(&text);
    assert!(
        rules.decide_tracking(Path::new("late"), false).tracked
            && !rules.decide_tracking(Path::new("xabc"), false).tracked
    );
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!(problem.line, Some(MAX_WILDCARDS + 1));
    assert!(problem.what.contains("20000 with a wildcard"), "{problem}");
}

fn rules(text: &str) -> (IgnoreRules, Vec<WorkspaceProblem>) {
    IgnoreRules::parse(&Arc::default(), Path::new("/ws/.devtoolsignore"), text.as_bytes())
}

/// `path` ends in a slash if it is a folder; `expect` is the line that ignores it, `+` and the line that
/// re-includes it, `built in`, or empty.
fn check(text: &str, path: &str, expect: &str) {
    let decision = rules(text).0.decide_tracking(Path::new(path), path.ends_with('/'));
    let seen = match (&decision.rule, decision.tracked) {
        (None, true) => String::new(),
        (Some(IgnoreRule { line: None, file: None, .. }), false) => "built in".to_owned(),
        (Some(IgnoreRule { line: Some(line), .. }), tracked) => format!("{}{line}", if tracked { "+" } else { "" }),
        odd => panic!("{odd:?}"),
    };
    assert_eq!(seen, expect, "{path} under {text:?}");
}

#[test]
fn built_in_rules_apply_until_a_later_rule_overrides_them() {
    check("", "src/main.ts", "");
    check("", "node_modules/a/index.js", "built in");
    check("", "packages/a/dist/", "built in");
    check("", "out.vsix", "built in");
    check("", "packages/a/tsconfig.tsbuildinfo", "built in");
    check("", "packages/a/.turbo/turbo-build.log", "built in");
    check("", "src/__pycache__/a.cpython-311.pyc", "built in");
    check("!dist", "dist/app.js", "+1");
    check("!*.vsix\nold.vsix", "old.vsix", "2");
}

#[test]
fn derived_rules_have_their_origin_and_those_of_the_file_override_them() {
    let rule = |pattern: &str| DerivedRule { pattern: pattern.into(), file: "/ws/tsconfig.json".into(), line: Some(5) };
    let derived: Arc<[DerivedRule]> = Arc::from([rule("/out/"), rule("!dist")]);
    let check = |text: &str, path: &str, tracked: bool, expect: Option<(&str, usize)>| {
        let (rules, _) = IgnoreRules::parse(&derived, Path::new("/ws/.devtoolsignore"), text.as_bytes());
        let decision = rules.decide_tracking(Path::new(path), path.ends_with('/'));
        let origin = decision.rule.and_then(|rule| Some((rule.file?, rule.line?)));
        assert_eq!((decision.tracked, origin), (tracked, expect.map(|(file, line)| (file.into(), line))), "{path}");
    };
    check("", "out/a.js", false, Some(("/ws/tsconfig.json", 5)));
    check("", "dist/a.js", true, Some(("/ws/tsconfig.json", 5)));
    check("", "node_modules/a.js", false, None);
    check("\n!/out/", "out/a.js", true, Some(("/ws/.devtoolsignore", 2)));
    let digest = |derived| IgnoreRules::parse(derived, Path::new("x"), b"").0.digest();
    assert_ne!(digest(&derived), digest(&Arc::default()));
}

#[test]
fn everything_below_an_ignored_folder_stays_ignored() {
    check("build/\n!build/keep.txt", "build/keep.txt", "1");
    check("build/*\n!build/keep.txt", "build/keep.txt", "+2");
    check("build/", "build", "");
}

#[test]
fn byte_order_mark_line_ends_comments_and_spaces_are_read_as_git_does() {
    check("\u{feff}*.log", "a.log", "1");
    check("*.log\r\n*.tmp\r\n", "a.tmp", "2");
    check("# a comment\n\\#a", "#a", "2");
    check("a \nb\\ ", "a", "1");
    check("a \nb\\ ", "b ", "2");
    check("\n\n!\n*.log", "a.log", "4");
    check("{a,b}", "a", "");
    check("{a,b}", "{a,b}", "1");
}

#[test]
fn an_invalid_line_is_reported_and_the_others_apply() {
    let (rules, problems) = rules("*.log\n[z-\na\\\n*.tmp");
    let messages: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].starts_with("/ws/.devtoolsignore:2: the pattern `[z-` never matches"), "{messages:?}");
    assert!(messages[1].starts_with("/ws/.devtoolsignore:3: "), "{messages:?}");
    assert!(!rules.decide_tracking(Path::new("x.log"), false).tracked);
    assert!(!rules.decide_tracking(Path::new("x.tmp"), false).tracked);
    assert!(rules.decide_tracking(Path::new("z"), false).tracked);
}

#[test]
fn a_megabyte_of_rules_is_applied() {
    let mut text = String::new();
    let mut lines = 0;
    while text.len() < 1 << 20 {
        lines += 1;
        // Mostly names, as in any file of this size; matching names is cheap.
        text += &match lines % 32 {
            1 => format!("/folder{lines}/**/x\n"),
            2 => format!("a*b{lines}?c\n"),
            3 => format!("*.ext{lines}\n"),
            _ => format!("name{lines}\n"),
        };
    }
    check(&text, "deep/name4", "4");
    check(&text, "folder1/a/b/x", "1");
    check(&text, "axb65538yc", "65538");
    check(&text, "a.ext65539", "65539");
    check(&text, "src/main.ts", "");
}

#[test]
fn a_line_that_is_too_long_is_reported_and_the_others_apply() {
    let (rules, problems) = rules(&format!("{}\n*.log", "?*".repeat(1 << 19)));
    assert!(!rules.decide_tracking(Path::new("x.log"), false).tracked);
    assert_eq!(problems.len(), 1, "a line too large to compile is reported");
    assert_eq!(problems[0].line, Some(1));
}

#[test]
fn an_ignore_file_that_is_not_a_regular_file_is_reported_and_the_built_in_rules_apply() {
    let root = tempfile::tempdir().unwrap();
    assert!(IgnoreRules::load(root.path(), &Arc::default()).1.is_empty(), "no file is no problem");
    fs::create_dir(root.path().join(IGNORE_FILE)).unwrap();
    let (rules, problems) = IgnoreRules::load(root.path(), &Arc::default());
    assert!(problems[0].to_string().contains("not a regular file"), "{}", problems[0]);
    assert!(!rules.decide_tracking(Path::new("node_modules"), true).tracked);
}
