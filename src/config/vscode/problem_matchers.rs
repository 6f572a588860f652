//! Problem matchers of background tasks: detects the end of a build cycle in the output, and counts its errors.
//!
//! Source: <https://code.visualstudio.com/docs/debugtest/tasks#_defining-a-problem-matcher>. Patterns are JavaScript
//! regular expressions. Does not depend on processes: its input is lines of text.

use std::path::Path;
use std::sync::OnceLock;

use regress::Regex;
use tether_base::clipped_text::first_chars;
use tether_base::error::Result;

use crate::config::jsonc::{JsonDocument, JsonNode, JsonValue};

/// The matchers of VS Code and of common extensions, by name.
const KNOWN_MATCHERS: &str = include_str!("known_matchers.json");
/// The longest chain of `base` references; a longer one is taken for a cycle.
const MAX_BASES: usize = 8;
/// In characters: the part of a line that is matched. Patterns match near the beginning of a line.
const MAX_LINE: usize = 4096;

/// The patterns that delimit the build cycles of a background task, and those of its problems.
#[derive(Clone, Debug)]
pub struct BackgroundCycle {
    active_on_start: bool,
    begins: Option<Regex>,
    ends: Regex,
    /// The source text of the end pattern, for messages.
    pub ends_pattern: String,
    problems: Vec<ProblemPattern>,
}

/// The pattern of a problem: one line, or several consecutive ones.
#[derive(Clone, Debug)]
struct ProblemPattern {
    lines: Vec<LinePattern>,
    /// Whether a problem is an error where no line names its severity.
    is_error: bool,
}

#[derive(Clone, Debug)]
struct LinePattern {
    regexp: Regex,
    severity: Option<usize>,
    /// The capture groups; a problem counts only where `file` and `message` matched a text, as in VS Code.
    file: Option<usize>,
    message: Option<usize>,
    repeats: bool,
}

/// Tracks one cycle of a background task, line by line.
#[derive(Debug)]
pub struct CycleTracker<'a> {
    cycle: &'a BackgroundCycle,
    active: bool,
    /// The errors that were matched since the cycle began.
    errors: usize,
    /// The count in the line that ended the cycle.
    reported_errors: usize,
    /// Whether a line has matched the end pattern.
    pub ended: bool,
    seen: Vec<PartialMatch>,
}

/// The state of matching a problem of several lines.
#[derive(Clone, Debug, Default)]
struct PartialMatch {
    /// How many of its lines matched.
    lines: usize,
    /// Whether it is an error; `None` until a line names the severity.
    severity: Option<bool>,
    file: bool,
    message: bool,
}

impl BackgroundCycle {
    /// The cycle of a task's `problemMatcher`. `Err`: the reason why there is none, for the error about the task.
    pub fn of(matcher: Option<&JsonNode>) -> Result<BackgroundCycle, String> {
        let mut why = "it has no `problemMatcher`".to_owned();
        for candidate in matcher.map(JsonNode::one_or_many).unwrap_or_default() {
            match resolve_matcher(candidate, 0).and_then(|node| BackgroundCycle::read(&node)) {
                Ok(cycle) => return Ok(cycle),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn read(node: &JsonNode) -> Result<BackgroundCycle, String> {
        let background = node.get("background").or_else(|| node.get("watching"));
        let background = background.ok_or("its problem matcher has no `background`")?;
        let pattern = |name: &str| background.get(name).map(|node| pattern_text(node, name)).transpose();
        let ends_pattern = pattern("endsPattern")?.ok_or("its problem matcher has no `endsPattern`")?;
        Ok(BackgroundCycle {
            active_on_start: background.is_true("activeOnStart"),
            begins: pattern("beginsPattern")?.map(|text| compile_pattern(&text)).transpose()?,
            ends: compile_pattern(&ends_pattern)?,
            ends_pattern,
            problems: problem_patterns(node)?,
        })
    }

    /// A tracker of the next cycle.
    pub fn start_tracking(&self) -> CycleTracker<'_> {
        let seen = vec![PartialMatch::default(); self.problems.len()];
        // Without a begin pattern, the cycle is active from the start.
        let active = self.active_on_start || self.begins.is_none();
        CycleTracker { cycle: self, active, errors: 0, reported_errors: 0, ended: false, seen }
    }
}

/// The matcher of a name, or an object merged with its `base`, as one object. `depth` counts the references.
fn resolve_matcher(node: &JsonNode, depth: usize) -> Result<JsonNode, String> {
    if depth > MAX_BASES {
        return Err("the `base` of its problem matcher leads nowhere".to_owned());
    }
    if let Some(name) = node.text() {
        let unknown = || format!("tether does not know the problem matcher `{name}`");
        return resolve_matcher(known_matchers().root.get(name).ok_or_else(unknown)?, depth + 1);
    }
    match node.text_of("base") {
        None => Ok(node.clone()),
        Some(base) => {
            let base = JsonNode { line: node.line, value: JsonValue::String(base.to_owned()) };
            Ok(resolve_matcher(&base, depth + 1)?.overlaid_with(node, "background", JsonNode::overlaid))
        }
    }
}

fn known_matchers() -> &'static JsonDocument {
    static DOCUMENT: OnceLock<JsonDocument> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        JsonDocument::parse(Path::new("known_matchers.json"), KNOWN_MATCHERS)
            .expect("known_matchers.json is parsed by a test")
    })
}

