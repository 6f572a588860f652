//! The tracked files of one folder: names, stamps and content hashes, packed.
//!
//! Snapshots of 100,000 files stay in memory, so a file costs its name and 28 bytes, and unchanged folders are shared
//! between snapshots. Does not depend on where the folder is or what a difference means.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

/// The metadata that distinguishes two states of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileStamp {
    /// Nanoseconds since the epoch; negative before it. Wraps in the year 2262; equality still holds then.
    pub mtime_ns: i64,
    /// In bytes.
    pub size: u64,
    /// 0 where the platform has none.
    pub inode: u64,
}

impl FileStamp {
    pub(super) fn new(seconds: i64, nanoseconds: i64, size: u64, inode: u64) -> FileStamp {
        FileStamp { mtime_ns: seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds), size, inode }
    }

    pub(super) fn of(about: &Metadata) -> FileStamp {
        FileStamp::new(about.mtime(), about.mtime_nsec(), about.size(), about.ino())
    }

    /// Milliseconds since the epoch; 0 before it.
    pub(super) fn modified_at_ms(&self) -> u64 {
        u64::try_from(self.mtime_ns / 1_000_000).unwrap_or(0)
    }
}

/// The first half of the SHA-256 of a file's content, or of the target of a symlink.
pub(super) type ContentHash = [u8; 16];

/// The tracked files of one folder, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FolderFiles {
    names: Box<[u8]>,
    /// The end offset of each name in `names`.
    ends: Box<[u32]>,
    stamps: Box<[FileStamp]>,
    /// One for each file, or empty where contents are not compared.
    hashes: Box<[Option<ContentHash>]>,
}

impl FolderFiles {
    /// `files` in any order; each name once.
    pub(crate) fn new(mut files: Vec<(&[u8], FileStamp)>) -> FolderFiles {
        files.sort_unstable_by_key(|(name, _)| *name);
        FolderFiles::from_sorted(files.into_iter().map(|(name, stamp)| (name, stamp, None)))
    }

