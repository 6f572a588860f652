//! Markdown files: relative links lead to files and headings, the book lists each of its pages, the README stays short.
//!
//! Reads Markdown as far as links and headings need it. Does not depend on what the documents say.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::File;

/// The folder of the book's pages.
const BOOK: &str = "docs/src/";
const SUMMARY: &str = "docs/src/SUMMARY.md";
/// Of the README, in bytes.
const LONGEST_README: usize = 10_000;

/// The Markdown files of a checkout, and the paths to which their links may lead.
pub struct Documents {
    files: Vec<File>,
    paths: BTreeSet<String>,
    /// The anchors of each document, by its path.
    anchors: BTreeMap<String, BTreeSet<String>>,
}

impl Documents {
    /// `paths` are those of all files of the checkout, not only of the documents.
    pub fn new(files: Vec<File>, paths: BTreeSet<String>) -> Documents {
        let anchors = files.iter().map(|file| (file.path.clone(), anchors_of(&file.text))).collect();
        Documents { files, paths, anchors }
    }

    /// Complains of each relative link that leads to no file, or to no heading of it.
    pub fn broken_links(&self) -> Vec<String> {
        let links = self.files.iter().flat_map(|file| links_of(&file.text).into_iter().map(move |link| (file, link)));
        let broken = links.filter_map(|(file, link)| {
            let reason = self.broken_because(&file.path, &link.target)?;
            Some(format!("{}:{}: the link to `{}` {reason}", file.path, link.line, link.target))
        });
        broken.collect()
    }

    fn broken_because(&self, document: &str, target: &str) -> Option<String> {
        let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
        let Some(path) = resolve(document, path) else { return Some("leads out of the checkout".to_owned()) };
        let in_book = |path: &str| path.starts_with(BOOK);
        match anchor {
            _ if !self.exists(&path) => Some(format!("leads to no file: there is no {path}")),
            _ if in_book(document) && !in_book(&path) => Some("leads out of the book, which is built alone".to_owned()),
            Some(anchor) if !self.anchors.get(&path).is_some_and(|all| all.contains(anchor)) => {
                Some(format!("leads to no heading: {path} has none with the anchor {anchor:?}"))
            }
            _ => None,
        }
    }

    /// Whether it is a file, or a folder with one.
    fn exists(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        let below = || self.paths.range(folder.clone()..).next().is_some_and(|first| first.starts_with(&folder));
        path.is_empty() || self.paths.contains(path) || below()
    }

    /// Complains of pages that SUMMARY.md does not list, and of what it lists that is no page.
    pub fn book_complaints(&self) -> Vec<String> {
        let Some(summary) = self.files.iter().find(|file| file.path == SUMMARY) else {
            return vec![format!("{SUMMARY}: is missing")];
        };
        let pages: BTreeSet<&str> =
            self.files.iter().map(|file| &*file.path).filter(|it| it.starts_with(BOOK) && *it != SUMMARY).collect();
        let links = links_of(&summary.text);
        let listed: BTreeSet<String> = links.iter().filter_map(|link| resolve(SUMMARY, &link.target)).collect();
        let unlisted = pages.iter().filter(|page| !listed.contains(**page));
        let unlisted = unlisted.map(|page| format!("{page}: is not listed in {SUMMARY}"));
        let unknown =
            links.iter().filter(|link| !resolve(SUMMARY, &link.target).is_some_and(|it| pages.contains(&*it)));
        let unknown = unknown.map(|link| format!("{SUMMARY}:{}: `{}` is no page of the book", link.line, link.target));
        unlisted.chain(unknown).collect()
    }
}

/// Complains of a README that is too long to be read before the first use.
pub fn long_readme(file: &File) -> Vec<String> {
    let bytes = file.text.len();
    let is_long = file.path == "README.md" && bytes > LONGEST_README;
    if is_long { vec![format!("README.md: {bytes} bytes, more than {LONGEST_README}")] } else { Vec::new() }
}

/// A link within the checkout.
struct Link {
    line: usize,
    target: String,
}

