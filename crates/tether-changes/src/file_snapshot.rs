//! A snapshot of all tracked files of a workspace, and its file format.
//!
//! Owns the tree, its difference from another tree, and the file. Does not depend on how a tree is read or watched.
//!
//! The file: a line with format and version, 16 bytes of SHA-256 of the rest, then postcard. It is written as temp file
//! and renamed, so a reader finds the old one or the new one. It is not synced: after a power failure, which no window
//! outlives, the checksum tells whether it is whole.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tether_base::error::{Error, ErrorContext, Result};

use super::content_hash::half_sha256;
use super::folder_files::{FileStamp, FolderFiles};
use super::ignore_rules::RulesDigest;
use super::path_bytes;

const HEADER: &[u8] = b"devtether snapshot 1\n";

/// Every tracked folder by its path relative to the root (empty for the root). In byte order, so that everything below
/// a folder is in one range.
pub(super) type FolderTree = BTreeMap<Arc<[u8]>, Arc<FolderFiles>>;

/// The tracked files of a workspace at one time. Cheap to clone; unchanged folders are shared between snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSnapshot {
    pub(super) root: PathBuf,
    pub(super) rules: RulesDigest,
    pub(super) taken_at_ms: u64,
    pub(super) tree: Arc<FolderTree>,
}

/// A snapshot as it is in its file.
#[derive(Serialize, Deserialize)]
struct StoredSnapshot<'a> {
    root: Cow<'a, [u8]>,
    rules: RulesDigest,
    taken_at_ms: u64,
    folders: Vec<(Cow<'a, [u8]>, Cow<'a, FolderFiles>)>,
}

impl FileSnapshot {
    /// The number of tracked files.
    pub fn file_count(&self) -> usize {
        self.tree.values().map(|folder| folder.len()).sum()
    }

    /// The stamp of a tracked file, by its path relative to the root.
    pub fn stamp_of(&self, rel: &Path) -> Option<FileStamp> {
        stamp_of(&self.tree, path_bytes::as_bytes(rel))
    }

    /// The files that differ from another snapshot, relative to the root.
    pub fn changed_paths(&self, other: &FileSnapshot) -> Vec<PathBuf> {
        let mut differing = Vec::new();
        for folder in differing_folders(&self.tree, &other.tree) {
            let [here, there] = [&self.tree, &other.tree].map(|tree| tree.get(&folder).cloned().unwrap_or_default());
            let changed = here.files().filter(|(name, stamp)| there.stamp_of(name) != Some(*stamp));
            let gone = there.files().filter(|(name, _)| here.find(name).is_none());
            let path = |file| path_bytes::as_path(&path_bytes::join_path(&folder, file)).to_owned();
            differing.extend(changed.chain(gone).map(|(file, _)| path(file)));
        }
        differing
    }

    /// This snapshot with the mtime of every file newer than `ms` (epoch ms) set to 0, so that it counts as changed: a
    /// baseline for a window whose own is lost, but whose start is known. Files deleted since then are not detected.
    #[must_use]
    pub fn as_of(&self, ms: u64) -> FileSnapshot {
        let mut tree = (*self.tree).clone();
        for folder in tree.values_mut() {
            let newer = folder.files().filter(|(_, stamp)| stamp.modified_at_ms() > ms);
            let newer: Vec<_> =
                newer.map(|(name, stamp)| (name.to_vec(), FileStamp { mtime_ns: 0, ..stamp })).collect();
            if !newer.is_empty() {
                let edits: Vec<_> = newer.iter().map(|(name, stamp)| (&name[..], Some(*stamp))).collect();
                Arc::make_mut(folder).apply_edits(&edits);
            }
        }
        FileSnapshot { taken_at_ms: ms, tree: Arc::new(tree), ..self.clone() }
    }

    /// Writes the snapshot to `path` atomically, readable by the user only.
    pub fn save(&self, path: &Path) -> Result<()> {
        let doing = || format!("cannot save the snapshot of {} to {}", self.root.display(), path.display());
        let body = postcard::to_stdvec(&StoredSnapshot {
            root: path_bytes::as_bytes(&self.root).into(),
            rules: self.rules,
            taken_at_ms: self.taken_at_ms,
            folders: self.tree.iter().map(|(folder, files)| (Cow::from(&**folder), Cow::Borrowed(&**files))).collect(),
        });
        write_atomically(path, &body.doing(doing)?).doing(doing)
    }