fn pattern_text(node: &JsonNode, name: &str) -> Result<String, String> {
    let text = node.text().or_else(|| node.text_of("regexp"));
    text.map(str::to_owned)
        .ok_or_else(|| format!("`{name}` of its problem matcher is neither a text nor has a `regexp`"))
}

fn compile_pattern(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|cause| format!("the pattern `{pattern}` of its problem matcher is wrong: {cause}"))
}

fn problem_patterns(matcher: &JsonNode) -> Result<Vec<ProblemPattern>, String> {
    let is_error = matcher.text_of("severity").is_none_or(is_error_severity);
    let Some(pattern) = matcher.get("pattern") else { return Ok(Vec::new()) };
    // A named pattern is that of the known matcher of this name. Another one is an extension's: its problems are not
    // counted, and the end pattern still works.
    if let Some(name) = pattern.text() {
        let watch = format!("{name}-watch");
        let known = known_matchers().root.get(name).or_else(|| known_matchers().root.get(&watch));
        return known.map_or(Ok(Vec::new()), problem_patterns);
    }
    let lines: Result<Vec<LinePattern>, String> = pattern.one_or_many().iter().map(line_pattern).collect();
    Ok(vec![ProblemPattern { lines: lines?, is_error }])
}

fn line_pattern(node: &JsonNode) -> Result<LinePattern, String> {
    let group = |name: &str| match node.get(name).map(|node| &node.value) {
        Some(JsonValue::Number(number)) => number.parse().ok(),
        _ => None,
    };
    let bare = ["file", "line", "location", "message", "severity"].iter().all(|name| node.get(name).is_none());
    Ok(LinePattern {
        regexp: compile_pattern(&pattern_text(node, "pattern")?)?,
        severity: group("severity"),
        file: group("file").or(bare.then_some(1)),
        message: group("message").or(bare.then_some(0)),
        repeats: node.is_true("loop"),
    })
}

/// Whether a severity means an error, as in VS Code: "error", "E", "err", "fatal".
fn is_error_severity(severity: &str) -> bool {
    let severity = severity.to_lowercase();
    severity.starts_with('e') || severity.starts_with("fatal")
}

impl CycleTracker<'_> {
    /// Processes one line (without its line break); returns whether the cycle has ended, with this line or earlier.
    pub fn read_line(&mut self, line: &str) -> bool {
        let line = anstream::adapter::strip_str(line).to_string();
        let line = first_chars(&line, MAX_LINE);
        if !self.active && self.cycle.begins.as_ref().is_some_and(|begins| begins.find(line).is_some()) {
            self.active = true;
            self.errors = 0;
            return false;
        }
        // Also after the end of the cycle: some tools print their problems after the line that ends it.
        for index in 0..self.cycle.problems.len() {
            self.errors += usize::from(self.completes_error(index, line));
        }
        if self.active && !self.ended && self.cycle.ends.find(line).is_some() {
            self.ended = true;
            self.reported_errors = reported_error_count(line);
        }
        self.ended
    }

    /// The errors of the cycle: those matched, or the count of its last line where that is higher.
    pub fn error_count(&self) -> usize {
        self.errors.max(self.reported_errors)
    }

    /// Whether this line completes a problem that is an error.
    fn completes_error(&mut self, index: usize, line: &str) -> bool {
        let problem = &self.cycle.problems[index];
        let mut seen = std::mem::take(&mut self.seen[index]);
        let Some(pattern) = problem.lines.get(seen.lines) else { return false };
        let Some(found) = pattern.regexp.find(line) else {
            // The line may be the first line of the next problem.
            return seen.lines > 0 && self.completes_error(index, line);
        };
        let group = |number: Option<usize>| number.and_then(|number| found.group(number)).map(|range| &line[range]);
        seen.severity = group(pattern.severity).map(is_error_severity).or(seen.severity);
        seen.file |= group(pattern.file).is_some_and(|file| !file.is_empty());
        seen.message |= group(pattern.message).is_some_and(|message| !message.is_empty());
        seen.lines += 1;
        if seen.lines < problem.lines.len() {
            self.seen[index] = seen;
            return false;
        }
        let error = seen.file && seen.message && seen.severity.unwrap_or(problem.is_error);
        if pattern.repeats && seen.lines > 1 {
            seen.lines -= 1;
            self.seen[index] = seen;
        }
        error
    }
}