/// The relative links: `[text](target "title")`, `![text](<target>)`, `[name]: target`, `<a href="target">`.
fn links_of(text: &str) -> Vec<Link> {
    let prose = blank_code_spans(&blank_fences(text));
    let mut found: Vec<(usize, &str)> = Vec::new();
    for opening in ["](", "href=\"", "src=\""] {
        let closes = if opening == "](" { ')' } else { '"' };
        let starts = prose.match_indices(opening).map(|(at, _)| at + opening.len());
        found.extend(starts.map(|at| (at, until_closed(&prose[at..], closes))));
    }
    for line in prose.split_inclusive('\n') {
        let definition = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]:"));
        if let Some((_, target)) = definition.filter(|(name, _)| !name.contains(']')) {
            found.push((line.as_ptr() as usize - prose.as_ptr() as usize, target));
        }
    }
    found.sort_unstable();
    let links = found.into_iter().map(|(at, target)| Link {
        line: prose[..at].matches('\n').count() + 1,
        target: without_title(target).to_owned(),
    });
    links.filter(|link| !link.target.contains("://") && !link.target.starts_with("mailto:")).collect()
}

/// The text before the bracket or quote that closes it; brackets may be nested.
fn until_closed(text: &str, closes: char) -> &str {
    let mut depth = 0;
    let end = text.find(|c: char| {
        let is_end = c == closes && depth == 0;
        depth += i32::from(c == '(') - i32::from(c == ')');
        is_end
    });
    &text[..end.unwrap_or(text.len())]
}

/// `<a b.md> "title"` → `a b.md`
fn without_title(target: &str) -> &str {
    let target = target.trim();
    match target.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((inner, _)) => inner,
        None => target.split_whitespace().next().unwrap_or_default(),
    }
}

