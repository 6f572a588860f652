//! Which files are tracked, and the rule and line that decided.
//!
//! Owns the rules: the built-in ones, then those that others have derived, then `.devtoolsignore` at the root of the workspace, with `.gitignore`'s syntax
//! and git's semantics. Matching is globset's; `pattern` translates. Must not know snapshots, watchers or walks.
//!
//! Measured against `git check-ignore` (`tests/binary/change_detection/git_agreement.rs`), what still differs from git, each on purpose:
//! - A pattern in bytes that are not UTF-8 is reported and passed over; git compares the bytes.
//! - A bracket expression with characters beyond ASCII stands for whole characters where git compares single bytes:
//!   `[!é]` takes one byte in both, but after a range that ends beyond ASCII a further `-` is literal here.
//! - Only the one file at the root counts: no nested files, no `core.excludesFile`, no `core.ignoreCase`.
//! - The file is not followed when it is a symlink (git does the same for `.gitignore` since 2.32), and patterns that
//!   can never match are reported as problems, where git is silent.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use globset::{Candidate, Glob, GlobBuilder, GlobSet};
use sha2::{Digest, Sha256};

use super::ignore_pattern::{self, GlobPattern};
use super::path_bytes;
use super::workspace_problem::WorkspaceProblem;

/// The name of the ignore file at the root of the workspace.
pub const IGNORE_FILE: &str = ".devtoolsignore";

/// Ignored unless a later rule says otherwise.
pub const BUILT_IN_IGNORES: [&str; 5] = ["node_modules", "dist", ".git", ".devtools", "*.vsix"];

/// A file with more than this is not an ignore file; it is reported and only the built-in rules hold.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A longer line is reported and passed over: no path is that long, and compiling it could take minutes.
const MAX_LINE_BYTES: usize = 16 << 10;

/// Globs compiled together: small enough that one greedy line cannot push a whole file over the regex size limit.
const GLOBS_PER_SET: usize = 512;

/// Two sets of rules with the same digest decide the same.
pub(super) type RulesDigest = [u8; 16];

/// The rules in force: immutable, and cheap to clone.
#[derive(Clone, Debug)]
pub struct IgnoreRules {
    inner: Arc<CompiledRules>,
}

#[derive(Debug, Default)]
struct CompiledRules {
    /// Rules from elsewhere, below those of the file.
    derived: Arc<[DerivedRule]>,
    /// Each set with the index of its first glob; the last set holds the latest globs.
    sets: Vec<(usize, GlobSet)>,
    /// The rule that each glob belongs to.
    rule_of_glob: Vec<u32>,
    rules: Vec<CompiledRule>,
    file: PathBuf,
    digest: RulesDigest,
}

#[derive(Debug)]
struct CompiledRule {
    pattern: Box<str>,
    source: RuleSource,
    negated: bool,
    dirs_only: bool,
}

#[derive(Clone, Copy, Debug)]
enum RuleSource {
    BuiltIn,
    /// Its index.
    Derived(usize),
    /// 1-based.
    Line(u32),
}

/// A rule that follows from another file than the ignore file; those of the ignore file override it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedRule {
    /// In the syntax of `.gitignore`.
    pub pattern: String,
    pub file: PathBuf,
    /// 1-based.
    pub line: Option<usize>,
}

/// Whether a path is tracked, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreDecision {
    pub tracked: bool,
    /// The rule that decided; `None` when none matched, which means tracked.
    pub rule: Option<IgnoreRule>,
}

/// One rule, as its author wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreRule {
    pub pattern: String,
    /// `None` for a built-in rule.
    pub file: Option<PathBuf>,
    /// 1-based; `None` for a built-in rule, and where nobody knows.
    pub line: Option<usize>,
}