    /// Reads the snapshot of the workspace at `root` from `path`; `None` when there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, of another version, or of another workspace. The next build replaces it.
    pub fn load(path: &Path, root: &Path) -> Result<Option<FileSnapshot>> {
        let doing = || format!("cannot use the snapshot {}", path.display());
        match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::other(doing()).because(error)),
            Ok(file) => FileSnapshot::parse_file(&file, root)
                .doing(doing)
                .map(Some)
                .map_err(|error| error.hint(format!("remove {}: the next build writes a new one", path.display()))),
        }
    }

    fn parse_file(file: &[u8], root: &Path) -> Result<FileSnapshot, String> {
        let rest = file.strip_prefix(HEADER).ok_or("it is not a snapshot of this version of devtether")?;
        let (sum, body) = rest.split_at_checked(16).ok_or("it is cut short")?;
        if *sum != half_sha256([body]) {
            return Err("it is damaged: the checksum does not fit".to_owned());
        }
        let read: StoredSnapshot<'_> = postcard::from_bytes(body).map_err(|error| format!("it is damaged: {error}"))?;
        if *read.root != *path_bytes::as_bytes(root) {
            return Err(format!("it is of {}, not of {}", path_bytes::as_path(&read.root).display(), root.display()));
        }
        if !read.folders.iter().all(|(_, folder)| folder.is_valid()) {
            return Err("it is damaged: a folder is not sound".to_owned());
        }
        let StoredSnapshot { rules, taken_at_ms, folders, .. } = read;
        let tree = folders.into_iter().map(|(path, folder)| (path.into(), Arc::new(folder.into_owned()))).collect();
        Ok(FileSnapshot { root: root.to_path_buf(), rules, taken_at_ms, tree: Arc::new(tree) })
    }
}

/// The stamp of the file `rel` in `tree`.
pub(super) fn stamp_of(tree: &FolderTree, rel: &[u8]) -> Option<FileStamp> {
    let (folder, name) = path_bytes::split_path(rel);
    tree.get(folder)?.stamp_of(name)
}

/// The known folders at and below `folder`.
pub(super) fn folders_below(tree: &FolderTree, folder: &[u8]) -> Vec<Arc<[u8]>> {
    let range = tree.range::<[u8], _>((std::ops::Bound::Included(folder), std::ops::Bound::Unbounded));
    // In byte order `a-b` is between `a` and `a/b`: the range ends with the prefix.
    let range = range.map(|(path, _)| path).take_while(|path| path.starts_with(folder));
    range.filter(|path| path[..] == *folder || path_bytes::is_below(path, folder)).cloned().collect()
}

/// The folders that are in one tree only or whose files differ. Shared folders cost one pointer comparison.
pub(super) fn differing_folders(one: &FolderTree, other: &FolderTree) -> Vec<Arc<[u8]>> {
    let mut differing = Vec::new();
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return differing,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((one, _)), Some((other, _))) => one.cmp(other),
        };
        let from_left = if order.is_le() { left.next() } else { None };
        let from_right = if order.is_ge() { right.next() } else { None };
        match (from_left, from_right) {
            (Some((_, one)), Some((_, other))) if Arc::ptr_eq(one, other) || one.has_same_files(other) => {}
            (Some((path, _)), _) | (None, Some((path, _))) => differing.push(Arc::clone(path)),
            (None, None) => {}
        }
    }
}

/// Replaces folders of `tree` by equal ones of `other`, and the whole tree if all are equal, so that two equal trees
/// need the memory of one.
pub(super) fn share_folders(tree: &mut Arc<FolderTree>, other: &Arc<FolderTree>) {
    let mut all = tree.len() == other.len();
    let shared = tree.iter().map(|(path, folder)| match other.get_key_value(path) {
        Some((path, twin)) if Arc::ptr_eq(folder, twin) || folder.has_same_files(twin) => {
            (Arc::clone(path), Arc::clone(twin))
        }
        _ => {
            all = false;
            (Arc::clone(path), Arc::clone(folder))
        }
    });
    let shared: FolderTree = shared.collect();
    *tree = if all { Arc::clone(other) } else { Arc::new(shared) };
}

