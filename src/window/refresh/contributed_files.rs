//! The files that VS Code's workbench reads for an extension and keeps: what its package.json `contributes`, such as grammars,
//! snippets and themes, and the files that these name. A new extension host reads none of them again.
//!
//! They may be written by the build, and so be tracked by nothing else. Reads files; does not depend on windows.

use std::collections::BTreeMap;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tether_base::bounded_file::{self, Links};

use crate::config::normalize_path;

/// In bytes; a longer file counts by its size and time.
const MAX_FILE: u64 = 4 << 20;
/// Of all extensions: further ones are not read. Icon themes name thousands.
const MAX_FILES: usize = 5_000;
/// How far files are followed that a contributed file names: a theme includes another one.
const MAX_DEPTH: usize = 4;
/// A longer text is the name of no file.
const MAX_NAME: usize = 1_024;

/// The contributed files of some extensions, with their contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContributedFiles(BTreeMap<PathBuf, Option<u64>>);

impl ContributedFiles {
    /// Reads the files of the extensions in these folders.
    pub fn read(extensions: &[PathBuf]) -> ContributedFiles {
        let mut files = ContributedFiles::default();
        for extension in extensions {
            files.read_extension(extension);
        }
        files
    }

    /// Whether a file was written after `since_ms` (epoch milliseconds), for a window whose files are not known.
    pub fn is_any_newer(&self, since_ms: u64) -> bool {
        self.0.keys().any(|file| modified_ms(file).is_some_and(|at| at > since_ms))
    }

    fn read_extension(&mut self, folder: &Path) {
        let manifest = folder.join("package.json");
        let text = self.add(&manifest).unwrap_or_default();
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_translation = |file: &PathBuf| {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("package.nls") && name.ends_with(".json")
        };
        for file in entries.filter(is_translation) {
            self.add(&file);
        }
        let manifest: Value = serde_json::from_str(&text).unwrap_or_default();
        self.add_named(folder, &manifest["contributes"], 0);
        self.add_named(folder, &manifest["icon"], 0);
        let bundles = manifest["l10n"].as_str().filter(|name| name.len() <= MAX_NAME).map(|name| folder.join(name));
        for file in bundles.into_iter().flat_map(fs::read_dir).flatten().flatten() {
            self.add(&file.path());
        }
    }

    /// Adds each file that a text in `value` names, relative to `folder`.
    fn add_named(&mut self, folder: &Path, value: &Value, depth: usize) {
        match value {
            Value::String(name) => self.add_file(folder, name, depth),
            Value::Array(values) => values.iter().for_each(|value| self.add_named(folder, value, depth)),
            Value::Object(members) => members.values().for_each(|value| self.add_named(folder, value, depth)),
            _ => {}
        }
    }

    fn add_file(&mut self, folder: &Path, name: &str, depth: usize) {
        // A reference within a JSON schema: `./other.json#/definitions/x`.
        let name = name.split('#').next().unwrap_or_default();
        if name.is_empty() || name.len() > MAX_NAME || name.contains(['\0', '\n']) {
            return;
        }
        let file = normalize_path(&folder.join(name));
        if self.0.contains_key(&file) || self.0.len() >= MAX_FILES {
            return;
        }
        // One that is not there may be written later; most texts are no names of files, though.
        let is_file = file.is_file();
        if !is_file && !looks_like_file(name) {
            return;
        }
        let text = self.add(&file).unwrap_or_default();
        let below = file.parent().unwrap_or(folder);
        if depth < MAX_DEPTH && is_file {
            for named in named_texts(&text) {
                self.add_file(below, &named, depth + 1);
            }
        }
    }

    /// Adds a file; returns its text, if it is one.
    fn add(&mut self, file: &Path) -> Option<String> {
        let content = bounded_file::read_file(file, MAX_FILE, Links::Follow).ok();
        let mut hasher = std::hash::DefaultHasher::new();
        let metadata = || Some((fs::metadata(file).ok()?.len(), modified_ms(file)?));
        let digest = match &content {
            Some(content) => {
                hasher.write(content);
                Some(hasher.finish())
            }
            // Too long to be read.
            None => metadata().map(|(length, modified)| {
                hasher.write_u64(length);
                hasher.write_u64(modified);
                hasher.finish()
            }),
        };
        self.0.insert(file.to_owned(), digest);
        String::from_utf8(content?).ok()
    }
}

fn modified_ms(file: &Path) -> Option<u64> {
    let modified = fs::metadata(file).ok()?.modified().ok()?;
    Some(modified.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis() as u64)
}

fn looks_like_file(name: &str) -> bool {
    let name = Path::new(name);
    name.is_relative()
        && name.components().count() > 1
        && name.extension().is_some()
        && !name.display().to_string().contains(' ')
}

