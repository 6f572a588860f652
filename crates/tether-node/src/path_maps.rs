//! Folders that a program has elsewhere, as in a container: its files by their names here, and the other way around.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::source_maps::normalize_path;

/// A folder here, and the same folder as the program names it; both absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PathMap {
    local: PathBuf,
    remote: PathBuf,
}

/// All of them, the innermost folder of the program first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathMaps(Vec<PathMap>);

impl PathMaps {
    /// `pairs`: a folder here, which may be relative to `cwd`, and the program's name of it. Errors: that is not absolute.
    pub(crate) fn new(pairs: Vec<(String, String)>, cwd: &Path) -> Result<PathMaps, String> {
        let map = |(local, remote): (String, String)| {
            let remote = normalize_path(Path::new(&remote));
            if !remote.is_absolute() {
                return Err(format!("the program's folder {} is not an absolute path", remote.display()));
            }
            let local = normalize_path(&cwd.join(local));
            Ok(PathMap { local: local.canonicalize().unwrap_or(local), remote })
        };
        let mut maps = pairs.into_iter().map(map).collect::<Result<Vec<_>, _>>()?;
        maps.sort_by_key(|map| Reverse(map.remote.components().count()));
        Ok(PathMaps(maps))
    }

    /// The pairs of `[{"local": …, "remote": …}]`. Errors: it is of another form.
    pub(crate) fn parse_pairs(list: &Value) -> Result<Vec<(String, String)>, String> {
        let text = |pair: &Value, name: &str| pair.get(name)?.as_str().map(str::to_owned);
        let pair = |pair: &Value| Some((text(pair, "local")?, text(pair, "remote")?));
        let pairs = list.as_array().and_then(|list| list.iter().map(pair).collect());
        pairs.ok_or_else(|| format!("{list} is not a list of folders"))
    }

    /// The name here of a file of the program.
    pub(crate) fn local_file(&self, file: PathBuf) -> PathBuf {
        let moved = self.0.iter().find_map(|map| Some(map.local.join(file.strip_prefix(&map.remote).ok()?)));
        moved.unwrap_or(file)
    }

    /// The names that a file here may have in the program, beside its own.
    pub(crate) fn program_files(&self, file: &Path) -> Vec<PathBuf> {
        self.0.iter().filter_map(|map| Some(map.remote.join(file.strip_prefix(&map.local).ok()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn maps(pairs: &[(&str, &str)]) -> PathMaps {
        let pairs = pairs.iter().map(|(local, remote)| ((*local).to_owned(), (*remote).to_owned())).collect();
        PathMaps::new(pairs, Path::new("/w")).unwrap()
    }

    #[test]
    fn files_have_their_names_here_and_there() {
        let maps = maps(&[(".", "/app/"), ("packages/lib/../lib", "/app/node_modules/lib")]);
        let local = |file: &str| maps.local_file(file.into());
        assert_eq!(local("/app/src/a.js"), Path::new("/w/src/a.js"));
        assert_eq!(local("/app/node_modules/lib/a.js"), Path::new("/w/packages/lib/a.js"));
        assert_eq!(local("/application/a.js"), Path::new("/application/a.js"));
        assert_eq!(maps.program_files(Path::new("/w/src/a.js")), [Path::new("/app/src/a.js")]);
        assert_eq!(
            maps.program_files(Path::new("/w/packages/lib/a.js")),
            [Path::new("/app/node_modules/lib/a.js"), Path::new("/app/packages/lib/a.js")]
        );
        assert!(maps.program_files(Path::new("/x/a.js")).is_empty());
    }

    #[test]
    fn what_is_no_folder_of_a_program_is_refused() {
        let refused = PathMaps::new(vec![(".".to_owned(), "app".to_owned())], Path::new("/w")).unwrap_err();
        assert_eq!(refused, "the program's folder app is not an absolute path");
        assert!(PathMaps::parse_pairs(&json!([{"local": "a"}])).unwrap_err().contains("not a list of folders"));
        let pairs = PathMaps::parse_pairs(&json!([{"local": "a", "remote": "/b"}])).unwrap();
        assert_eq!(pairs, [("a".to_owned(), "/b".to_owned())]);
    }
}
