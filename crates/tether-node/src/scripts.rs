//! Scripts of an isolate, and the files that they are of.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use globset::{Glob, GlobSet, GlobSetBuilder};
use tether_cdp::debugger::ParsedScript;

use super::line_placement::LinePlacements;
use super::source_maps::ScriptMap;

/// How many scripts of an isolate are kept.
const MAX_SCRIPTS: usize = 200_000;
/// How the names of Node's own modules begin, as its users know them.
pub(crate) const NODE_INTERNALS: &str = "<node_internals>/";

/// A script that was parsed.
pub(crate) struct LoadedScript {
    pub id: String,
    pub url: String,
    /// Its file; none: it is Node's own, or was evaluated.
    pub path: Option<PathBuf>,
    /// Its text is that of its file, and not one element of a page.
    pub is_whole_file: bool,
    /// The length of its text, in UTF-16 code units.
    pub length: i64,
    /// Where the lines of breakpoints are in it, or in its source.
    pub placements: LinePlacements,
    /// What its last line names.
    pub map_address: String,
    /// Its map, once it was looked for.
    map: OnceLock<Option<Arc<ScriptMap>>>,
    /// Steps pass over it.
    pub is_skipped: bool,
}

impl LoadedScript {
    /// Its map, if it has one that was read.
    pub(crate) fn map(&self) -> Option<&Arc<ScriptMap>> {
        self.map.get()?.as_ref()
    }

    /// Keeps what was read; the first counts.
    pub(crate) fn keep_map(&self, map: Option<Arc<ScriptMap>>) {
        let _ = self.map.set(map);
    }

    /// Whether its map is still to be looked for.
    pub(crate) fn needs_map(&self) -> bool {
        !self.map_address.is_empty() && self.map.get().is_none()
    }

    /// Whether it is Node's own.
    pub(crate) fn is_internal(&self) -> bool {
        self.url.starts_with("node:")
    }

    /// How it is named to users when it has no file.
    pub(crate) fn display_name(&self) -> String {
        match self.url.strip_prefix("node:") {
            Some(module) => format!("{NODE_INTERNALS}{module}"),
            None if self.url.is_empty() => format!("<eval>/VM{}", self.id),
            None => self.url.clone(),
        }
    }

    /// Whether the map says that the script was made of a file with its own path, as compilers in memory do.
    pub(crate) fn is_own_source(&self) -> bool {
        self.path.as_ref().is_some_and(|path| self.map().is_some_and(|map| map.has_source(path)))
    }
}

/// The scripts of an isolate by their id.
#[derive(Default)]
pub(crate) struct ScriptTable {
    scripts: HashMap<String, Arc<LoadedScript>>,
}

impl ScriptTable {
    /// Adds a script that was parsed, and its file. `None`: it has no name, as a condition that is evaluated, or there are too
    /// many.
    pub(crate) fn add(
        &mut self,
        parsed: &ParsedScript,
        path: Option<PathBuf>,
        skip: &SkipPatterns,
    ) -> Option<Arc<LoadedScript>> {
        if self.scripts.len() >= MAX_SCRIPTS || parsed.url.is_empty() {
            return None;
        }
        let is_skipped = skip.is_skipped(&parsed.url, path.as_deref());
        let script = Arc::new(LoadedScript {
            id: parsed.script_id.clone(),
            url: parsed.url.clone(),
            is_whole_file: path.is_some() && parsed.start_line == 0 && parsed.start_column == 0,
            length: parsed.length,
            placements: LinePlacements::default(),
            path,
            map_address: parsed.source_map_url.clone(),
            map: OnceLock::new(),
            is_skipped,
        });
        self.scripts.insert(script.id.clone(), Arc::clone(&script));
        Some(script)
    }

    /// The script with that id.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<LoadedScript>> {
        self.scripts.get(id).cloned()
    }

    /// All scripts are gone.
    pub(crate) fn clear(&mut self) {
        self.scripts.clear();
    }

    /// The latest scripts that are versions of a file, at most so many.
    pub(crate) fn latest_versions(&self, file: &Path, most: usize) -> Vec<Arc<LoadedScript>> {
        let mut versions = self.select(|script| script.is_whole_file && script.path.as_deref() == Some(file));
        // The engine counts them.
        versions.sort_by_key(|script| std::cmp::Reverse(script.id.parse::<u64>().unwrap_or(0)));
        versions.truncate(most);
        versions
    }

    /// Those that are meant.
    pub(crate) fn select(&self, is_meant: impl Fn(&LoadedScript) -> bool) -> Vec<Arc<LoadedScript>> {
        self.scripts.values().filter(|script| is_meant(script)).cloned().collect()
    }
}

/// Which scripts steps pass over: `skipFiles` of launch.json.
#[derive(Clone, Debug, Default)]
pub(crate) struct SkipPatterns {
    files: GlobSet,
    skips_internals: bool,
}

impl SkipPatterns {
    /// The patterns of a configuration; without any, those of Node's own modules. Errors: one of them is no pattern.
    pub(crate) fn parse(patterns: Option<&[String]>) -> Result<SkipPatterns, String> {
        let Some(patterns) = patterns else {
            return Ok(SkipPatterns { files: GlobSet::empty(), skips_internals: true });
        };
        let mut builder = GlobSetBuilder::new();
        let mut skips_internals = false;
        for pattern in patterns {
            if pattern.starts_with("<node_internals>") {
                skips_internals = true;
            } else {
                let glob = Glob::new(pattern).map_err(|cause| format!("`skipFiles` has a bad pattern: {cause}"))?;
                builder.add(glob);
            }
        }
        let files = builder.build().map_err(|cause| format!("`skipFiles` has a bad pattern: {cause}"))?;
        Ok(SkipPatterns { files, skips_internals })
    }

    /// Whether steps pass over Node's own modules.
    pub(crate) fn skips_internals(&self) -> bool {
        self.skips_internals
    }

    fn is_skipped(&self, url: &str, path: Option<&Path>) -> bool {
        match path {
            Some(path) => self.files.is_match(path),
            None => self.files.is_match(url) || (self.skips_internals && url.starts_with("node:")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(id: &str, url: &str) -> ParsedScript {
        serde_json::from_value(serde_json::json!({"scriptId": id, "url": url})).unwrap()
    }

    #[test]
    fn scripts_know_their_file_and_whether_steps_pass_over_them() {
        let patterns = ["<node_internals>/**".to_owned(), "**/node_modules/**".to_owned()];
        let skip = SkipPatterns::parse(Some(&patterns)).unwrap();
        let mut table = ScriptTable::default();
        let mut add = |id: &str, url: &str| table.add(&parsed(id, url), crate::file_urls::file_path(url), &skip);
        let own = add("1", "file:///w/a%20b.js").unwrap();
        assert_eq!((own.path.as_deref(), own.is_skipped), (Some(Path::new("/w/a b.js")), false));
        let internal = add("2", "node:internal/timers").unwrap();
        assert!(internal.is_skipped && internal.is_internal());
        assert_eq!(internal.display_name(), "<node_internals>/internal/timers");
        assert!(add("3", "file:///w/node_modules/x/i.js").unwrap().is_skipped);
        assert!(add("4", "http://localhost/node_modules/x.js").unwrap().is_skipped);
        assert!(add("5", "").is_none());
        assert_eq!(table.select(|script| !script.is_skipped).len(), 1);
        assert!(SkipPatterns::parse(None).unwrap().skips_internals());
        assert!(SkipPatterns::parse(Some(&["[".to_owned()])).is_err());
    }
}
