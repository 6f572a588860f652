//! Core dumps: which program wrote one, and which signal ended it, from the notes of the file (`core(5)`).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef, elf};
use tether_base::error::{Error, Result};

/// The largest notes that are read, in bytes.
const MAX_NOTES: u64 = 64 << 20;
/// How many mapped files are looked at.
const MAX_FILES: usize = 100_000;
/// The entry of the auxiliary vector with the address of the program's first instruction (`elf.h`).
const AT_ENTRY: u64 = 9;

/// What a core dump says of its program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreFile {
    /// The executable. `None`: the dump does not name it.
    pub program: Option<PathBuf>,
    /// The signal that ended it. `None`: it was written of a running program, or does not say.
    pub signal: Option<i32>,
}

/// A file that was mapped into the program.
struct MappedFile {
    start: u64,
    end: u64,
    path: PathBuf,
}

impl CoreFile {
    /// Of programs with 32 bits nothing but that it is a core dump is read. Errors: it cannot be read, or is none.
    pub fn read(core: &Path) -> Result<CoreFile> {
        let error = |cause: String| Error::usage(format!("cannot open {}", core.display())).because(cause);
        let file = std::fs::File::open(core).map_err(|cause| error(cause.to_string()))?;
        if !file.metadata().is_ok_and(|it| it.is_file()) {
            return Err(error("it is no file".to_owned()));
        }
        let cache = ReadCache::new(file);
        parse_core(&cache).ok_or_else(|| {
            let hint = "`coredumpctl dump --output=core PID` writes one of systemd's; an ended program writes one to \
                        /proc/sys/kernel/core_pattern where `ulimit -c` allows it";
            error("it is no core dump of a Linux program".to_owned()).hint(hint)
        })
    }
}

/// `None`: it is no core dump.
fn parse_core<'data, R: ReadRef<'data>>(data: R) -> Option<CoreFile> {
    match object::FileKind::parse(data).ok()? {
        object::FileKind::Elf64 => parse_notes::<elf::FileHeader64<Endianness>, R>(data),
        object::FileKind::Elf32 => {
            let header = elf::FileHeader32::<Endianness>::parse(data).ok()?;
            (header.e_type(header.endian().ok()?) == elf::ET_CORE).then(CoreFile::default)
        }
        _ => None,
    }
}

fn parse_notes<'data, H: FileHeader<Endian = Endianness>, R: ReadRef<'data>>(data: R) -> Option<CoreFile> {
    let header = H::parse(data).ok()?;
    let endian = header.endian().ok()?;
    if header.e_type(endian) != elf::ET_CORE {
        return None;
    }
    let (mut core, mut entry, mut files) = (CoreFile::default(), None, Vec::new());
    for segment in header.program_headers(endian, data).ok()? {
        if segment.p_filesz(endian).into() > MAX_NOTES {
            continue;
        }
        let Ok(Some(mut notes)) = segment.notes(endian, data) else { continue };
        while let Ok(Some(note)) = notes.next() {
            let number = Numbers { bytes: note.desc(), endian };
            match note.n_type(endian) {
                // Of the first thread, which is the one that got it.
                elf::NT_SIGINFO | elf::NT_PRSTATUS if core.signal.is_none() => {
                    core.signal = number.i32_at(0).filter(|signal| *signal > 0);
                }
                elf::NT_AUXV => entry = entry.or_else(|| entry_address(&number)),
                elf::NT_FILE if files.is_empty() => files = mapped_files(&number).unwrap_or_default(),
                _ => {}
            }
        }
    }
    let holds_entry = |file: &&MappedFile| entry.is_some_and(|entry| (file.start..file.end).contains(&entry));
    core.program = files.iter().find(holds_entry).map(|file| file.path.clone());
    Some(core)
}

/// The numbers in a note.
struct Numbers<'data> {
    bytes: &'data [u8],
    endian: Endianness,
}

