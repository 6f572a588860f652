//! Decides which files are tracked, and by which rule and line.
//!
//! Owns the rules: the built-in ones, then derived ones, then those of `.devtoolsignore` in the workspace's root, with
//! the syntax and semantics of `.gitignore`; and likewise the rules of one `.gitignore`. Patterns are translated by
//! `ignore_pattern` and matched by globset. Does not depend on snapshots, watches or scans.
//!
//! On the 70,000 pairs of `tests/binary/change_detection/git_agreement.rs` this module agrees with `git check-ignore` in
//! all, and by the same line. The crate `ignore` agrees in 98.1 %, and sometimes by another line; `gix-ignore` 0.24.1 in
//! 99.98 % (it takes a bracket like `[[:alpha]` for one that never matches). What differs from git here:
//! - A pattern that is not UTF-8 is reported and skipped; git compares bytes.
//! - A bracket expression with characters beyond ASCII matches whole characters, git matches single bytes. So after a
//!   range that ends beyond ASCII a further `-` is literal here.
//! - `.devtoolsignore` is read in the root only; `core.excludesFile` and `core.ignoreCase` have no effect.
//! - A symlink is not followed (nor by git since 2.32), and a pattern that can never match is reported as a problem.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use globset::{Candidate, Glob, GlobBuilder, GlobSet};
use tether_base::clipped_text::first_chars;

use super::content_hash::half_sha256;
use super::ignore_file::{nest_pattern, pattern_lines, read_ignore_file};
use super::ignore_pattern::{self, GlobPattern};
use super::path_bytes;
use super::workspace_problem::WorkspaceProblem;

/// The name of the ignore file at the root of the workspace.
pub const IGNORE_FILE: &str = ".devtoolsignore";

/// Ignored unless a later rule overrides it.
pub const BUILT_IN_IGNORES: [&str; 8] =
    ["node_modules", "dist", ".git", ".devtools", ".turbo", "__pycache__", "*.vsix", "*.tsbuildinfo"];

/// A longer line is reported and skipped: no path is that long, and compiling it could take minutes.
const MAX_LINE_BYTES: usize = 16 << 10;

/// Further patterns of a file are not used, and this is reported: each takes memory, and time for each path.
const MAX_PATTERNS: usize = 150_000;
/// The same for patterns with a wildcard, which take much more.
const MAX_WILDCARDS: usize = 20_000;

/// Globs per compiled set, so that one large pattern cannot make all rules exceed the regex size limit.
const GLOBS_PER_SET: usize = 512;

/// Rules with the same digest give the same decisions.
pub(super) type RulesDigest = [u8; 16];

/// A compiled list of rules: immutable, and cheap to clone.
#[derive(Clone, Debug)]
pub struct IgnoreRules {
    inner: Arc<CompiledRules>,
}

#[derive(Debug, Default)]
struct CompiledRules {
    /// Rules derived from other files; those of the ignore file override them.
    derived: Arc<[DerivedRule]>,
    /// Each set with the index of its first glob; the last set contains the last globs.
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
    /// The index of the derived rule.
    Derived(usize),
    /// 1-based.
    Line(u32),
}

/// A rule derived from another file than the ignore file; rules of the ignore file override it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedRule {
    /// In the syntax of `.gitignore`.
    pub pattern: String,
    /// The file that it was derived from.
    pub file: PathBuf,
    /// 1-based.
    pub line: Option<usize>,
}

/// Whether a path is tracked, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreDecision {
    /// Whether it is tracked.
    pub tracked: bool,
    /// The rule that decided; `None` if no rule matched, which means tracked.
    pub rule: Option<IgnoreRule>,
}

/// One rule, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreRule {
    /// The pattern, including `!`.
    pub pattern: String,
    /// `None` for a built-in rule.
    pub file: Option<PathBuf>,
    /// 1-based; `None` for a built-in rule, and where it is not known.
    pub line: Option<usize>,
}

impl IgnoreRules {
    /// Loads the rules of the workspace at `root`, and what is wrong with its ignore file. Without a readable file the
    /// built-in and the `derived` rules apply.
    pub fn load(root: &Path, derived: &Arc<[DerivedRule]>) -> (IgnoreRules, Vec<WorkspaceProblem>) {
        let file = root.join(IGNORE_FILE);
        match read_ignore_file(&file) {
            Ok(text) => IgnoreRules::parse(derived, &file, &text),
            Err(what) => {
                let (rules, mut problems) = IgnoreRules::parse(derived, &file, b"");
                problems.extend(what.map(|what| {
                    WorkspaceProblem::new(&file, format_args!("{what}: only the built-in ignores apply"))
                        .hint(format!("make {IGNORE_FILE} a readable text file of yours, or remove it"))
                }));
                (rules, problems)
            }
        }
    }

