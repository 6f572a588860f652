//! Source maps: from a place in a script to the place in the source that it was made of, and back.
//!
//! Of a script with a file, only a map below the program's own folders is read, from the script itself or from a local file;
//! `web_files` knows the maps of a page.

use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sourcemap::{DecodedMap, SourceMap, Token};
use tether_base::bounded_file::{self, Links};
use tether_base::line_anchor::SourceLines;

use super::file_urls::{file_path, file_url_pattern};
use super::map_size::{MAX_MAP_ENTRIES, MAX_SOURCES, count_entries};
use super::package_manifest::package_folder;
use super::path_maps::PathMaps;

/// The largest map that is read, in bytes.
pub(crate) const MAX_MAP: u64 = 64 << 20;

/// A map that was read; lines and columns are 0-based, columns in UTF-16 code units.
pub(crate) struct ScriptMap {
    map: SourceMap,
    /// How many entries it has, at most.
    pub entries: usize,
    /// The absolute path of each source, by its number in the map; none: it is of no folder of the program.
    sources: Vec<Option<PathBuf>>,
}

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OriginalPlace {
    pub path: PathBuf,
    pub line: i64,
    pub column: i64,
    /// The number of the source in its map.
    pub source: u32,
}

/// Which maps are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapFolders {
    /// The folders of the program itself.
    pub roots: Vec<PathBuf>,
    /// Sources with names of a bundler (`webpack://name/./src/a.ts`) are below this folder.
    pub cwd: PathBuf,
    /// What the server of a page serves; none: the program is no page.
    pub web_root: Option<PathBuf>,
    /// Scripts are named over links (`--preserve-symlinks`).
    pub keeps_links: bool,
    /// Where the program has its files, if it runs elsewhere.
    pub paths: PathMaps,
}

impl MapFolders {
    /// Whether the map of a script is read: it is the user's own.
    pub(crate) fn covers(&self, script: &Path) -> bool {
        !is_dependency(script) && self.roots.iter().any(|root| script.starts_with(root))
    }

    /// The file of a script without links.
    pub(crate) fn real_file(&self, file: PathBuf) -> PathBuf {
        if self.keeps_links { file.canonicalize().unwrap_or(file) } else { file }
    }

    /// A pattern (of JavaScript) for the URLs that a file has in the program; `names` are its names here.
    pub(crate) fn file_pattern(&self, names: &[&Path]) -> String {
        let elsewhere: Vec<PathBuf> = names.iter().flat_map(|name| self.paths.program_files(name)).collect();
        let all: Vec<&Path> = names.iter().copied().chain(elsewhere.iter().map(PathBuf::as_path)).collect();
        file_url_pattern(&all)
    }

    /// Why the map of a script that is not covered is not read.
    pub(crate) fn exclusion(&self, script: &Path) -> &'static str {
        if is_dependency(script) { "it is in node_modules" } else { "it is outside of the program's folders" }
    }

    /// Reads the map of a script: `address` is what its last line names. Blocks. Errors: it cannot be read.
    /// A map may have no more than `most` entries.
    pub(crate) fn read_map(&self, script: &Path, address: &str, most: usize) -> Result<ScriptMap, String> {
        if address.starts_with("data:") {
            return Ok(self.local_map(decode_inline_map(address, most)?, script));
        }
        let file = self.map_file(script, address).ok_or_else(|| format!("{address} is not a local file"))?;
        let is_of_package = package_folder(script).is_some_and(|package| file.starts_with(package));
        // A build may have its maps beside the folder of the program: by their ending they are nothing else.
        if !self.covers(&file) && !is_of_package && file.extension().is_none_or(|ending| ending != "map") {
            return Err(format!("{} is outside of the program's folders", file.display()));
        }
        let in_file = |cause: String| format!("{}: {cause}", file.display());
        let bytes =
            bounded_file::read_file(&file, MAX_MAP, Links::Follow).map_err(|cause| in_file(cause.to_string()))?;
        Ok(self.local_map(decode_map(&bytes, most).map_err(in_file)?, &file))
    }

    /// `base`: the file that the names of the sources are relative to.
    fn local_map(&self, map: DecodedScriptMap, base: &Path) -> ScriptMap {
        let folder = base.parent().unwrap_or(Path::new("/"));
        ScriptMap::new(map, |name| Some(self.source_path(folder, name)))
    }

    pub(super) fn source_path(&self, folder: &Path, name: &str) -> PathBuf {
        if let Some(path) = name.strip_prefix("file://").map(|_| name).and_then(file_path) {
            return self.paths.local_file(path);
        }
        if let Some((scheme, rest)) = name.split_once("://")
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        {
            // `webpack://name/./src/a.ts`, `webpack:///src/a.ts`
            let path = rest.split_once('/').map_or(rest, |(_, path)| path);
            return normalize_path(&self.cwd.join(path.trim_start_matches('/')));
        }
        let path = normalize_path(&folder.join(name));
        if name.starts_with('/') { self.paths.local_file(path) } else { path }
    }

    fn map_file(&self, script: &Path, address: &str) -> Option<PathBuf> {
        if address.contains("://") {
            return file_path(address).map(|file| self.paths.local_file(file));
        }
        let folder = url::Url::from_directory_path(script.parent()?).ok()?;
        folder.join(address).ok()?.to_file_path().ok()
    }
}