fn write_atomically(path: &Path, body: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(HEADER)?;
    file.write_all(&half_sha256([body]))?;
    file.write_all(body)?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    fn tree() -> impl Strategy<Value = FolderTree> {
        let stamp = any::<(i64, u64, u64)>().prop_map(|(mtime_ns, size, inode)| FileStamp { mtime_ns, size, inode });
        let files = btree_map(vec(1u8..=255, 1..12), (stamp, any::<Option<[u8; 16]>>()), 0..6);
        let folder = files.prop_map(|files| {
            let mut folder = FolderFiles::new(files.iter().map(|(name, (stamp, _))| (&name[..], *stamp)).collect());
            let hashes: Vec<_> =
                files.values().enumerate().filter_map(|(index, (_, hash))| Some((index, (*hash)?))).collect();
            folder.set_hashes(&hashes);
            Arc::new(folder)
        });
        btree_map(vec(1u8..=255, 0..20).prop_map(Arc::from), folder, 0..8)
    }

    proptest! {
        // Few cases, as each one syncs a file to disk.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_loaded_snapshot_equals_the_saved_one(tree in tree(), rules: [u8; 16], taken_at_ms: u64) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("snapshot");
            let root = path_bytes::as_path(b"/ws/\xff").to_owned();
            let snapshot = FileSnapshot { root: root.clone(), rules, taken_at_ms, tree: Arc::new(tree) };
            snapshot.save(&path).unwrap();
            prop_assert_eq!(FileSnapshot::load(&path, &root).unwrap(), Some(snapshot));
        }

        #[test]
        fn a_damaged_file_is_an_error_and_never_a_panic(at in 0usize..1_000, with: u8, cut: bool) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("snapshot");
            let files = FolderFiles::new(vec![(b"a.txt", FileStamp { mtime_ns: 1, size: 2, inode: 3 })]);
            let tree = FolderTree::from([(Arc::from(&b""[..]), Arc::new(files))]);
            let root = PathBuf::from("/ws");
            let snapshot = FileSnapshot { root: root.clone(), rules: [1; 16], taken_at_ms: 5, tree: Arc::new(tree) };
            snapshot.save(&path).unwrap();
            let mut file = fs::read(&path).unwrap();
            let at = at % file.len();
            if cut { file.truncate(at) } else { file[at] ^= with.max(1) }
            fs::write(&path, file).unwrap();
            let error = FileSnapshot::load(&path, &root).unwrap_err().to_string();
            prop_assert!(error.contains("cannot use the snapshot") && error.contains("hint: remove"), "{error}");
        }
    }

    #[test]
    fn changed_paths_are_the_files_that_differ() {
        let stamp = |ms: i64| FileStamp { mtime_ns: ms * 1_000_000, size: 1, inode: 1 };
        let snapshot = |folders: &[(&str, &[(&str, i64)])]| {
            let folder = |files: &[(&str, i64)]| {
                FolderFiles::new(files.iter().map(|(n, ms)| (n.as_bytes(), stamp(*ms))).collect())
            };
            let tree = folders.iter().map(|(path, files)| (Arc::from(path.as_bytes()), Arc::new(folder(files))));
            FileSnapshot { root: "/ws".into(), rules: [0; 16], taken_at_ms: 0, tree: Arc::new(tree.collect()) }
        };
        let before = snapshot(&[("", &[("a", 10), ("b", 20)]), ("gone", &[("x", 1)])]);
        let after = snapshot(&[("", &[("a", 10), ("b", 30), ("c", 5)]), ("new", &[("y", 1)])]);
        let names = |mut paths: Vec<PathBuf>| {
            paths.sort();
            paths.into_iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(after.changed_paths(&before)), ["b", "c", "gone/x", "new/y"]);
        assert_eq!(names(before.changed_paths(&before)), [""; 0]);
        assert_eq!(names(after.changed_paths(&after.as_of(20))), ["b"]);
        assert_eq!(names(after.changed_paths(&after.as_of(30))), [""; 0]);
    }

    #[test]
    fn a_missing_file_is_none_and_a_file_of_another_workspace_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot");
        assert!(FileSnapshot::load(&path, Path::new("/ws")).unwrap().is_none());
        let snapshot = FileSnapshot { root: "/ws".into(), rules: [0; 16], taken_at_ms: 0, tree: Arc::default() };
        snapshot.save(&path).unwrap();
        let error = FileSnapshot::load(&path, Path::new("/other")).unwrap_err().to_string();
        assert!(error.contains("it is of /ws, not of /other"), "{error}");
    }
}