/// The texts in a contributed file that may name others: strings of JSON, targets of links in Markdown and SVG.
fn named_texts(text: &str) -> Vec<String> {
    let words = text.split(['"', '\'', '(', ')', '<', '>']);
    let is_name = |word: &&str| {
        !word.is_empty() && word.len() <= MAX_NAME && word.contains('.') && !word.contains(char::is_whitespace)
    };
    words.filter(is_name).map(|word| word.replace("\\/", "/")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Each file that decides what the workbench shows, with its text.
    const INPUTS: &[(&str, &str)] = &[
        ("package.nls.json", "{}"),
        ("package.nls.de.json", "{}"),
        ("l10n/bundle.l10n.de.json", "{}"),
        ("images/icon.png", "\u{1}"),
        ("syntaxes/x.tmLanguage.json", r#"{"scopeName": "source.x"}"#),
        ("snippets/x.code-snippets", "{}"),
        ("language-configuration.json", r#"{"comments": {"lineComment": "//"}}"#),
        ("icons/light.svg", "<svg/>"),
        ("icons/dark.svg", "<svg/>"),
        ("themes/dark.json", r#"{"include": "./base.json", "tokenColors": "./tokens.tmTheme"}"#),
        ("themes/base.json", "{}"),
        ("themes/tokens.tmTheme", "<plist/>"),
        (
            "fileicons/theme.json",
            r#"{"iconDefinitions": {"a": {"iconPath": ".\/svg\/a.svg"}}, "fonts": [{"src": [{"path": "./a.woff"}]}]}"#,
        ),
        ("fileicons/svg/a.svg", "<svg/>"),
        ("fileicons/a.woff", "font"),
        ("schemas/x.json", r##"{"$ref": "../schemas/other.json#/definitions/a"}"##),
        ("schemas/other.json", "{}"),
        ("walkthrough/first.md", "# First\n![picture](pictures/first.png)"),
        ("walkthrough/pictures/first.png", "png"),
        ("walkthrough/dark.svg", "<svg/>"),
        ("translations/main.i18n.json", "{}"),
        ("product-icons.json", "{}"),
    ];

    fn manifest() -> Value {
        json!({"name": "x", "main": "./out/main.js", "icon": "images/icon.png", "l10n": "./l10n", "contributes": {
            "grammars": [{"language": "x", "scopeName": "source.x", "path": "./syntaxes/x.tmLanguage.json"}],
            "snippets": [{"language": "x", "path": "./snippets/x.code-snippets"}],
            "languages": [{"id": "x", "configuration": "./language-configuration.json", "extensions": [".x"],
                "icon": {"light": "./icons/light.svg", "dark": "./icons/dark.svg"}}],
            "themes": [{"label": "Dark", "uiTheme": "vs-dark", "path": "./themes/dark.json"}],
            "iconThemes": [{"id": "f", "path": "./fileicons/theme.json"}],
            "productIconThemes": [{"id": "p", "path": "./product-icons.json"}],
            "jsonValidation": [{"fileMatch": "*.x", "url": "./schemas/x.json"}],
            "walkthroughs": [{"id": "w", "steps": [{"id": "1", "media": {"markdown": "walkthrough/first.md"}},
                {"id": "2", "media": {"image": {"dark": "walkthrough/dark.svg"}, "altText": "Some text."}}]}],
            "localizations": [{"languageId": "de", "translations": [{"id": "vscode", "path": "./translations/main.i18n.json"}]}],
        }})
    }

    #[test]
    fn each_contributed_file_counts_alone_and_the_code_does_not() {
        let extension = tempfile::tempdir().unwrap();
        let folder = extension.path().canonicalize().unwrap();
        write(&folder, "package.json", &manifest().to_string());
        INPUTS.iter().for_each(|(name, text)| write(&folder, name, text));
        write(&folder, "out/main.js", "one");
        let extensions = [folder.clone()];
        let built = ContributedFiles::read(&extensions);
        assert_eq!(ContributedFiles::read(&extensions), built);
        let manifest = manifest().to_string();
        for (name, text) in INPUTS.iter().chain(&[("package.json", manifest.as_str())]) {
            write(&folder, name, &format!("{text} "));
            assert_ne!(ContributedFiles::read(&extensions), built, "{name} was changed");
            fs::remove_file(folder.join(name)).unwrap();
            assert_ne!(ContributedFiles::read(&extensions), built, "{name} was removed");
            write(&folder, name, text);
            assert_eq!(ContributedFiles::read(&extensions), built, "{name} is as it was");
        }
        for name in ["out/main.js", "src/main.ts", "README.md", "node_modules/a/package.json"] {
            write(&folder, name, "two");
            assert_eq!(ContributedFiles::read(&extensions), built, "{name}");
        }
    }

    #[test]
    fn a_contributed_file_that_is_not_there_counts_once_it_is_written() {
        let extension = tempfile::tempdir().unwrap();
        let folder = extension.path().canonicalize().unwrap();
        write(&folder, "package.json", &manifest().to_string());
        let before = ContributedFiles::read(std::slice::from_ref(&folder));
        write(&folder, "syntaxes/x.tmLanguage.json", "{}");
        assert_ne!(ContributedFiles::read(std::slice::from_ref(&folder)), before);
    }

    #[test]
    fn files_that_name_each_other_and_strange_manifests_end() {
        let extension = tempfile::tempdir().unwrap();
        let folder = extension.path().canonicalize().unwrap();
        write(
            &folder,
            "package.json",
            r#"{"contributes": {"themes": [{"path": "./a.json"}, 1, null, {"path": "\u0000"}]}}"#,
        );
        write(&folder, "a.json", r#"{"include": "./b.json"}"#);
        write(&folder, "b.json", r#"{"include": "./a.json"}"#);
        assert_eq!(ContributedFiles::read(std::slice::from_ref(&folder)).0.len(), 3);
        assert!(ContributedFiles::read(std::slice::from_ref(&folder)).is_any_newer(1));
        assert!(!ContributedFiles::read(std::slice::from_ref(&folder)).is_any_newer(u64::MAX));
        for manifest in ["", "[]", "{", r#"{"contributes": 1, "l10n": 7}"#] {
            write(&folder, "package.json", manifest);
            ContributedFiles::read(std::slice::from_ref(&folder));
        }
    }
}