fn is_dependency(script: &Path) -> bool {
    script.components().any(|part| part.as_os_str() == "node_modules")
}

/// A map that was decoded, and how many entries it has at most.
pub(crate) struct DecodedScriptMap {
    map: SourceMap,
    entries: usize,
}

impl DecodedScriptMap {
    /// The map itself.
    pub(crate) fn into_map(self) -> SourceMap {
        self.map
    }
}

/// Decodes a map that its script has in a `data:` URL. Errors: it is none, or has more than `most` entries.
pub(crate) fn decode_inline_map(address: &str, most: usize) -> Result<DecodedScriptMap, String> {
    let (kind, data) = address.split_once(";base64,").ok_or("its `data:` URL is not in base64")?;
    if !kind.starts_with("data:application/json") {
        return Err("its `data:` URL is not JSON".to_owned());
    }
    decode_map(&STANDARD.decode(data).map_err(|cause| cause.to_string())?, most)
}

/// Decodes the text of a map. Errors: it is none, or has more than `most` entries.
pub(crate) fn decode_map(text: &[u8], most: usize) -> Result<DecodedScriptMap, String> {
    let (entries, most) = (count_entries(text), most.min(MAX_MAP_ENTRIES));
    if entries > most {
        return Err(format!("it has {entries} entries, of which {most} can be read"));
    }
    let map = match sourcemap::decode_slice(text).map_err(|cause| cause.to_string())? {
        DecodedMap::Regular(map) => map,
        DecodedMap::Index(index) => index.flatten().map_err(|cause| cause.to_string())?,
        DecodedMap::Hermes(_) => return Err("maps of Hermes are not supported".to_owned()),
    };
    if map.get_source_count() as usize > MAX_SOURCES {
        return Err(format!("it names {} sources, of which {MAX_SOURCES} can be read", map.get_source_count()));
    }
    Ok(DecodedScriptMap { map, entries })
}

