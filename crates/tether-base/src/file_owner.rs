//! Whose files are: those of other people are not searched for, as git's `safe.directory` has it.
//!
//! A folder that everybody may write, such as `/tmp`, may have anybody's files above a workspace. Does not depend on any
//! other module.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether `name` (a file or folder, maybe below others) is there in `folder`, and all of it, with `folder`, belongs to
/// our user or root. A link belongs to whom it belongs, wherever it leads.
pub fn has_own(folder: &Path, name: &str) -> bool {
    let path = folder.join(name);
    path.ancestors().take_while(|part| part.starts_with(folder)).all(is_own)
}

/// The owner of a path, itself and not what it links to, if that is another user than ours and root.
pub fn other_owner(path: &Path) -> Option<u32> {
    let owner = path.symlink_metadata().ok()?.uid();
    (![rustix::process::geteuid().as_raw(), 0].contains(&owner)).then_some(owner)
}

/// Whether a path, itself and not what it links to, belongs to our user or root.
fn is_own(path: &Path) -> bool {
    path.symlink_metadata().is_ok() && other_owner(path).is_none()
}

/// Who has put a file into a folder in which everybody may write: its owner, if that is neither our user nor root nor the
/// owner of the folder. A `.vscode` is such a file itself. Where only some may write, the folder's owner has chosen them.
pub fn stranger_of(file: &Path) -> Option<u32> {
    let (owner, folder) = (file.symlink_metadata().ok()?.uid(), file.parent()?);
    let shared = folder.metadata().is_ok_and(|folder| folder.uid() != owner && folder.mode() & 0o002 != 0);
    if shared && other_owner(file).is_some() {
        return Some(owner);
    }
    stranger_of(folder).filter(|_| folder.ends_with(".vscode"))
}
