//! The manifest of a package, `package.json`, as npm and Node read it.

use std::path::Path;

use serde_json::Value;
use tether_base::bounded_file::{self, Links};

/// The largest manifest that is read, in bytes.
const MAX_MANIFEST: u64 = 1 << 20;

/// The manifest of the package in a folder. `None`: there is none that can be read. Blocks.
pub(crate) fn read_manifest(folder: &Path) -> Option<Value> {
    let text = bounded_file::read_file(&folder.join("package.json"), MAX_MANIFEST, Links::Follow).ok()?;
    serde_json::from_slice(&text).ok()
}
