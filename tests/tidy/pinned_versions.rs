//! One version of a tool in the whole checkout: what an npm project's manifest or lock says is what is pinned.
//!
//! Must not know where the pin comes from.

use serde_json::Value;

use crate::sources::File;

/// Of an example, or of the VS Code extension.
pub fn is_npm_manifest(file: &File) -> bool {
    (file.path.starts_with("examples/") || file.path.starts_with("extension/"))
        && (file.path.ends_with("package.json") || file.path.ends_with("package-lock.json"))
}

pub fn complaints(file: &File, pinned: &str) -> Vec<String> {
    let Ok(manifest) = serde_json::from_str::<Value>(&file.text) else {
        return vec![format!("{}: is not JSON", file.path)];
    };
    // In a manifest, and where a lock says what it installs.
    let places =
        ["/devDependencies/typescript", "/dependencies/typescript", "/packages/node_modules~1typescript/version"];
    let found = places.iter().filter_map(|place| manifest.pointer(place)?.as_str());
    let other = found.filter(|version| *version != pinned);
    other.map(|version| format!("{}: typescript {version}, but {pinned} is pinned", file.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_found_in_a_manifest_and_in_a_lock() {
        for (text, holds) in [
            (r#"{"devDependencies": {"typescript": "7.0.2"}}"#, true),
            (r#"{"devDependencies": {"typescript": "^7.0.2"}}"#, false),
            (r#"{"packages": {"node_modules/typescript": {"version": "6.0.0"}}}"#, false),
            (r#"{"name": "plain"}"#, true),
            ("{", false),
        ] {
            let found = complaints(&File::of("examples/a/package.json", text), "7.0.2");
            assert_eq!(found.is_empty(), holds, "{text}: {found:?}");
        }
    }
}
