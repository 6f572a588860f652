//! Which files the scripts of a page are, by their URL; which URLs a file may have; which maps a page's scripts have.
//!
//! A server is expected to serve its root folder, or one of the usual folders in it; Vite also serves `/@fs/PATH`. A page says
//! which URLs it has: only files below the program's own folders are meant by them.

use std::path::{Component, Path, PathBuf};

use url::Url;

use super::file_urls::file_path;
use super::source_maps::{DecodedScriptMap, MapFolders, ScriptMap, normalize_path};

/// Folders below the root whose content is served as if it lay in the root.
const SERVED_FOLDERS: [&str; 5] = ["public", "static", "www", "dist", "build"];
/// What is served for a folder.
const INDEX: &str = "index.html";

impl MapFolders {
    /// The file that a script is, without links. `None`: it has none; of a page, none below the program's own folders.
    pub(crate) fn script_file(&self, url: &str) -> Option<PathBuf> {
        if self.web_root.is_none() {
            return file_path(url).map(|file| self.real_file(self.paths.local_file(file)));
        }
        let file = self.served_files(&Url::parse(url).ok()?).into_iter().find(|file| file.is_file())?;
        file.canonicalize().ok().filter(|file| self.is_own(file))
    }

    /// The files that a server may send for a URL, the likeliest first.
    fn served_files(&self, url: &Url) -> Vec<PathBuf> {
        let (Some(root), Some(path)) = (&self.web_root, url_path(url)) else { return Vec::new() };
        if url.scheme() == "file" {
            return vec![path];
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Vec::new();
        }
        if let Ok(whole) = path.strip_prefix("/@fs") {
            return vec![Path::new("/").join(whole)];
        }
        let mut relative = path.strip_prefix("/").unwrap_or(&path).to_owned();
        if url.path().ends_with('/') {
            relative.push(INDEX);
        }
        let folders = std::iter::once("").chain(SERVED_FOLDERS);
        folders.map(|folder| root.join(folder).join(&relative)).collect()
    }

    /// Whether the map of a page's script is read: it is the user's own.
    pub(crate) fn covers_url(&self, url: &Url) -> bool {
        let mut parts = url.path_segments().into_iter().flatten();
        matches!(url.scheme(), "http" | "https") && !parts.any(|part| part == "node_modules")
    }

    /// The map of a page's script, whose sources are named relative to `base` and, if the script has a file, to that.
    pub(crate) fn web_map(&self, map: DecodedScriptMap, base: &Url, file: Option<&Path>) -> ScriptMap {
        ScriptMap::new(map, |name| self.web_source(base, file, name))
    }

    /// The file that a map calls so. `None`: it is of no folder of the program.
    fn web_source(&self, base: &Url, file: Option<&Path>, name: &str) -> Option<PathBuf> {
        let mut candidates = Vec::new();
        match name.split_once("://") {
            Some(("http" | "https" | "file", _)) => candidates.extend(self.served_files(&Url::parse(name).ok()?)),
            // `webpack://name/./src/a.ts`
            Some((_, rest)) => {
                let path = rest.split_once('/').map_or(rest, |(_, path)| path).trim_start_matches('/');
                candidates.extend(self.web_root.iter().chain([&self.cwd]).map(|folder| folder.join(path)));
            }
            None => {
                let folder = file.and_then(Path::parent).unwrap_or(Path::new("/"));
                if file.is_some() || name.starts_with('/') {
                    candidates.push(folder.join(name));
                }
                candidates.extend(base.join(name).ok().iter().flat_map(|url| self.served_files(url)));
            }
        }
        let own = |path: &PathBuf| {
            let path = normalize_path(path);
            let path = path.canonicalize().unwrap_or(path);
            self.is_own(&path).then_some(path)
        };
        let mut own: Vec<PathBuf> = candidates.iter().filter_map(own).collect();
        let found = own.iter().position(|path| path.is_file()).unwrap_or(0);
        (found < own.len()).then(|| own.swap_remove(found))
    }