    fn from_sorted<'a>(files: impl Iterator<Item = (&'a [u8], FileStamp, Option<ContentHash>)>) -> FolderFiles {
        let (mut names, mut ends, mut stamps, mut hashes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (name, stamp, hash) in files {
            names.extend_from_slice(name);
            ends.push(names.len() as u32);
            stamps.push(stamp);
            hashes.push(hash);
        }
        if hashes.iter().all(Option::is_none) {
            hashes.clear();
        }
        FolderFiles { names: names.into(), ends: ends.into(), stamps: stamps.into(), hashes: hashes.into() }
    }

    /// The number of files.
    pub(crate) fn len(&self) -> usize {
        self.stamps.len()
    }

    /// The name of the file at `index`, in order of names.
    pub(crate) fn name(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.names[start..self.ends[index] as usize]
    }

    /// The stamp of the file at `index`.
    pub(crate) fn stamp(&self, index: usize) -> FileStamp {
        self.stamps[index]
    }

    /// The content hash of the file at `index`, if it was read.
    pub(crate) fn hash(&self, index: usize) -> Option<ContentHash> {
        self.hashes.get(index).copied().flatten()
    }

    /// The index of the file `name`.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name(middle).cmp(name) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The stamp of the file `name`.
    pub(crate) fn stamp_of(&self, name: &[u8]) -> Option<FileStamp> {
        self.find(name).map(|index| self.stamps[index])
    }

    /// All files, sorted by name.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&[u8], FileStamp)> {
        (0..self.len()).map(|index| (self.name(index), self.stamp(index)))
    }

    /// Applies edits sorted by name: a stamp adds or updates the file, `None` removes it. A file with a new stamp loses
    /// its hash.
    pub(crate) fn apply_edits(&mut self, edits: &[(&[u8], Option<FileStamp>)]) {
        let in_place = edits.iter().all(|(name, stamp)| stamp.is_some() == self.find(name).is_some());
        if !in_place {
            *self = self.with_edits(edits);
            return;
        }
        for (name, stamp) in edits {
            if let (Some(index), Some(stamp)) = (self.find(name), stamp)
                && self.stamps[index] != *stamp
            {
                self.stamps[index] = *stamp;
                self.hashes.iter_mut().skip(index).take(1).for_each(|hash| *hash = None);
            }
        }
    }

    fn with_edits(&self, edits: &[(&[u8], Option<FileStamp>)]) -> FolderFiles {
        let edit_of = |name: &[u8]| edits.binary_search_by_key(&name, |(name, _)| name).ok().map(|at| edits[at].1);
        let kept = (0..self.len()).filter_map(|index| {
            let (name, stamp) = (self.name(index), self.stamp(index));
            match edit_of(name) {
                None => Some((name, stamp, self.hash(index))),
                Some(new) => new.map(|new| (name, new, self.hash(index).filter(|_| new == stamp))),
            }
        });
        let added = edits.iter().filter(|(name, _)| self.find(name).is_none());
        let added = added.filter_map(|(name, stamp)| stamp.map(|stamp| (*name, stamp, None)));
        let mut files: Vec<_> = kept.chain(added).collect();
        files.sort_unstable_by_key(|(name, ..)| *name);
        FolderFiles::from_sorted(files.into_iter())
    }

    /// Sets the hashes of the files at the given indices.
    pub(crate) fn set_hashes(&mut self, hashes: &[(usize, ContentHash)]) {
        if hashes.is_empty() {
            return;
        }
        let mut all: Vec<_> = (0..self.len()).map(|index| self.hash(index)).collect();
        hashes.iter().for_each(|(index, hash)| all[*index] = Some(*hash));
        self.hashes = all.into();
    }

    /// Copies the hashes of the files whose stamps are the same in `before`.
    pub(crate) fn keep_hashes(&mut self, before: &FolderFiles) {
        let kept: Vec<_> = (0..self.len())
            .filter_map(|index| {
                let old = before.find(self.name(index)).filter(|old| before.stamp(*old) == self.stamp(index))?;
                Some((index, before.hash(old)?))
            })
            .collect();
        self.set_hashes(&kept);
    }

    /// Whether names and stamps are the same; content hashes are not compared.
    pub(crate) fn has_same_files(&self, other: &FolderFiles) -> bool {
        self.stamps == other.stamps && self.ends == other.ends && self.names == other.names
    }

    /// Whether data read from a snapshot file is consistent: lengths match, names are sorted and unique.
    pub(crate) fn is_valid(&self) -> bool {
        let ends_fit = self.ends.is_sorted() && self.ends.last().copied().unwrap_or(0) as usize == self.names.len();
        let lengths_fit = self.ends.len() == self.stamps.len() && [0, self.len()].contains(&self.hashes.len());
        ends_fit && lengths_fit && (1..self.len()).all(|index| self.name(index - 1) < self.name(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(mtime_ns: i64) -> FileStamp {
        FileStamp { mtime_ns, size: 1, inode: 1 }
    }

    fn check(edits: &[(&str, Option<i64>)], expect: &[(&str, i64)]) {
        let mut folder = FolderFiles::new(vec![(b"m", stamp(1)), (b"b", stamp(2)), (b"x", stamp(3))]);
        let edits: Vec<_> = edits.iter().map(|(name, at)| (name.as_bytes(), at.map(stamp))).collect();
        folder.apply_edits(&edits);
        let expect: Vec<_> = expect.iter().map(|(name, at)| (name.as_bytes(), stamp(*at))).collect();
        assert_eq!(folder.files().collect::<Vec<_>>(), expect);
        assert!(folder.is_valid());
    }

    #[test]
    fn edits_update_add_and_remove_files_and_keep_the_order() {
        check(&[], &[("b", 2), ("m", 1), ("x", 3)]);
        check(&[("m", Some(9))], &[("b", 2), ("m", 9), ("x", 3)]);
        check(&[("b", None), ("z", None)], &[("m", 1), ("x", 3)]);
        check(&[("a", Some(7)), ("n", Some(8)), ("x", None)], &[("a", 7), ("b", 2), ("m", 1), ("n", 8)]);
    }

    #[test]
    fn a_hash_is_dropped_when_the_stamp_changes() {
        let mut folder = FolderFiles::new(vec![(b"a", stamp(1)), (b"b", stamp(1))]);
        folder.set_hashes(&[(0, [7; 16]), (1, [8; 16])]);
        folder.apply_edits(&[(b"a", Some(stamp(2))), (b"c", Some(stamp(1)))]);
        assert_eq!((0..3).map(|index| folder.hash(index)).collect::<Vec<_>>(), [None, Some([8; 16]), None]);
    }
}
