//! Which sources a compiled program was built of, where those paths are not on this machine: a compiler that was told to write
//! others (`-ffile-prefix-map`), or another machine. And which folders they stand for, where that is certain.
//!
//! Reads the names of the compilation units from the debug information (DWARF). Does not depend on a debugger.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use gimli::{DwarfSections, EndianSlice, RunTimeEndian};
use object::{Object, ObjectSection, ReadCache};
use tether_base::sync::lock;

use super::path_maps::PathMap;

/// The largest section of debug information that is read, in bytes.
const MAX_SECTION: u64 = 256 << 20;
/// How many compilation units are looked at, and how many files and folders below a folder.
const MAX_UNITS: usize = 5000;
const MAX_ENTRIES: usize = 20_000;
/// How many folders are mapped.
const MAX_MAPS: usize = 16;
/// Folders without the user's sources.
const OTHER_FOLDERS: [&str; 2] = ["node_modules", "target"];

/// What was read of a program.
struct ReadProgram {
    program: PathBuf,
    written: Option<SystemTime>,
    missing: Arc<Vec<PathBuf>>,
}

/// A session asks for the same program whenever it reports a breakpoint that is not bound.
static LAST_READ: Mutex<Option<ReadProgram>> = Mutex::new(None);

/// The folders that a program's missing sources stand for, by the ends of their paths below these folders; none where several
/// would do.
pub fn find_source_maps(program: &Path, roots: &[PathBuf]) -> Vec<PathMap> {
    let missing = missing_sources(program);
    if missing.is_empty() {
        return Vec::new();
    }
    let mut by_name: Option<BTreeMap<String, Vec<PathBuf>>> = None;
    let mut found: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    for source in missing.iter() {
        let mut named = || by_name.get_or_insert_with(|| list_files(roots)).get(&*file_name(source)).cloned();
        let file = find_by_end(source, roots).or_else(|| match named().as_deref() {
            Some([only]) => Some(only.clone()),
            _ => None,
        });
        if let Some(map) = file.and_then(|file| map_of(source, &file)) {
            found.entry(map.remote).or_default().insert(map.local);
        }
    }
    let certain = found.into_iter().filter(|(_, to)| to.len() == 1);
    certain
        .take(MAX_MAPS)
        .flat_map(|(from, to)| to.into_iter().map(move |to| PathMap { local: to, remote: from.clone() }))
        .collect()
}

/// The path by which a program names a source, where that is of the same name and not on this machine.
pub fn compiled_elsewhere(program: &Path, file: &Path) -> Option<PathBuf> {
    missing_sources(program).iter().find(|source| source.file_name() == file.file_name()).cloned()
}

/// The absolute paths of a program's compilation units that are not on this machine.
fn missing_sources(program: &Path) -> Arc<Vec<PathBuf>> {
    let written = program.metadata().and_then(|it| it.modified()).ok();
    let mut last = lock(&LAST_READ);
    if let Some(known) = last.as_ref().filter(|known| known.program == program && known.written == written) {
        return Arc::clone(&known.missing);
    }
    let sources = read_sources(program).unwrap_or_default();
    let missing = sources.into_iter().filter(|source| source.is_absolute() && !source.exists());
    let missing = Arc::new(missing.collect());
    *last = Some(ReadProgram { program: program.to_owned(), written, missing: Arc::clone(&missing) });
    missing
}

/// `None`: it is no program with debug information that is read here.
fn read_sources(program: &Path) -> Option<Vec<PathBuf>> {
    let cache = ReadCache::new(std::fs::File::open(program).ok()?);
    let object = object::File::parse(&cache).ok()?;
    let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let load = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, gimli::Error> {
        let section = object.section_by_name(id.name()).filter(|section| section.size() <= MAX_SECTION);
        Ok(section.and_then(|section| section.uncompressed_data().ok()).unwrap_or_default())
    };
    let sections = DwarfSections::load(load).ok()?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
    let (mut units, mut found) = (dwarf.units(), Vec::new());
    while let Some(header) = units.next().ok()?.filter(|_| found.len() < MAX_UNITS) {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let text = |slice: EndianSlice<'_, RunTimeEndian>| slice.to_string_lossy().into_owned();
        let folder = unit.comp_dir.map(text).unwrap_or_default();
        found.extend(unit.name.map(|name| Path::new(&folder).join(text(name))));
    }
    Some(found)
}