impl Numbers<'_> {
    fn i32_at(&self, offset: usize) -> Option<i32> {
        let bytes = self.bytes.get(offset..)?.first_chunk()?;
        Some(if self.endian == Endianness::Little { i32::from_le_bytes(*bytes) } else { i32::from_be_bytes(*bytes) })
    }

    /// The number at an index of 64-bit numbers.
    fn nth(&self, index: usize) -> Option<u64> {
        let bytes = self.bytes.get(index.checked_mul(8)?..)?.first_chunk()?;
        Some(if self.endian == Endianness::Little { u64::from_le_bytes(*bytes) } else { u64::from_be_bytes(*bytes) })
    }
}

fn entry_address(auxiliary: &Numbers<'_>) -> Option<u64> {
    let pair = |index: usize| {
        Some((auxiliary.nth(index.checked_mul(2)?)?, auxiliary.nth(index.checked_mul(2)?.checked_add(1)?)?))
    };
    (0..).map_while(pair).find(|(kind, _)| *kind == AT_ENTRY).map(|(_, address)| address)
}

/// Their count and the size of a page; for each its start, its end and an offset; then their paths, each ended by a zero.
fn mapped_files(note: &Numbers<'_>) -> Option<Vec<MappedFile>> {
    let count = usize::try_from(note.nth(0)?).ok().filter(|count| *count <= MAX_FILES)?;
    let first_path = count.checked_mul(24)?.checked_add(16)?;
    let paths = note.bytes.get(first_path..)?.split(|byte| *byte == 0);
    let file = |(index, path): (usize, &[u8])| {
        let at = index.checked_mul(3)?.checked_add(2)?;
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        Some(MappedFile { start: note.nth(at)?, end: note.nth(at.checked_add(1)?)?, path })
    };
    paths.take(count).enumerate().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, desc: &[u8]) -> Vec<u8> {
        let mut note: Vec<u8> = [5u32, desc.len() as u32, kind].into_iter().flat_map(u32::to_le_bytes).collect();
        note.extend(b"CORE\0\0\0\0");
        note.extend(desc);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    fn numbers(numbers: &[u64]) -> Vec<u8> {
        numbers.iter().copied().flat_map(u64::to_le_bytes).collect()
    }

    /// An ELF file of this type with one segment of notes.
    fn file(kind: u16, notes: &[u8]) -> Vec<u8> {
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        file.extend([kind, 62].into_iter().flat_map(u16::to_le_bytes));
        file.extend(1u32.to_le_bytes());
        file.extend(numbers(&[0, 64, 0]));
        file.extend(0u32.to_le_bytes());
        file.extend([64u16, 56, 1, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes));
        file.extend([4u32, 0].into_iter().flat_map(u32::to_le_bytes));
        file.extend(numbers(&[120, 0, 0, notes.len() as u64, 0, 4]));
        file.extend(notes);
        file
    }

    fn dump() -> Vec<u8> {
        let mut files = numbers(&[2, 4096, 0x1000, 0x2000, 0, 0x5000, 0x7000, 0]);
        files.extend(b"/lib/ld.so\0/w/app\0");
        let info = [11u8, 0, 0, 0, 0, 0, 0, 0];
        let parts = [note(elf::NT_PRSTATUS.0, &info), note(elf::NT_AUXV.0, &numbers(&[6, 4096, 9, 0x6000, 0, 0]))];
        file(4, &[parts.concat(), note(elf::NT_FILE.0, &files)].concat())
    }

    #[test]
    fn the_program_and_its_signal_are_read() {
        let expected = CoreFile { program: Some("/w/app".into()), signal: Some(11) };
        assert_eq!(parse_core(&*dump()), Some(expected));
    }

    #[test]
    fn what_is_no_core_dump_is_refused() {
        assert_eq!(parse_core(&*file(2, &[])), None);
        assert_eq!(parse_core(&b"core"[..]), None);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("core"), "text").unwrap();
        let error = CoreFile::read(&folder.path().join("core")).unwrap_err().to_string();
        assert!(error.contains("it is no core dump") && error.contains("coredumpctl"), "{error}");
        assert!(CoreFile::read(folder.path()).unwrap_err().to_string().contains("it is no file"));
    }

    #[test]
    fn a_dump_that_was_cut_is_read_as_far_as_it_goes() {
        let whole = dump();
        for length in 0..whole.len() {
            let cut = parse_core(&whole[..length]);
            assert!(cut.is_none_or(|core| core.program.is_none()), "{length}");
        }
    }
}
