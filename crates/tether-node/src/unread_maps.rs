//! The scripts of a session whose source maps were not read, and which files may be behind them.
//!
//! Plain data: reads nothing.

use std::path::Path;

/// How many are kept.
const MAX_UNREAD: usize = 1_000;
/// How many are named for one file.
const MAX_NAMED: usize = 3;
/// How far above a script the folder of its package may be: `dist/esm/a.js`.
const MAX_DEPTH: usize = 3;
/// A package's folder has at least so many parts: `/`, and two names.
const MIN_PARTS: usize = 3;

/// A script whose source map was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnreadMap {
    /// Its path or URL.
    pub script: String,
    /// Why, in words.
    pub cause: String,
    /// It was not looked for: only a file of its package is behind it.
    pub is_foreign: bool,
}

impl UnreadMap {
    /// Whether the map may name a file.
    fn may_name(&self, file: &Path) -> bool {
        let above = Path::new(&self.script).ancestors().skip(1).take(MAX_DEPTH);
        !self.is_foreign || above.filter(|it| it.components().count() >= MIN_PARTS).any(|it| file.starts_with(it))
    }
}

/// All of a session.
#[derive(Default)]
pub(crate) struct UnreadMaps(Vec<UnreadMap>);

impl UnreadMaps {
    /// Adds a script, once; whether that may change what is said of a file.
    pub(crate) fn add(&mut self, unread: UnreadMap) -> bool {
        let is_known = self.0.iter().any(|known| known.script == unread.script);
        if is_known || self.0.len() >= MAX_UNREAD {
            return false;
        }
        self.0.push(unread);
        true
    }

    /// "the source map of /w/a.js is not read: …", of the first scripts that a file may be behind. Empty: there is none.
    pub(crate) fn describe(&self, file: &Path) -> String {
        let meant = self.0.iter().filter(|unread| unread.may_name(file)).take(MAX_NAMED);
        let texts =
            meant.map(|UnreadMap { script, cause, .. }| format!("the source map of {script} is not read: {cause}"));
        texts.collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_named_for_the_files_that_may_be_behind_it() {
        let mut maps = UnreadMaps::default();
        let unread = |script: &str, is_foreign| UnreadMap { script: script.into(), cause: "why".into(), is_foreign };
        assert!(maps.add(unread("/w/dep/dist/esm/a.js", true)));
        assert!(!maps.add(unread("/w/dep/dist/esm/a.js", true)));
        let check = |maps: &UnreadMaps, file: &str, expect: &str| assert_eq!(maps.describe(Path::new(file)), expect);
        let said = "the source map of /w/dep/dist/esm/a.js is not read: why";
        check(&maps, "/w/dep/src/a.ts", said);
        check(&maps, "/w/app/src/a.ts", "");
        maps.add(unread("http://localhost/a.js", false));
        check(&maps, "/w/app/src/a.ts", "the source map of http://localhost/a.js is not read: why");
        for number in 0..9 {
            maps.add(unread(&format!("/x/{number}.js"), false));
        }
        assert_eq!(maps.describe(Path::new("/w/dep/src/a.ts")).matches("is not read").count(), MAX_NAMED);
    }
}