impl IgnoreRules {
    /// The rules of the workspace at `root`, and what is wrong with its ignore file. Without a file, or with one that
    /// cannot be read, the built-in and the `derived` rules hold.
    pub fn load(root: &Path, derived: &Arc<[DerivedRule]>) -> (IgnoreRules, Vec<WorkspaceProblem>) {
        let file = root.join(IGNORE_FILE);
        match read_ignore_file(&file) {
            Ok(text) => IgnoreRules::parse_with_derived(derived, &file, &text),
            Err(what) => {
                let (rules, mut problems) = IgnoreRules::parse_with_derived(derived, &file, b"");
                problems.extend(what.map(|what| {
                    WorkspaceProblem::new(&file, format_args!("{what}: only the built-in ignores hold"))
                        .hint(format!("make {IGNORE_FILE} a readable text file, or remove it"))
                }));
                (rules, problems)
            }
        }
    }

    /// The rules of the workspace at `root`, unless they are these: a walk asks each time, and a large file is not parsed
    /// again for nothing.
    pub(super) fn reload(&self, root: &Path) -> Option<(IgnoreRules, Vec<WorkspaceProblem>)> {
        let derived = &self.inner.derived;
        let same = matches!(
            read_ignore_file(&root.join(IGNORE_FILE)),
            Ok(text) if !text.is_empty() && digest(derived, &text) == self.digest()
        );
        (!same).then(|| IgnoreRules::load(root, derived))
    }

    /// The rules that `text` gives as the content of `file`.
    pub fn parse(file: &Path, text: &[u8]) -> (IgnoreRules, Vec<WorkspaceProblem>) {
        IgnoreRules::parse_with_derived(&Arc::default(), file, text)
    }

    /// As [`Rules::parse`], with `derived` rules between the built-in ones and those of the file.
    pub fn parse_with_derived(
        derived: &Arc<[DerivedRule]>,
        file: &Path,
        text: &[u8],
    ) -> (IgnoreRules, Vec<WorkspaceProblem>) {
        let mut draft =
            RulesBuilder { file: file.to_path_buf(), derived: Arc::clone(derived), ..RulesBuilder::default() };
        BUILT_IN_IGNORES.iter().for_each(|rule| draft.add_line(RuleSource::BuiltIn, rule.as_bytes()));
        derived
            .iter()
            .enumerate()
            .for_each(|(index, rule)| draft.add_line(RuleSource::Derived(index), rule.pattern.as_bytes()));
        let digest = digest(derived, text);
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if let Some(line) = strip_line(line) {
                draft.add_line(RuleSource::Line(index as u32 + 1), line);
            }
        }
        draft.build(digest)
    }

    /// Whether the file or folder `rel` (relative to the root) is tracked. Decides from the top down, as git does:
    /// what lies below an ignored folder cannot be taken back in.
    pub fn decide(&self, rel: &Path, is_dir: bool) -> IgnoreDecision {
        let mut globs = Vec::new();
        let mut reached = PathBuf::new();
        let mut last = None;
        let mut parts = rel.components().filter(|part| matches!(part, Component::Normal(_))).peekable();
        while let Some(part) = parts.next() {
            reached.push(part);
            // A folder that was taken back in explains what lies in it, unless a rule names that itself.
            last =
                self.last_match(path_bytes::as_bytes(&reached), is_dir || parts.peek().is_some(), &mut globs).or(last);
            if last.is_some_and(|entry| !entry.negated) {
                break;
            }
        }
        IgnoreDecision { tracked: last.is_none_or(|entry| entry.negated), rule: last.map(|entry| self.rule(entry)) }
    }

    /// Whether `rel` is tracked, given that its folder is; `globs` is scratch space.
    pub(super) fn is_tracked(&self, rel: &[u8], is_dir: bool, globs: &mut Vec<usize>) -> bool {
        self.last_match(rel, is_dir, globs).is_none_or(|entry| entry.negated)
    }

    pub(super) fn digest(&self) -> RulesDigest {
        self.inner.digest
    }

    /// The last rule that matches `rel` itself.
    fn last_match(&self, rel: &[u8], is_dir: bool, globs: &mut Vec<usize>) -> Option<&CompiledRule> {
        let candidate = Candidate::from_bytes(rel);
        self.inner.sets.iter().rev().find_map(|(first, set)| {
            set.matches_candidate_into(&candidate, globs);
            let rules = globs.iter().rev().map(|glob| self.inner.rule_of_glob[first + glob]);
            rules.map(|rule| &self.inner.rules[rule as usize]).find(|entry| is_dir || !entry.dirs_only)
        })
    }

    fn rule(&self, entry: &CompiledRule) -> IgnoreRule {
        let (file, line) = match entry.source {
            RuleSource::BuiltIn => (None, None),
            RuleSource::Derived(index) => {
                let rule = &self.inner.derived[index];
                (Some(rule.file.clone()), rule.line)
            }
            RuleSource::Line(line) => (Some(self.inner.file.clone()), Some(line as usize)),
        };
        IgnoreRule { pattern: entry.pattern.to_string(), file, line }
    }
}