    /// As [`IgnoreRules::load`]; `None`, without parsing the file again, if the rules are the same as these.
    pub(super) fn reload(&self, root: &Path) -> Option<(IgnoreRules, Vec<WorkspaceProblem>)> {
        let derived = &self.inner.derived;
        let same = matches!(
            read_ignore_file(&root.join(IGNORE_FILE)),
            Ok(text) if !text.is_empty() && rules_digest(derived, &text) == self.digest()
        );
        (!same).then(|| IgnoreRules::load(root, derived))
    }

    /// Parses `text` as the content of `file`: the built-in rules, then the `derived` ones, then those of the file.
    pub fn parse(derived: &Arc<[DerivedRule]>, file: &Path, text: &[u8]) -> (IgnoreRules, Vec<WorkspaceProblem>) {
        let mut rules = RulesBuilder::new(derived, file, text);
        BUILT_IN_IGNORES.iter().for_each(|rule| rules.add_line(RuleSource::BuiltIn, rule.as_bytes()));
        for (index, rule) in derived.iter().enumerate() {
            rules.add_line(RuleSource::Derived(index), rule.pattern.as_bytes());
        }
        rules.add_text(text);
        rules.build()
    }

    /// Loads the rules of `.gitignore` in `folder` only. None if it is missing, unreadable, too large or not a file.
    pub fn load_gitignore(folder: &Path) -> IgnoreRules {
        let file = folder.join(".gitignore");
        let text = read_ignore_file(&file).unwrap_or_default();
        let mut rules = RulesBuilder::new(&Arc::default(), &file, &text);
        rules.add_text(&text);
        rules.build().0
    }

    /// The rules of the ignore file in `folder`, which is `prefix` (a pattern) below the root, as rules of the root. What is not
    /// UTF-8 is skipped; without a readable file there are none.
    pub fn read_nested(folder: &Path, prefix: &str) -> Vec<DerivedRule> {
        let file = folder.join(IGNORE_FILE);
        let text = read_ignore_file(&file).unwrap_or_default();
        let lines = pattern_lines(&text).filter_map(|(number, line)| Some((number, std::str::from_utf8(line).ok()?)));
        let rule = |(number, line)| {
            let (pattern, line) = (nest_pattern(line, prefix), Some(number as usize));
            DerivedRule { pattern, file: file.clone(), line }
        };
        lines.map(rule).collect()
    }

    /// Whether there are no rules at all.
    pub(super) fn is_empty(&self) -> bool {
        self.inner.rules.is_empty()
    }

    /// Whether the last rule that matches `rel` itself ignores it; `None` if no rule matches.
    pub(super) fn match_path(&self, rel: &Path, is_dir: bool) -> Option<bool> {
        self.last_match(path_bytes::as_bytes(rel), is_dir, &mut Vec::new()).map(|rule| !rule.negated)
    }

    /// Decides whether the file or folder `rel` (relative to the root) is tracked. From the top down, as git does:
    /// nothing below an ignored folder can be re-included.
    pub fn decide_tracking(&self, rel: &Path, is_dir: bool) -> IgnoreDecision {
        let mut globs = Vec::new();
        let mut reached = PathBuf::new();
        let mut last = None;
        let mut parts = rel.components().filter(|part| matches!(part, Component::Normal(_))).peekable();
        while let Some(part) = parts.next() {
            reached.push(part);
            // The rule that re-included a folder decides for its content, unless a rule matches that itself.
            last =
                self.last_match(path_bytes::as_bytes(&reached), is_dir || parts.peek().is_some(), &mut globs).or(last);
            if last.is_some_and(|rule| !rule.negated) {
                break;
            }
        }
        IgnoreDecision {
            tracked: last.is_none_or(|rule| rule.negated),
            rule: last.map(|rule| self.describe_rule(rule)),
        }
    }

    /// Whether `rel` is tracked, if its folder is; `globs` is a reused buffer.
    pub(super) fn is_tracked(&self, rel: &[u8], is_dir: bool, globs: &mut Vec<usize>) -> bool {
        self.last_match(rel, is_dir, globs).is_none_or(|rule| rule.negated)
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
            rules.map(|rule| &self.inner.rules[rule as usize]).find(|rule| is_dir || !rule.dirs_only)
        })
    }

    fn describe_rule(&self, rule: &CompiledRule) -> IgnoreRule {
        let (file, line) = match rule.source {
            RuleSource::BuiltIn => (None, None),
            RuleSource::Derived(index) => {
                let rule = &self.inner.derived[index];
                (Some(rule.file.clone()), rule.line)
            }
            RuleSource::Line(line) => (Some(self.inner.file.clone()), Some(line as usize)),
        };
        IgnoreRule { pattern: rule.pattern.to_string(), file, line }
    }
}

