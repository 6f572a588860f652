//! The source map of a page's script, for readers that debug nothing: from a place in the script to the one in its source.

use sourcemap::SourceMap;

use super::map_size::MAX_MAP_ENTRIES;
use super::source_maps::{decode_inline_map, decode_map};

/// A map that was read.
pub struct PageMap(SourceMap);

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// As the map has it: any text.
    pub source: String,
    /// 0-based.
    pub line: u32,
    /// 0-based, in UTF-16 code units.
    pub column: u32,
}

impl PageMap {
    /// Decodes a map. Errors: it is none, or larger than what is read.
    pub fn decode(text: &[u8]) -> Result<PageMap, String> {
        decode_map(text, MAX_MAP_ENTRIES).map(|decoded| PageMap(decoded.into_map()))
    }

    /// Decodes a map that its script has in a `data:` URL.
    pub fn decode_inline(address: &str) -> Result<PageMap, String> {
        decode_inline_map(address, MAX_MAP_ENTRIES).map(|decoded| PageMap(decoded.into_map()))
    }

    /// The place in a source that a place in the script was made of; both are 0-based.
    pub fn source_place(&self, line: u32, column: u32) -> Option<SourcePlace> {
        let token = self.0.lookup_token(line, column)?;
        let source = token.get_source()?.to_owned();
        Some(SourcePlace { source, line: token.get_src_line(), column: token.get_src_col() })
    }
}

/// The address of the map that a script's last `sourceMappingURL` names.
pub fn map_address(script: &str) -> Option<&str> {
    let marks = ["//# sourceMappingURL=", "//@ sourceMappingURL="];
    let ends = marks.iter().filter_map(|mark| script.rfind(mark).map(|at| at.saturating_add(mark.len())));
    let address = script.get(ends.max()?..)?.lines().next()?.trim();
    (!address.is_empty() && !address.contains(char::is_whitespace)).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_map_of_a_script_counts() {
        for (script, expect) in [
            ("a();\n//# sourceMappingURL=a.js.map\n", Some("a.js.map")),
            (
                "//# sourceMappingURL=x\nlet a;\n//# sourceMappingURL=data:application/json;base64,e30=",
                Some("data:application/json;base64,e30="),
            ),
            ("a();", None),
            ("//# sourceMappingURL=\n", None),
        ] {
            assert_eq!(map_address(script), expect, "{script}");
        }
    }

    #[test]
    fn a_place_is_mapped_to_its_source() {
        let map = br#"{"version":3,"sources":["../src/api.ts"],"names":[],"mappings":";AAEE,SAAS"}"#;
        let map = PageMap::decode(map).unwrap();
        let at = map.source_place(1, 3).unwrap();
        assert_eq!((at.source.as_str(), at.line, at.column), ("../src/api.ts", 2, 2));
        assert!(PageMap::decode(b"nothing").is_err());
    }
}