/// The content of the ignore file; empty when there is none; what is wrong with it otherwise.
fn read_ignore_file(file: &Path) -> Result<Vec<u8>, Option<String>> {
    let told = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => None,
        _ => Some(format!("cannot be read: {error}")),
    };
    // Checked before it is opened: a FIFO would block, a symlink may lead out of the workspace.
    let about = fs::symlink_metadata(file).map_err(told)?;
    if !about.is_file() {
        return Err(Some("is not a regular file (a symlink is not followed)".to_owned()));
    }
    if about.len() > MAX_FILE_BYTES {
        return Err(Some(format!("has {} bytes, more than the {MAX_FILE_BYTES} that are read", about.len())));
    }
    let mut text = Vec::new();
    File::open(file).map_err(told)?.take(MAX_FILE_BYTES).read_to_end(&mut text).map_err(told)?;
    Ok(text)
}

/// What git keeps of a line: nothing of a comment; no CR at the end; nothing from a NUL on; no unescaped trailing
/// spaces (tabs stay).
fn strip_line(line: &[u8]) -> Option<&[u8]> {
    if line.first() == Some(&b'#') {
        return None;
    }
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let spaces = line.iter().rev().take_while(|byte| **byte == b' ').count();
    let kept = line.len() - spaces;
    let backslashes = line[..kept].iter().rev().take_while(|byte| **byte == b'\\').count();
    let escaped = usize::from(backslashes % 2 == 1 && spaces > 0);
    let line = &line[..kept + escaped];
    (!line.is_empty()).then_some(line)
}

fn digest(derived: &[DerivedRule], text: &[u8]) -> RulesDigest {
    let mut hash = Sha256::new();
    BUILT_IN_IGNORES.iter().for_each(|rule| hash.update(rule));
    derived.iter().for_each(|rule| hash.update([rule.pattern.as_bytes(), b"\0"].concat()));
    hash.update(text);
    let mut digest = RulesDigest::default();
    digest.copy_from_slice(&hash.finalize()[..16]);
    digest
}

/// Rules that are being read.
#[derive(Default)]
struct RulesBuilder {
    file: PathBuf,
    derived: Arc<[DerivedRule]>,
    globs: Vec<Glob>,
    rule_of_glob: Vec<u32>,
    rules: Vec<CompiledRule>,
    problems: Vec<WorkspaceProblem>,
}

impl RulesBuilder {
    fn add_line(&mut self, source: RuleSource, bytes: &[u8]) {
        if bytes.len() > MAX_LINE_BYTES {
            let start = String::from_utf8_lossy(&bytes[..80]);
            return self.report_line(source, &start, format_args!("it has {} bytes, more than any path", bytes.len()));
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return self.report_line(source, &String::from_utf8_lossy(bytes), "it is not valid UTF-8");
        };
        match ignore_pattern::parse_pattern(text)
            .map(|pattern| pattern.map(|pattern| (compile_globs(&pattern.globs), pattern)))
        {
            Ok(None) => {}
            Ok(Some((Ok(globs), pattern))) => self.rule(source, text, &pattern, globs),
            Ok(Some((Err(error), _))) => self.report_line(source, text, error),
            Err(flaw) => self.report_line(source, text, flaw),
        }
    }

