//! Class files: which source they were compiled from, what they hold for a debugger, which classes they refer to.
//!
//! Reads only what is needed of the format (JVMS 4), front to back: nothing recurses, every length is checked against what
//! is left, and attributes that are not needed are passed over. Does not depend on where the files are.

use std::collections::BTreeSet;
use std::path::Path;

use tether_base::bounded_file::{self, Links};

/// The largest class file that is read, in bytes.
const MAX_BYTES: u64 = 16 << 20;
/// How every class file begins.
const MAGIC: u32 = 0xcafe_babe;

/// What a class file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassFileFacts {
    /// `com/example/App$Inner`
    pub name: String,
    /// The name of its source file, without the folder.
    pub source_file: Option<String>,
    /// Whether it says which line and which variables its code belongs to, as `javac -g` writes it.
    pub has_debug_tables: bool,
    /// The classes that it refers to, named as itself; arrays are left out.
    pub references: Vec<String>,
}

/// Reads a class file; `None` for what is none.
pub(crate) fn read_class_file(path: &Path) -> Option<(Vec<u8>, ClassFileFacts)> {
    let bytes = bounded_file::read_file(path, MAX_BYTES, Links::Follow).ok()?;
    let facts = parse_class_file(&bytes)?;
    Some((bytes, facts))
}

/// The facts in the bytes of a class file; `None` for what is none.
pub(crate) fn parse_class_file(bytes: &[u8]) -> Option<ClassFileFacts> {
    let mut reader = ClassReader { rest: bytes };
    if reader.number::<4>()? != MAGIC {
        return None;
    }
    let _version = reader.number::<4>()?;
    let pool = ConstantPool::read(&mut reader)?;
    let _access = reader.number::<2>()?;
    let name = pool.class_name(reader.number::<2>()?)?;
    let _superclass = reader.number::<2>()?;
    let interfaces = usize::try_from(reader.number::<2>()?).ok()?;
    reader.take(interfaces.checked_mul(2)?)?;
    reader.members(&pool, &mut |_, _| Some(()))?;
    let mut code = CodeTables::default();
    reader.members(&pool, &mut |attribute, data| match attribute {
        b"Code" => code.add(&pool, data),
        _ => Some(()),
    })?;
    let mut source_file = None;
    reader.attributes(&pool, &mut |attribute, data| {
        if attribute == b"SourceFile" {
            source_file = Some(pool.text(ClassReader { rest: data }.number::<2>()?)?);
        }
        Some(())
    })?;
    let (has_debug_tables, references) = (code.is_complete(), pool.references());
    Some(ClassFileFacts { name, source_file, has_debug_tables, references })
}

/// What of a class file is not read yet.
struct ClassReader<'a> {
    rest: &'a [u8],
}