/// The path of a link's target from the top of the checkout; an empty one is the document itself. `None`: it leads out.
fn resolve(document: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(document.to_owned());
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.strip_suffix('/').unwrap_or(target).split('/') {
        match part {
            "." => {}
            "" => return None,
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of the headings, as GitHub and mdBook derive them.
fn anchors_of(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let text = blank_fences(text);
    let anchors = text.lines().filter_map(heading_title).map(|title| {
        let anchor = anchor_of(title);
        let count = counts.entry(anchor.clone()).or_default();
        *count += 1;
        if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
    });
    anchors.collect()
}

/// `## Title` → `Title`
fn heading_title(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    title.strip_prefix(' ').filter(|_| (1..=6).contains(&level)).map(str::trim)
}

fn anchor_of(title: &str) -> String {
    let letters = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    letters.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The text with blank lines in place of fenced code.
fn blank_fences(text: &str) -> String {
    let mut fence: Option<&str> = None;
    let lines = text.lines().map(|line| {
        let trimmed = line.trim();
        match fence {
            Some(open) => {
                let is_end = trimmed.starts_with(open) && trimmed.trim_start_matches(&open[..1]).is_empty();
                fence = fence.filter(|_| !is_end);
                ""
            }
            None => {
                let run = |mark: char| trimmed.len() - trimmed.trim_start_matches(mark).len();
                fence = ['`', '~'].into_iter().map(run).find(|length| *length >= 3).map(|length| &trimmed[..length]);
                if fence.is_some() { "" } else { line }
            }
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The text without its code spans, but with their line ends. A span ends in its paragraph.
fn blank_code_spans(text: &str) -> String {
    let mut prose = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let run = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        let (before, after) = rest.split_at(start + run);
        let paragraph = &after[..after.find("\n\n").unwrap_or(after.len())];
        prose.push_str(before);
        rest = after;
        if let Some(end) = closing_run(paragraph, run) {
            prose.extend(after[..end].chars().filter(|c| *c == '\n'));
            rest = &after[end + run..];
        }
    }
    prose + rest
}

/// Where a run of exactly so many backquotes begins.
fn closing_run(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    loop {
        let start = at + text[at..].find('`')?;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        if run == length {
            return Some(start);
        }
        at = start + run;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGETS: [(&str, &str); 4] = [
        ("docs/src/a.md", "# Title\n## The `x.toml` file\n## Twice\n## Twice\n```\n# no heading\n```\n"),
        ("docs/src/plot.svg", ""),
        ("src/deep/lib.rs", ""),
        ("NOTES.md", "#hashtag\n"),
    ];

    /// The complaints of a document with this text, beside the [`TARGETS`].
    fn complaints(path: &str, text: &str, rule: impl Fn(&Documents) -> Vec<String>) -> Vec<String> {
        let all = TARGETS.into_iter().chain([(path, text)]);
        let paths = all.clone().map(|(path, _)| path.to_owned()).collect();
        let documents = all.filter(|(path, _)| path.ends_with(".md"));
        rule(&Documents::new(documents.map(|(path, text)| File::of(path, text)).collect(), paths))
    }

    fn check_link(path: &str, text: &str, holds: bool) {
        let found = complaints(path, text, Documents::broken_links);
        assert_eq!(found.is_empty(), holds, "{path}: {text}: {found:?}");
    }

    #[test]
    fn a_link_leads_to_a_file_or_a_folder_of_the_checkout() {
        for (text, holds) in [
            ("[a](docs/src/a.md), [b](./docs/../NOTES.md), [c](src/deep/lib.rs), [d](src), [e](src/deep/)", true),
            ("[a](docs/src/b.md)", false),
            ("[a](docs/src/a.m)", false),
            ("[a](sr)", false),
            ("[a](../outside.md)", false),
            ("[a](/NOTES.md)", false),
            ("![a](docs/src/plot.svg \"A plot\") ![b](<docs/src/plot.svg>)", true),
            ("![a](docs/src/missing.svg)", false),
            ("[![a](docs/src/plot.svg)](missing)", false),
            ("[a link\nover two lines](missing)", false),
            ("[a]\n\n[a]: docs/src/a.md", true),
            ("[a]\n\n[a]: docs/src/b.md", false),
            ("<img src=\"docs/src/plot.svg\">", true),
            ("<a href=\"missing.md\">a</a>", false),
            ("[a](https://example.org/b.md) [b](mailto:a@example.org) <https://example.org>", true),
        ] {
            check_link("README.md", text, holds);
        }
    }

    #[test]
    fn an_anchor_is_that_of_a_heading() {
        for (text, holds) in [
            ("[a](a.md#title) [b](a.md#the-xtoml-file) [c](a.md#twice-1)", true),
            ("[a](a.md#titel)", false),
            ("[a](a.md#no-heading)", false),
            ("[a](a.md#twice-2)", false),
            ("[a](plot.svg#title)", false),
            ("# Here\n[a](#here)", true),
            ("# Here\n[a](#there)", false),
        ] {
            check_link("docs/src/b.md", text, holds);
        }
        check_link("README.md", "[a](NOTES.md#hashtag)", false);
    }

    #[test]
    fn code_holds_no_links() {
        for (text, holds) in [
            ("`[a](missing)`", true),
            ("``a ` [b](missing)``", true),
            ("`[a](missing)\nover two lines`", true),
            ("```lua\n[a](missing)\n```", true),
            ("````\n```\n[a](missing)\n````", true),
            ("a ` alone, and [b](missing)\n\na ` in another paragraph", false),
            ("```\ncode\n```\n[a](missing)", false),
            ("`code` [a](missing)", false),
        ] {
            check_link("README.md", text, holds);
        }
    }

    #[test]
    fn a_complaint_names_the_line() {
        let found = complaints("README.md", "`a\nb`\n\n[c](missing)", Documents::broken_links);
        assert!(found[0].starts_with("README.md:4: the link to `missing`"), "{found:?}");
    }

    #[test]
    fn the_book_does_not_lead_out_of_itself() {
        check_link("docs/src/b.md", "[a](../../NOTES.md)", false);
        check_link("docs/src/b.md", "[a](a.md) ![b](plot.svg) [c](https://example.org)", true);
    }

    #[test]
    fn the_summary_lists_every_page_and_nothing_else() {
        let check = |path: &str, text: &str, holds: bool| {
            let found = complaints(path, text, Documents::book_complaints);
            assert_eq!(found.is_empty(), holds, "{path}: {text}: {found:?}");
        };
        check(SUMMARY, "# Summary\n- [A](a.md)", true);
        check(SUMMARY, "# Summary\n", false);
        check(SUMMARY, "- [A](a.md)\n- [B](b.md)", false);
        check(SUMMARY, "- [A](a.md)\n- [B](plot.svg)", false);
        check("docs/src/b.md", "", false);
    }

    #[test]
    fn the_readme_is_short() {
        let check = |path: &str, bytes: usize, holds: bool| {
            assert_eq!(long_readme(&File::of(path, &"a".repeat(bytes))).is_empty(), holds, "{path}: {bytes}");
        };
        check("README.md", 10_000, true);
        check("README.md", 10_001, false);
        check("docs/src/a.md", 10_001, true);
    }
}