/// The file whose path below one of these folders is the longest end of a source's path.
fn find_by_end(source: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
    let parts: Vec<_> = source.components().skip(1).collect();
    // The name alone is not enough: it may be that of any file.
    let ends = (0..parts.len().saturating_sub(1)).map(|from| parts.iter().skip(from).collect::<PathBuf>());
    ends.flat_map(|end| roots.iter().map(move |root| root.join(&end))).find(|file| file.is_file())
}

/// What is left of both paths without the end that they have in common.
fn map_of(source: &Path, file: &Path) -> Option<PathMap> {
    let ends = source.components().rev().zip(file.components().rev());
    let common = ends.take_while(|(one, other)| one == other).count();
    let without = |path: &Path| path.ancestors().nth(common).map(Path::to_owned);
    Some(PathMap { local: without(file)?, remote: without(source)? }).filter(|map| map.remote.parent().is_some())
}

/// The files below these folders, by their names.
fn list_files(roots: &[PathBuf]) -> BTreeMap<String, Vec<PathBuf>> {
    let (mut found, mut left): (BTreeMap<String, Vec<PathBuf>>, _) = (BTreeMap::new(), roots.to_vec());
    let (mut seen, mut count) = (BTreeSet::new(), 0usize);
    while let Some(folder) = left.pop() {
        if !seen.insert(folder.clone()) {
            continue;
        }
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
            let Ok(kind) = entry.file_type() else { continue };
            count = count.saturating_add(1);
            if count > MAX_ENTRIES {
                // Others may have the same name.
                return BTreeMap::new();
            } else if kind.is_dir() && !name.starts_with('.') && !OTHER_FOLDERS.contains(&name.as_str()) {
                left.push(path);
            } else if kind.is_file() {
                found.entry(name).or_default().push(path);
            }
        }
    }
    found
}

fn file_name(path: &Path) -> Cow<'_, str> {
    path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_what_two_paths_do_not_have_in_common() {
        let check = |source: &str, file: &str, expect: Option<(&str, &str)>| {
            let found = map_of(Path::new(source), Path::new(file));
            let expect = expect.map(|(from, to)| PathMap { local: to.into(), remote: from.into() });
            assert_eq!(found, expect, "{source}");
        };
        check("/usr/src/app-1/src/app.c", "/home/me/src/app.c", Some(("/usr/src/app-1", "/home/me")));
        check("/build/app.c", "/home/me/src/app.c", Some(("/build", "/home/me/src")));
        check("/src/app.c", "/home/me/src/app.c", None);
    }

    #[test]
    fn a_source_is_found_by_the_end_of_its_path_and_by_its_name_alone_where_it_is_the_only_one() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().to_owned();
        for name in ["src/app.c", "src/one/util.c", "src/two/util.c", ".hidden/app.c"] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "").unwrap();
        }
        let roots = [root.clone()];
        let found = |source: &str| find_by_end(Path::new(source), &roots);
        assert_eq!(found("/usr/src/x/src/app.c"), Some(root.join("src/app.c")));
        assert_eq!(found("/x/src/two/util.c"), Some(root.join("src/two/util.c")));
        assert_eq!((found("/x/app.c"), found("/x/util.c")), (None, None));
        let files = list_files(&roots);
        assert_eq!((files["app.c"].len(), files["util.c"].len()), (1, 2));
        assert!(read_sources(&root.join("src/app.c")).is_none() && find_source_maps(&root, &roots).is_empty());
    }
}