/// The number of errors in the last line of a cycle: "Found 2 errors", "compiled with 1 error".
fn reported_error_count(line: &str) -> usize {
    let words: Vec<&str> = line.split_whitespace().collect();
    let pairs =
        words.windows(2).filter(|pair| pair[1].trim_matches(|c: char| !c.is_alphanumeric()).starts_with("error"));
    pairs.filter_map(|pair| pair[0].parse::<usize>().ok()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(matcher: &str) -> Result<BackgroundCycle, String> {
        let document = JsonDocument::parse(Path::new("tasks.json"), matcher).unwrap();
        BackgroundCycle::of(Some(&document.root))
    }

    /// `expect`: the number (from 1) of the line that ends the cycle, and the errors after the last line.
    fn check(matcher: &str, output: &str, expect: (Option<usize>, usize)) {
        let cycle = cycle(matcher).unwrap();
        let mut tracker = cycle.start_tracking();
        let mut ended = None;
        for (index, line) in output.lines().enumerate() {
            if tracker.read_line(line) && ended.is_none() {
                ended = Some(index + 1);
            }
        }
        assert_eq!((ended, tracker.error_count()), expect, "{matcher}: {output}");
    }

    #[test]
    fn the_output_of_typescript_esbuild_and_webpack_watchers_is_matched() {
        let tsc = "> watch\n[10:11:12 AM] Starting compilation in watch mode...\n\n";
        check(
            "\"$tsc-watch\"",
            &format!("{tsc}10:11:14 AM - Found 0 errors. Watching for file changes."),
            (Some(4), 0),
        );
        let wrong =
            "src/a.ts(3,1): error TS1005: ';' expected.\n\u{1b}[96msrc/b.ts\u{1b}[0m:4:2 - error TS2304: no x\n";
        let output = format!("{tsc}{wrong}[1] Found 2 errors. Watching for file changes.");
        check("\"$tsc-watch\"", &output, (Some(6), 2));
        check("[\"$tsc-watch\"]", "build starting at now\nbuild finished in 0.1s", (Some(2), 0));
        let failed =
            "[watch] build started\n✘ [ERROR] Could not resolve \"x\"\n    src/a.ts:1:2:\n[watch] build finished";
        check("\"$esbuild-watch\"", failed, (Some(4), 1));
        check("\"$esbuild-watch\"", "[watch] build started\n▲ [WARNING] odd\n[watch] build finished", (Some(3), 0));
        check("\"$ts-webpack-watch\"", "Compilation starting...\nCompilation finished\nERROR in ./a.ts", (Some(2), 1));
        check("\"$ts-webpack-watch\"", "webpack 5.1 compiled with 1 error in 3 ms", (Some(1), 1));
    }

    #[test]
    fn an_inline_matcher_may_write_its_patterns_as_text_or_object() {
        let matcher = r#"{ "severity": "warning",
            "pattern": [{ "regexp": "^FILE (.*)$", "file": 1 }, { "regexp": "^  (error|note): (.*)$", "severity": 1, "message": 2, "loop": true }],
            "background": { "activeOnStart": false, "beginsPattern": "^begin$", "endsPattern": { "regexp": "^end$" } } }"#;
        check(matcher, "end\nbegin\nend", (Some(3), 0));
        check(matcher, "begin\nFILE a\n  error: x\n  error: y\n  note: z\nFILE b\n  error: w\nend", (Some(8), 3));
        // `.` matches, but has no capture groups: it ends the cycle, and counts no problem.
        let any = r#"{ "pattern": { "regexp": ".", "file": 1, "message": 3 },
            "background": { "activeOnStart": true, "beginsPattern": ".", "endsPattern": "." } }"#;
        check(any, "ready", (Some(1), 0));
        let based = r#"{ "base": "$tsc-watch", "background": { "endsPattern": "^all done$" } }"#;
        check(based, "Starting compilation in watch mode\nall done", (Some(2), 0));
        // Look-behind is a feature of JavaScript's regular expressions.
        check(r#"{ "background": { "endsPattern": "(?<=server )up" } }"#, "up\nserver up", (Some(2), 0));
    }

    #[test]
    fn a_matcher_without_a_usable_end_pattern_is_refused_with_the_reason() {
        let check = |matcher: &str, expect: &str| {
            let why = cycle(matcher).unwrap_err();
            assert!(why.contains(expect), "{why}");
        };
        check("[]", "no `problemMatcher`");
        check("\"$mine-watch\"", "does not know the problem matcher `$mine-watch`");
        check("\"$tsc\"", "does not know the problem matcher `$tsc`");
        check("{\"pattern\": {\"regexp\": \"x\"}}", "no `background`");
        check("{\"background\": {\"beginsPattern\": \"x\"}}", "no `endsPattern`");
        check("{\"background\": {\"endsPattern\": \"(\"}}", "the pattern `(`");
        check("{\"background\": {\"endsPattern\": 1}}", "neither a text nor has a `regexp`");
    }

    #[test]
    fn every_known_matcher_has_a_cycle() {
        for (name, _) in known_matchers().root.members() {
            cycle(&format!("{name:?}")).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
}