    fn rule(&mut self, source: RuleSource, text: &str, pattern: &GlobPattern, globs: Vec<Glob>) {
        let GlobPattern { negated, dirs_only, .. } = *pattern;
        self.rule_of_glob.extend(globs.iter().map(|_| self.rules.len() as u32));
        self.globs.extend(globs);
        self.rules.push(CompiledRule { pattern: text.into(), source, negated, dirs_only });
    }

    fn report_line(&mut self, source: RuleSource, text: &str, why: impl std::fmt::Display) {
        let shown: String = text.chars().take(80).collect();
        let (file, line) = match source {
            RuleSource::Derived(index) => (&self.derived[index].file, self.derived[index].line.unwrap_or(1)),
            RuleSource::Line(line) => (&self.file, line as usize),
            RuleSource::BuiltIn => (&self.file, 0),
        };
        let problem = WorkspaceProblem::new(file, format_args!("the pattern `{shown}` never matches: {why}"));
        self.problems.push(problem.on_line(line));
    }

    fn build(mut self, digest: RulesDigest) -> (IgnoreRules, Vec<WorkspaceProblem>) {
        let mut sets = Vec::new();
        let globs = std::mem::take(&mut self.globs);
        for (index, chunk) in globs.chunks(GLOBS_PER_SET).enumerate() {
            self.compile_set(index * GLOBS_PER_SET, chunk, &mut sets);
        }
        let RulesBuilder { file, derived, rule_of_glob, rules, problems, .. } = self;
        (IgnoreRules { inner: Arc::new(CompiledRules { derived, sets, rule_of_glob, rules, file, digest }) }, problems)
    }

    /// Compiles what fits together; a glob that is too large even alone is reported, and the others hold.
    fn compile_set(&mut self, first: usize, globs: &[Glob], sets: &mut Vec<(usize, GlobSet)>) {
        match GlobSet::new(globs) {
            Ok(set) => sets.push((first, set)),
            Err(error) if globs.len() == 1 => {
                let entry = &self.rules[self.rule_of_glob[first] as usize];
                let (source, pattern) = (entry.source, entry.pattern.clone());
                self.report_line(source, &pattern, error);
            }
            Err(_) => {
                let (left, right) = globs.split_at(globs.len() / 2);
                self.compile_set(first, left, sets);
                self.compile_set(first + left.len(), right, sets);
            }
        }
    }
}