    fn is_own(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// A pattern (of JavaScript) for the URLs that a file may have in a page; `paths` are its names.
    pub(crate) fn url_pattern(&self, paths: &[&Path]) -> String {
        let mut forms = Vec::new();
        for path in paths {
            forms.extend(Url::from_file_path(path).map(|url| escape_pattern(url.as_str())));
            let whole = path.strip_prefix("/").unwrap_or(path);
            forms.push(served_pattern(&Path::new("@fs").join(whole)));
            for root in self.web_root.iter().chain(&self.roots) {
                let Ok(relative) = path.strip_prefix(root) else { continue };
                let inner = SERVED_FOLDERS.iter().filter_map(|folder| relative.strip_prefix(folder).ok());
                for served in std::iter::once(relative).chain(inner) {
                    forms.push(served_pattern(served));
                    if served.ends_with(INDEX) {
                        forms.push(format!("{}\\/?", served_pattern(served.parent().unwrap_or(served))));
                    }
                }
            }
        }
        forms.sort_unstable();
        forms.dedup();
        format!("^(?:{})(?:[?#].*)?$", forms.join("|"))
    }
}

/// A URL as people are shown it: without its query, which may be long, and have secrets.
pub(crate) fn plain_url(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// The path of a URL, decoded. `None`: it leaves its root.
fn url_path(url: &Url) -> Option<PathBuf> {
    let mut file = Url::parse("file:///").ok()?;
    file.set_path(url.path());
    let path = file.to_file_path().ok()?;
    let stays = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    stays.then_some(path)
}

/// The URLs of a file that is served from there.
fn served_pattern(path: &Path) -> String {
    let path = Url::from_file_path(Path::new("/").join(path)).map(|url| url.path().to_owned());
    format!("https?:\\/\\/[^\\/]+{}", escape_pattern(path.unwrap_or_default().trim_end_matches('/')))
}

fn escape_pattern(text: &str) -> String {
    let escape = |c: char| if c.is_ascii_punctuation() && !"-_%".contains(c) { vec!['\\', c] } else { vec![c] };
    text.chars().flat_map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(root: &Path) -> MapFolders {
        MapFolders {
            roots: vec![root.to_owned()],
            cwd: root.to_owned(),
            web_root: Some(root.to_owned()),
            ..MapFolders::default()
        }
    }

    #[test]
    fn urls_of_a_page_are_files_below_its_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["public/plain.js", "src/a b.js", "index.html"] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
        let files = page(&root);
        let check = |url: &str, expected: Option<&str>| {
            assert_eq!(files.script_file(url), expected.map(|path| root.join(path)), "{url}");
        };
        check("http://localhost:1/src/a%20b.js?t=1#x", Some("src/a b.js"));
        check("https://localhost/plain.js", Some("public/plain.js"));
        check("http://localhost:1/", Some("index.html"));
        check(&format!("http://localhost:1/@fs{}/src/a%20b.js", root.display()), Some("src/a b.js"));
        check(&format!("file://{}/index.html", root.display()), Some("index.html"));
        for outside in [
            "http://localhost:1/@fs/etc/passwd",
            "file:///etc/passwd",
            "http://localhost:1/link",
            "http://localhost:1/src%2f..%2f..%2f..%2fetc/passwd",
            "chrome-extension://abc/index.html",
        ] {
            check(outside, None);
        }
    }

    #[test]
    fn sources_of_a_page_lie_below_its_folders() {
        let files = page(Path::new("/w"));
        let base = Url::parse("http://localhost:1/assets/app.js").unwrap();
        let check = |file: Option<&str>, name: &str, expected: Option<&str>| {
            let found = files.web_source(&base, file.map(Path::new), name);
            assert_eq!(found.as_deref(), expected.map(Path::new), "{name}");
        };
        check(None, "../../src/a.ts", Some("/w/src/a.ts"));
        check(None, "a.ts", Some("/w/assets/a.ts"));
        check(Some("/w/dist/assets/app.js"), "../../src/a.ts", Some("/w/src/a.ts"));
        check(None, "webpack://app/./src/a.ts", Some("/w/src/a.ts"));
        check(None, "/w/src/a.ts", Some("/w/src/a.ts"));
        check(None, "webpack://app/../../etc/passwd", None);
        check(None, "file:///etc/passwd", None);
        check(Some("/w/dist/app.js"), "../../../etc/passwd", Some("/w/etc/passwd"));
    }

    #[test]
    fn maps_are_read_of_the_users_own_scripts() {
        let covers = |url: &str| page(Path::new("/w")).covers_url(&Url::parse(url).unwrap());
        assert!(covers("http://localhost:1/src/a.ts?t=1"));
        assert!(!covers("http://localhost:1/node_modules/.vite/deps/react.js"));
        assert!(!covers("chrome-extension://abc/a.js"));
    }

    #[test]
    fn the_pattern_of_a_file_names_its_urls() {
        let pattern = page(Path::new("/w")).url_pattern(&[Path::new("/w/public/a b.js")]);
        let served = r"https?:\/\/[^\/]+";
        for form in [
            r"file\:\/\/\/w\/public\/a%20b\.js".to_owned(),
            format!(r"{served}\/public\/a%20b\.js"),
            format!(r"{served}\/a%20b\.js"),
            format!(r"{served}\/\@fs\/w\/public\/a%20b\.js"),
        ] {
            assert!(pattern.contains(&form), "{form} {pattern}");
        }
        assert!(pattern.starts_with("^(?:") && pattern.ends_with(r")(?:[?#].*)?$"), "{pattern}");
        let index = page(Path::new("/w")).url_pattern(&[Path::new("/w/index.html")]);
        assert!(index.contains(&format!(r"{served}\/?")), "{index}");
    }
}
