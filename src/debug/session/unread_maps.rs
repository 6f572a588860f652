//! What an adapter prints about source maps that it could not read.
//!
//! Only the text says so, in words that are in its row. Does not depend on breakpoints.

use tether_base::clipped_text::clip_bytes;
use url::Url;

/// How many scripts are kept.
const MAX_SCRIPTS: usize = 100;
/// How many are named.
const MAX_NAMED: usize = 3;
/// The longest text of one, in bytes.
const MAX_BYTES: usize = 1_000;

/// The scripts of a session whose maps were not read.
#[derive(Default)]
pub(super) struct UnreadMaps {
    /// How reports begin.
    words: Vec<&'static str>,
    /// Each script, and why its map was not read.
    texts: Vec<String>,
}

impl UnreadMaps {
    /// Reads the reports of an adapter, too.
    pub fn add_words(&mut self, words: Option<&'static str>) {
        self.words.extend(words.filter(|words| !self.words.contains(words)));
    }

    /// Records a piece of an adapter's output, if it is about a map.
    pub fn record_output(&mut self, output: &str) {
        for line in output.lines() {
            let report = self.words.iter().find_map(|words| line.strip_prefix(words)?.split_once(": "));
            let Some((script, cause)) = report else { continue };
            let file = Url::parse(script).ok().and_then(|url| url.to_file_path().ok());
            let script = file.map_or_else(|| script.to_owned(), |file| file.display().to_string());
            let text = format!("the source map of {script} is not read: {}", clip_bytes(cause, MAX_BYTES));
            if self.texts.len() < MAX_SCRIPTS && !self.texts.contains(&text) {
                self.texts.push(text);
            }
        }
    }

    /// "the source map of /w/a.js is not read: …", of the first scripts. `None`: all that were looked for were read.
    pub fn describe(&self) -> Option<String> {
        let first: Vec<&str> = self.texts.iter().take(MAX_NAMED).map(String::as_str).collect();
        (!first.is_empty()).then(|| first.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_the_script_and_the_cause() {
        let mut maps = UnreadMaps::default();
        maps.record_output("Could not read source map for file:///w/a.js: ENOENT: no such file");
        assert_eq!(maps.describe(), None);
        maps.add_words(Some("Could not read source map for "));
        for _ in 0..2 {
            maps.record_output("x\nCould not read source map for file:///w/a%20b.js: ENOENT: no such file\n");
        }
        assert_eq!(maps.describe().unwrap(), "the source map of /w/a b.js is not read: ENOENT: no such file");
    }
}