/// Identifies the rules that result from `derived` and the text of the ignore file.
fn rules_digest(derived: &[DerivedRule], text: &[u8]) -> RulesDigest {
    let built_in = BUILT_IN_IGNORES.iter().map(|rule| rule.as_bytes());
    let derived = derived.iter().flat_map(|rule| [rule.pattern.as_bytes(), b"\0"]);
    half_sha256(built_in.chain(derived).chain([text]))
}

/// Collects and compiles rules.
struct RulesBuilder {
    compiled: CompiledRules,
    globs: Vec<Glob>,
    problems: Vec<WorkspaceProblem>,
}

impl RulesBuilder {
    fn new(derived: &Arc<[DerivedRule]>, file: &Path, text: &[u8]) -> RulesBuilder {
        let (derived, file, digest) = (Arc::clone(derived), file.to_path_buf(), rules_digest(derived, text));
        let compiled = CompiledRules { derived, file, digest, ..CompiledRules::default() };
        RulesBuilder { compiled, globs: Vec::new(), problems: Vec::new() }
    }

    fn add_text(&mut self, text: &[u8]) {
        let (mut patterns, mut wildcards) = (0, 0);
        for (number, line) in pattern_lines(text) {
            patterns += 1;
            wildcards += usize::from(line.iter().any(|byte| b"*?[".contains(byte)));
            if patterns > MAX_PATTERNS || wildcards > MAX_WILDCARDS {
                let limit = format!("{MAX_PATTERNS} patterns, or {MAX_WILDCARDS} with a wildcard");
                let what = format!("it has more than {limit}: from this one on they are not used");
                let problem = WorkspaceProblem::new(&self.compiled.file, what);
                self.problems.push(WorkspaceProblem { line: Some(number as usize), ..problem });
                return;
            }
            self.add_line(RuleSource::Line(number), line);
        }
    }

    fn add_line(&mut self, source: RuleSource, bytes: &[u8]) {
        if bytes.len() > MAX_LINE_BYTES {
            let start = String::from_utf8_lossy(&bytes[..80]);
            return self.report_line(source, &start, format_args!("it has {} bytes, more than any path", bytes.len()));
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return self.report_line(source, &String::from_utf8_lossy(bytes), "it is not valid UTF-8");
        };
        match ignore_pattern::parse_pattern(text) {
            Ok(None) => {}
            Ok(Some(pattern)) => match compile_globs(&pattern.globs) {
                Ok(globs) => self.add_rule(source, text, &pattern, globs),
                Err(error) => self.report_line(source, text, error),
            },
            Err(flaw) => self.report_line(source, text, flaw),
        }
    }

    fn add_rule(&mut self, source: RuleSource, text: &str, pattern: &GlobPattern, globs: Vec<Glob>) {
        let GlobPattern { negated, dirs_only, .. } = *pattern;
        self.compiled.rule_of_glob.extend(globs.iter().map(|_| self.compiled.rules.len() as u32));
        self.globs.extend(globs);
        self.compiled.rules.push(CompiledRule { pattern: text.into(), source, negated, dirs_only });
    }

    fn report_line(&mut self, source: RuleSource, text: &str, why: impl std::fmt::Display) {
        let shown = first_chars(text, 80);
        let CompiledRules { derived, file, .. } = &self.compiled;
        let (file, line) = match source {
            RuleSource::Derived(index) => (&derived[index].file, derived[index].line.unwrap_or(1)),
            RuleSource::Line(line) => (file, line as usize),
            RuleSource::BuiltIn => (file, 0),
        };
        let problem = WorkspaceProblem::new(file, format_args!("the pattern `{shown}` never matches: {why}"));
        self.problems.push(WorkspaceProblem { line: Some(line), ..problem });
    }

    fn build(mut self) -> (IgnoreRules, Vec<WorkspaceProblem>) {
        let globs = std::mem::take(&mut self.globs);
        for (index, chunk) in globs.chunks(GLOBS_PER_SET).enumerate() {
            self.compile_set(index * GLOBS_PER_SET, chunk);
        }
        (IgnoreRules { inner: Arc::new(self.compiled) }, self.problems)
    }

    /// Compiles globs into as few sets as the size limit allows; a glob that is too large by itself is reported.
    fn compile_set(&mut self, first: usize, globs: &[Glob]) {
        match GlobSet::new(globs) {
            Ok(set) => self.compiled.sets.push((first, set)),
            Err(error) if globs.len() == 1 => {
                let rule = &self.compiled.rules[self.compiled.rule_of_glob[first] as usize];
                let (source, pattern) = (rule.source, rule.pattern.clone());
                self.report_line(source, &pattern, error);
            }
            Err(_) => {
                let (left, right) = globs.split_at(globs.len() / 2);
                self.compile_set(first, left);
                self.compile_set(first + left.len(), right);
            }
        }
    }
}

fn compile_globs(globs: &[String]) -> Result<Vec<Glob>, globset::Error> {
    globs.iter().map(|glob| GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build()).collect()
}

#[cfg(test)]
mod tests;