/// Without `.` and `..`, as text: the path need not exist.
pub(crate) fn normalize_path(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

impl ScriptMap {
    /// A map whose sources have the paths that `find` gives for their names.
    pub(crate) fn new(decoded: DecodedScriptMap, find: impl Fn(&str) -> Option<PathBuf>) -> ScriptMap {
        let DecodedScriptMap { map, entries } = decoded;
        let sources = map.sources().map(find).collect();
        ScriptMap { map, entries, sources }
    }

    /// Whether the script was made of a file.
    pub(crate) fn has_source(&self, file: &Path) -> bool {
        self.sources.iter().flatten().any(|source| source == file)
    }

    /// The text that a file had, if the map has it.
    pub(crate) fn text_of(&self, file: &Path) -> Option<&str> {
        let source = self.sources.iter().position(|source| source.as_deref() == Some(file))?;
        self.source_text(u32::try_from(source).ok()?)
    }

    /// The lines of a file as the script was made of it, if the map has them.
    pub(crate) fn source_lines(&self, file: &Path) -> Option<SourceLines<'_>> {
        self.text_of(file).map(SourceLines::of)
    }

    /// The text of a source, if the map has it.
    pub(crate) fn source_text(&self, source: u32) -> Option<&str> {
        self.map.get_source_contents(source)
    }

    /// The source of a place in the script. `None`: the code was made by the compiler.
    pub(crate) fn original_place(&self, line: i64, column: i64) -> Option<OriginalPlace> {
        let (line, column) = (u32::try_from(line).ok()?, u32::try_from(column).ok()?);
        let token = self.map.lookup_token(line, column).filter(|token| token.get_dst_line() == line)?;
        let source = token.has_source().then(|| token.get_src_id())?;
        let path = self.sources.get(usize::try_from(source).ok()?)?.clone()?;
        Some(OriginalPlace { path, line: token.get_src_line().into(), column: token.get_src_col().into(), source })
    }

    /// The place in the script of a line of a source: the first that was made of it, or of the next line with code.
    pub(crate) fn generated_place(&self, path: &Path, line: i64, column: i64) -> Option<(i64, i64)> {
        let is_named = |source: &Option<PathBuf>| source.as_deref() == Some(path);
        let last = self.sources.iter().rposition(is_named)?;
        let first = self.sources.iter().position(is_named)?;
        // By their numbers: a map may have millions of entries. One path may have several numbers.
        let of_source = |token: &Token<'_>| {
            let number = token.get_src_id() as usize;
            (first..=last).contains(&number)
                && token.has_source()
                && (first == last || self.sources.get(number).is_some_and(is_named))
                && (i64::from(token.get_src_line()), i64::from(token.get_src_col())) >= (line, column)
        };
        let found = self.map.tokens().filter(of_source).min_by_key(|token| (token.get_src(), token.get_dst()))?;
        Some((found.get_dst_line().into(), found.get_dst_col().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders() -> MapFolders {
        MapFolders { roots: vec!["/w".into()], cwd: "/w".into(), ..MapFolders::default() }
    }

    #[test]
    fn sources_are_found_by_the_forms_of_their_names() {
        let path = |name: &str| folders().source_path(Path::new("/w/out"), name);
        assert_eq!(path("../src/a.ts"), Path::new("/w/src/a.ts"));
        assert_eq!(path("file:///w/b%20c.ts"), Path::new("/w/b c.ts"));
        assert_eq!(path("webpack://app/./src/a.ts"), Path::new("/w/src/a.ts"));
        assert_eq!(path("webpack:///src/a.ts"), Path::new("/w/src/a.ts"));
        assert_eq!(path("/x/a.ts"), Path::new("/x/a.ts"));
        let paths = PathMaps::new(vec![(".".to_owned(), "/app".to_owned())], Path::new("/w")).unwrap();
        let elsewhere = MapFolders { paths, ..folders() };
        let path = |name: &str| elsewhere.source_path(Path::new("/w/out"), name);
        for name in ["../src/a.ts", "/app/src/a.ts", "file:///app/src/a.ts"] {
            assert_eq!(path(name), Path::new("/w/src/a.ts"), "{name}");
        }
    }

    #[test]
    fn only_maps_of_the_users_own_scripts_are_read() {
        assert!(folders().covers(Path::new("/w/out/a.js")));
        assert!(!folders().covers(Path::new("/w/node_modules/x/a.js")) && !folders().covers(Path::new("/x/a.js")));
        let read = |address: &str| folders().read_map(Path::new("/w/out/a.js"), address, 9).err().unwrap();
        assert!(read("../../etc/passwd").contains("outside"));
        assert!(read("../../x/a.js.map").contains("No such file"), "beside the folder of the program");
        let foreign = folders().read_map(Path::new("/w/out/a.js"), "http://evil.example/a.js.map", 9);
        assert!(foreign.err().is_some_and(|cause| cause.contains("not a local file")));
    }

    #[test]
    fn places_are_mapped_in_both_directions() {
        let map = r#"{"version":3,"sources":["../src/a.ts"],"names":[],"mappings":";AACA;AAEA"}"#;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        std::fs::create_dir(root.join("out")).unwrap();
        std::fs::write(root.join("out/a.js.map"), map).unwrap();
        let folders = MapFolders { roots: vec![root.clone()], cwd: root.clone(), ..MapFolders::default() };
        let read = folders.read_map(&root.join("out/a.js"), "a.js.map", 100).unwrap();
        let refused = folders.read_map(&root.join("out/a.js"), "a.js.map", 5).err().unwrap();
        assert!(refused.contains("entries, of which 5 can be read"), "{refused}");
        let source = root.join("src/a.ts");
        assert!(read.has_source(&source) && !read.has_source(&root.join("out/a.js")));
        let original = |line| read.original_place(line, 3).map(|place| (place.line, place.column));
        assert_eq!((original(0), original(1), original(2), original(9)), (None, Some((1, 0)), Some((3, 0)), None));
        assert_eq!(read.generated_place(&source, 1, 0), Some((1, 0)));
        assert_eq!(read.generated_place(&source, 2, 0), Some((2, 0)), "the next line with code");
        assert_eq!(read.generated_place(&source, 4, 0), None);
        assert!(folders.read_map(&root.join("out/b.js"), "b.js.map", 100).is_err());
        assert!(folders.read_map(&root.join("out/b.js"), "data:application/json,{", 100).is_err());
    }
}