impl<'a> ClassReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// An unsigned number of `SIZE` bytes (at most 4), most significant byte first.
    fn number<const SIZE: usize>(&mut self) -> Option<u32> {
        Some(self.take(SIZE)?.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    /// Fields or methods: `on_attribute` gets the name and the data of each of their attributes.
    fn members(&mut self, pool: &ConstantPool<'a>, on_attribute: &mut OnAttribute<'_, 'a>) -> Option<()> {
        for _ in 0..self.number::<2>()? {
            let _access_name_type = self.take(6)?;
            self.attributes(pool, on_attribute)?;
        }
        Some(())
    }

    fn attributes(&mut self, pool: &ConstantPool<'a>, on_attribute: &mut OnAttribute<'_, 'a>) -> Option<()> {
        for _ in 0..self.number::<2>()? {
            let name = pool.bytes(self.number::<2>()?)?;
            let length = usize::try_from(self.number::<4>()?).ok()?;
            on_attribute(name, self.take(length)?)?;
        }
        Some(())
    }
}

/// Gets the name and the data of an attribute; `None` ends the reading.
type OnAttribute<'f, 'a> = dyn FnMut(&[u8], &'a [u8]) -> Option<()> + 'f;

/// The constants of a class (JVMS 4.4), as far as they are needed.
pub(crate) struct ConstantPool<'a> {
    items: Vec<PoolItem<'a>>,
}

enum PoolItem<'a> {
    Text(&'a [u8]),
    /// The index of its name.
    Class(u16),
    /// A field, a method, or a name with a type: the index of its second part.
    Second(u16),
    Other,
}

impl<'a> ConstantPool<'a> {
    fn read(reader: &mut ClassReader<'a>) -> Option<ConstantPool<'a>> {
        let count = usize::try_from(reader.number::<2>()?).ok()?;
        ConstantPool::read_items(reader, count)
    }

    /// The constants in these bytes; `count` is one more than there are.
    pub(crate) fn of_bytes(count: usize, bytes: &'a [u8]) -> Option<ConstantPool<'a>> {
        ConstantPool::read_items(&mut ClassReader { rest: bytes }, count)
    }

    fn read_items(reader: &mut ClassReader<'a>, count: usize) -> Option<ConstantPool<'a>> {
        // Constants are counted from 1.
        let mut items = vec![PoolItem::Other];
        while items.len() < count {
            let tag = reader.number::<1>()?;
            let length = match tag {
                1 => usize::try_from(reader.number::<2>()?).ok()?,
                7 | 8 | 16 | 19 | 20 => 2,
                15 => 3,
                3 | 4 | 9..=12 | 17 | 18 => 4,
                5 | 6 => 8,
                _ => return None,
            };
            let data = reader.take(length)?;
            items.push(match tag {
                1 => PoolItem::Text(data),
                7 => PoolItem::Class(u16::from_be_bytes(data.try_into().ok()?)),
                9..=12 | 17 | 18 => {
                    PoolItem::Second(ClassReader { rest: data.get(2..)? }.number::<2>()?.try_into().ok()?)
                }
                _ => PoolItem::Other,
            });
            // `long` and `double` count twice.
            if matches!(tag, 5 | 6) {
                items.push(PoolItem::Other);
            }
        }
        Some(ConstantPool { items })
    }

    fn bytes(&self, index: u32) -> Option<&'a [u8]> {
        match self.items.get(usize::try_from(index).ok()?)? {
            PoolItem::Text(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn text(&self, index: u32) -> Option<String> {
        decode_modified_utf8(self.bytes(index)?)
    }

    /// The type of a field or a method, `(I)V`, by the index that an instruction has.
    pub(crate) fn descriptor(&self, index: u32) -> Option<&'a str> {
        let second = |index: u32| match self.items.get(usize::try_from(index).ok()?)? {
            PoolItem::Second(second) => Some(u32::from(*second)),
            _ => None,
        };
        std::str::from_utf8(self.bytes(second(second(index)?)?)?).ok()
    }

    pub(crate) fn class_name(&self, index: u32) -> Option<String> {
        match self.items.get(usize::try_from(index).ok()?)? {
            PoolItem::Class(name) => self.text(u32::from(*name)),
            _ => None,
        }
    }
}

impl ConstantPool<'_> {
    /// The classes but those of arrays. Each name once: many constants may share a long one.
    fn references(&self) -> Vec<String> {
        let classes = self.items.iter().filter_map(|item| match item {
            PoolItem::Class(name) => Some(*name),
            _ => None,
        });
        let names: BTreeSet<u16> = classes.collect();
        names.into_iter().filter_map(|name| self.text(u32::from(name))).filter(|name| !name.starts_with('[')).collect()
    }
}

/// Which tables of a debugger the code of a class has.
#[derive(Default)]
struct CodeTables {
    has_code: bool,
    has_lines: bool,
    has_variables: bool,
}

impl CodeTables {
    /// Adds a method, by the data of its attribute `Code` (JVMS 4.7.3).
    fn add<'a>(&mut self, pool: &ConstantPool<'a>, data: &'a [u8]) -> Option<()> {
        self.has_code = true;
        let mut reader = ClassReader { rest: data };
        let _stack_and_locals = reader.take(4)?;
        let length = usize::try_from(reader.number::<4>()?).ok()?;
        reader.take(length)?;
        let handlers = usize::try_from(reader.number::<2>()?).ok()?;
        reader.take(handlers.checked_mul(8)?)?;
        reader.attributes(pool, &mut |attribute, _| {
            self.has_lines |= attribute == b"LineNumberTable";
            self.has_variables |= attribute == b"LocalVariableTable";
            Some(())
        })
    }

    /// A class without code needs no tables.
    fn is_complete(&self) -> bool {
        !self.has_code || (self.has_lines && self.has_variables)
    }
}

/// A text in the encoding of class files (JVMS 4.4.7): each UTF-16 code unit has one to three bytes.
fn decode_modified_utf8(bytes: &[u8]) -> Option<String> {
    let (mut units, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some((first, others)) = rest.split_first() {
        let (begin, more) = match first {
            0x00..=0x7f => (first & 0x7f, 0),
            0xc0..=0xdf => (first & 0x1f, 1),
            0xe0..=0xef => (first & 0x0f, 2),
            _ => return None,
        };
        let (continued, others) = others.split_at_checked(more)?;
        let is_continued = continued.iter().all(|byte| byte & 0xc0 == 0x80);
        let unit = continued.iter().fold(u16::from(begin), |unit, byte| unit << 6 | u16::from(byte & 0x3f));
        units.push(is_continued.then_some(unit)?);
        rest = others;
    }
    String::from_utf16(&units).ok()
}

/// A class file of that source, with the tables of a debugger.
#[cfg(test)]
pub(crate) fn sample_class(name: &str, source: &str) -> Vec<u8> {
    class_bytes(name, Some(source), &["LineNumberTable", "LocalVariableTable"])
}

/// A class file with that source file and those tables of its only method.
#[cfg(test)]
fn class_bytes(name: &str, source: Option<&str>, tables: &[&str]) -> Vec<u8> {
    // One of them is as long as a `long`.
    let mut texts = vec![name, "Code", "java/lang/Object", "[I", "SourceFile", "as long."];
    texts.extend(source);
    texts.extend(tables);
    let text_index = |text: &str| (texts.iter().position(|it| *it == text).unwrap() + 1) as u16;
    let mut pool: Vec<Vec<u8>> = Vec::new();
    for text in &texts {
        pool.push([&[1][..], &(text.len() as u16).to_be_bytes(), text.as_bytes()].concat());
    }
    for class in [name, "java/lang/Object", "[I"] {
        pool.push([&[7][..], &text_index(class).to_be_bytes()].concat());
    }
    let count = texts.len() as u16;
    // A `long`, which counts twice.
    pool.push([5, 0, 0, 0, 0, 0, 0, 0, 1].to_vec());
    let attribute = |name: &str, data: &[u8]| {
        [&text_index(name).to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
    };
    let listed =
        |attributes: Vec<Vec<u8>>| [(attributes.len() as u16).to_be_bytes().to_vec(), attributes.concat()].concat();
    let inner = listed(tables.iter().map(|name| attribute(name, &[0, 0])).collect());
    let code = [&[0, 1, 0, 1, 0, 0, 0, 1, 0xb1, 0, 0][..], &inner].concat();
    let method = [vec![0, 1, 0, 1, 0, 1], listed(vec![attribute("Code", &code)])].concat();
    let own = source.map(|name| attribute("SourceFile", &text_index(name).to_be_bytes()));
    [
        &MAGIC.to_be_bytes()[..],
        &[0, 0, 0, 61],
        &(count + 3 + 2 + 1).to_be_bytes(),
        &pool.concat(),
        &[0, 0x21],
        &(count + 1).to_be_bytes(),
        &(count + 2).to_be_bytes(),
        &[0, 0, 0, 0, 0, 1],
        &method,
        &listed(own.into_iter().collect()),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_class_file_says_what_it_was_compiled_from_and_with() {
        let facts = parse_class_file(&sample_class("a/Ä$Inner", "Ä.java")).unwrap();
        let expected = ClassFileFacts {
            name: "a/Ä$Inner".to_owned(),
            source_file: Some("Ä.java".to_owned()),
            has_debug_tables: true,
            references: vec!["a/Ä$Inner".to_owned(), "java/lang/Object".to_owned()],
        };
        assert_eq!(facts, expected);
        let without = parse_class_file(&class_bytes("A", None, &["LineNumberTable"])).unwrap();
        assert_eq!((without.source_file, without.has_debug_tables), (None, false));
    }

    #[test]
    fn what_is_no_class_file_is_none() {
        for bytes in [&b""[..], b"\xca\xfe\xba\xbe", b"text", &[0xff; 64]] {
            assert_eq!(parse_class_file(bytes), None);
        }
        let whole = class_bytes("a/A", Some("A.java"), &["LineNumberTable"]);
        for length in 0..whole.len() {
            assert_eq!(parse_class_file(&whole[..length]), None, "{length} bytes of it");
        }
        assert!(read_class_file(Path::new("/dev/zero")).is_none());
    }

    #[test]
    fn texts_are_in_the_encoding_of_class_files() {
        let check = |bytes: &[u8], expect: Option<&str>| assert_eq!(decode_modified_utf8(bytes).as_deref(), expect);
        check("aÄ€".as_bytes(), Some("aÄ€"));
        check(&[0xc0, 0x80], Some("\0"));
        check(&[0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80], Some("😀"));
        check(&[0xed, 0xa0, 0xbd], None);
        check(&[0xe2, 0x82], None);
        check(&[0xc3, 0x41], None);
        check("😀".as_bytes(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let with_magic = [&MAGIC.to_be_bytes()[..], &[0, 0, 0, 61], &bytes].concat();
            crate::small_stack::run_on_small_stack(move || {
                parse_class_file(&bytes);
                parse_class_file(&with_magic);
                decode_modified_utf8(&bytes);
            });
        }

        /// Changes of a valid file reach what random bytes do not: what is behind its constants.
        #[test]
        fn changed_class_files_are_read_without_a_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), length in 100..400usize
        ) {
            let mut bytes = sample_class("a/A", "A.java");
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(length);
            crate::small_stack::run_on_small_stack(|| drop(parse_class_file(&bytes)));
        }
    }
}
