//! The folder of a package, and its manifest, `package.json`, as npm and Node read it.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use tether_base::bounded_file::{self, Links};

/// Where packages are installed.
const FOLDER: &str = "node_modules";
/// The largest manifest that is read, in bytes.
const MAX_MANIFEST: u64 = 1 << 20;

/// The manifest of the package in a folder. `None`: there is none that can be read. Blocks.
pub(crate) fn read_manifest(folder: &Path) -> Option<Value> {
    let text = bounded_file::read_file(&folder.join("package.json"), MAX_MANIFEST, Links::Follow).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The folder of the package in `node_modules` that a file is of.
pub(crate) fn package_folder(file: &Path) -> Option<PathBuf> {
    let parts: Vec<Component<'_>> = file.components().collect();
    let modules = parts.iter().rposition(|part| part.as_os_str() == FOLDER)?.saturating_add(1);
    let is_scope = parts.get(modules)?.as_os_str().to_string_lossy().starts_with('@');
    let end = modules.saturating_add(if is_scope { 2 } else { 1 });
    // Behind it is the file itself.
    (end < parts.len()).then(|| parts.iter().take(end).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_of_the_innermost_package() {
        let check = |file: &str, expect: Option<&str>| {
            assert_eq!(package_folder(Path::new(file)).as_deref(), expect.map(Path::new), "{file}");
        };
        check("/w/node_modules/lib/src/a.ts", Some("/w/node_modules/lib"));
        check("/w/node_modules/@a/lib/a.js", Some("/w/node_modules/@a/lib"));
        check(
            "/w/node_modules/.pnpm/lib@1/node_modules/lib/a.js",
            Some("/w/node_modules/.pnpm/lib@1/node_modules/lib"),
        );
        check("/w/node_modules/lib", None);
        check("/w/src/a.ts", None);
    }
}