fn compile_globs(globs: &[String]) -> Result<Vec<Glob>, globset::Error> {
    globs.iter().map(|glob| GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> (IgnoreRules, Vec<WorkspaceProblem>) {
        IgnoreRules::parse(Path::new("/ws/.devtoolsignore"), text.as_bytes())
    }

    /// `path` ends in a slash when it is a folder; `expect` is the line that ignores it, `+` and the line that takes
    /// it back in, `built in`, or empty.
    fn check(text: &str, path: &str, expect: &str) {
        let decision = rules(text).0.decide(Path::new(path), path.ends_with('/'));
        let seen = match (&decision.rule, decision.tracked) {
            (None, true) => String::new(),
            (Some(IgnoreRule { line: None, file: None, .. }), false) => "built in".to_owned(),
            (Some(IgnoreRule { line: Some(line), .. }), tracked) => format!("{}{line}", if tracked { "+" } else { "" }),
            odd => panic!("{odd:?}"),
        };
        assert_eq!(seen, expect, "{path} under {text:?}");
    }

    #[test]
    fn built_in_rules_hold_until_a_later_rule_overrides_them() {
        check("", "src/main.ts", "");
        check("", "node_modules/a/index.js", "built in");
        check("", "packages/a/dist/", "built in");
        check("", "out.vsix", "built in");
        check("!dist", "dist/app.js", "+1");
        check("!*.vsix\nold.vsix", "old.vsix", "2");
    }

    #[test]
    fn derived_rules_name_their_origin_and_those_of_the_file_override_them() {
        let rule =
            |pattern: &str| DerivedRule { pattern: pattern.into(), file: "/ws/tsconfig.json".into(), line: Some(5) };
        let derived: Arc<[DerivedRule]> = Arc::from([rule("/out/"), rule("!dist")]);
        let check = |text: &str, path: &str, tracked: bool, expect: Option<(&str, usize)>| {
            let (rules, _) =
                IgnoreRules::parse_with_derived(&derived, Path::new("/ws/.devtoolsignore"), text.as_bytes());
            let decision = rules.decide(Path::new(path), path.ends_with('/'));
            let origin = decision.rule.and_then(|rule| Some((rule.file?, rule.line?)));
            assert_eq!((decision.tracked, origin), (tracked, expect.map(|(file, line)| (file.into(), line))), "{path}");
        };
        check("", "out/a.js", false, Some(("/ws/tsconfig.json", 5)));
        check("", "dist/a.js", true, Some(("/ws/tsconfig.json", 5)));
        check("", "node_modules/a.js", false, None);
        check("\n!/out/", "out/a.js", true, Some(("/ws/.devtoolsignore", 2)));
        let digest = |derived| IgnoreRules::parse_with_derived(derived, Path::new("x"), b"").0.digest();
        assert_ne!(digest(&derived), digest(&Arc::default()));
    }

    #[test]
    fn what_lies_below_an_ignored_folder_stays_ignored() {
        check("build/\n!build/keep.txt", "build/keep.txt", "1");
        check("build/*\n!build/keep.txt", "build/keep.txt", "+2");
        check("build/", "build", "");
    }

    #[test]
    fn a_file_from_any_editor_is_read_alike() {
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
    fn a_bad_line_is_named_and_the_others_hold() {
        let (rules, problems) = rules("*.log\n[z-\na\\\n*.tmp");
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("/ws/.devtoolsignore:2: the pattern `[z-` never matches"), "{told:?}");
        assert!(told[1].starts_with("/ws/.devtoolsignore:3: "), "{told:?}");
        assert!(!rules.decide(Path::new("x.log"), false).tracked);
        assert!(!rules.decide(Path::new("x.tmp"), false).tracked);
        assert!(rules.decide(Path::new("z"), false).tracked);
    }

    #[test]
    fn a_megabyte_of_rules_is_read_and_obeyed() {
        let mut text = String::new();
        let mut lines = 0;
        while text.len() < 1 << 20 {
            lines += 1;
            // Mostly names, as in any file of this size; matching those costs next to nothing.
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
    fn one_endless_line_is_named_and_the_others_hold() {
        let (rules, problems) = rules(&format!("{}\n*.log", "?*".repeat(1 << 19)));
        assert!(!rules.decide(Path::new("x.log"), false).tracked);
        assert_eq!(problems.len(), 1, "a line too large to compile is told");
        assert_eq!(problems[0].line, Some(1));
    }

    #[test]
    fn an_ignore_file_that_is_no_regular_file_is_told_and_the_built_in_rules_hold() {
        let root = tempfile::tempdir().unwrap();
        assert!(IgnoreRules::load(root.path(), &Arc::default()).1.is_empty(), "no file is no problem");
        fs::create_dir(root.path().join(IGNORE_FILE)).unwrap();
        let (rules, problems) = IgnoreRules::load(root.path(), &Arc::default());
        assert!(problems[0].to_string().contains("is not a regular file"), "{}", problems[0]);
        assert!(!rules.decide(Path::new("node_modules"), true).tracked);
    }
}
