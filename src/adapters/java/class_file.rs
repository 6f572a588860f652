//! Class files: which source they were compiled from, what they hold for a debugger, which classes they refer to.
//!
//! Does not depend on where they are.

use std::path::Path;

use cafebabe::attributes::{AttributeData, CodeData};
use cafebabe::constant_pool::ConstantPoolItem;
use cafebabe::{ClassFile, ParseOptions, parse_class_with_options};

use crate::bounded_file::{self, Links};

/// The largest class file that is read, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// What a class file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassFileFacts {
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
pub fn read_class_file(path: &Path) -> Option<(Vec<u8>, ClassFileFacts)> {
    let bytes = bounded_file::read_file(path, MAX_BYTES, Links::Follow).ok()?;
    let facts = parse_class_file(&bytes)?;
    Some((bytes, facts))
}

/// The facts in the bytes of a class file; `None` for what is none.
pub fn parse_class_file(bytes: &[u8]) -> Option<ClassFileFacts> {
    let class = parse_class_with_options(bytes, ParseOptions::default().parse_bytecode(false)).ok()?;
    let source_file = class.attributes.iter().find_map(|attribute| match &attribute.data {
        AttributeData::SourceFile(name) => Some(name.to_string()),
        _ => None,
    });
    let references = class.constantpool_iter().filter_map(|item| match item {
        ConstantPoolItem::ClassInfo(name) if !name.starts_with('[') => Some(name.to_string()),
        _ => None,
    });
    Some(ClassFileFacts {
        name: class.this_class.to_string(),
        source_file,
        has_debug_tables: has_debug_tables(&class),
        references: references.collect(),
    })
}

/// A class without code needs no tables.
fn has_debug_tables(class: &ClassFile<'_>) -> bool {
    let attributes = class.methods.iter().flat_map(|method| &method.attributes);
    let codes: Vec<&CodeData<'_>> = attributes
        .filter_map(|attribute| match &attribute.data {
            AttributeData::Code(code) => Some(code),
            _ => None,
        })
        .collect();
    let has = |is_table: fn(&AttributeData<'_>) -> bool| {
        codes.iter().any(|code| code.attributes.iter().any(|attribute| is_table(&attribute.data)))
    };
    codes.is_empty()
        || (has(|data| matches!(data, AttributeData::LineNumberTable(_)))
            && has(|data| matches!(data, AttributeData::LocalVariableTable(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_class_file_is_none() {
        for bytes in [&b""[..], b"\xca\xfe\xba\xbe", b"text", &[0xff; 64]] {
            assert_eq!(parse_class_file(bytes), None);
        }
        assert!(read_class_file(Path::new("/dev/zero")).is_none());
    }
}
