//! How much a source map becomes when it is decoded, read from its text before that: a map of some megabytes can become
//! gigabytes.

/// How many entries one map may have.
pub(crate) const MAX_MAP_ENTRIES: usize = 5_000_000;
/// How many entries all maps of a thread, or of a page, may have: some hundreds of megabytes.
pub(crate) const MAX_ALL_ENTRIES: usize = 20_000_000;
/// How many sources one map may name: each becomes a path.
pub(crate) const MAX_SOURCES: usize = 200_000;

/// How many entries a map has at most: its JSON values, and the mappings in its texts.
pub(crate) fn count_entries(map: &[u8]) -> usize {
    let mut entries = 0_usize;
    // The text is a value of an object, not of an array: only those are mappings.
    let mut is_value = false;
    let mut bytes = map.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                let mut mappings = 0_usize;
                while let Some(inside) = bytes.next().filter(|inside| *inside != b'"') {
                    match inside {
                        b',' | b';' => mappings = mappings.saturating_add(1),
                        // Any of these can be an escaped separator.
                        b'\\' => mappings = mappings.saturating_add(usize::from(bytes.next() == Some(b'u'))),
                        _ => {}
                    }
                }
                entries = entries.saturating_add(if is_value { mappings } else { 0 });
                is_value = false;
            }
            b':' => is_value = true,
            b',' | b'[' | b'{' => (entries, is_value) = (entries.saturating_add(1), false),
            _ => {}
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_and_values_are_counted_and_the_text_of_sources_is_not() {
        let check = |map: &str, entries: usize| assert_eq!(count_entries(map.as_bytes()), entries, "{map}");
        check(r#"{"mappings":"AAAA,A;;A"}"#, 4);
        check(r#"{"version":3,"mappings":"AAAA,\u002cA\\;"}"#, 5);
        check(r#"{"names":["a",0,[]],"sources":[]}"#, 7);
        check(r#"{"sourcesContent":["f(a, b); \"g(c, d)\";"]}"#, 2);
        check(r#"{"sections":[{"offset":{"line":0},"map":{"mappings" : ";;;"}}]}"#, 9);
        check("\"", 0);
        check("", 0);
    }
}
