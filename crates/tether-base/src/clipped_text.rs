//! Cuts text that is too long to show or to keep, at a character: `…` stands for the rest, or `… (500 characters)` where a
//! reader may want to know how long the whole is. Does not depend on any other module.

/// The first `max` characters.
pub fn first_chars(text: &str, max: usize) -> &str {
    text.char_indices().nth(max).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// The first characters, in at most `max` bytes.
pub fn first_bytes(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}

/// At most `max` characters; `…` stands for the rest.
pub fn clip_chars(text: &str, max: usize) -> String {
    mark_rest(first_chars(text, max), text, "…")
}

/// At most `max` bytes; `…` stands for the rest.
pub fn clip_bytes(text: &str, max: usize) -> String {
    mark_rest(first_bytes(text, max), text, "…")
}

/// At most `max` characters; `… (500 characters)` stands for the rest, with the length of the whole.
pub fn clip_counted(text: &str, max: usize) -> String {
    let first = first_chars(text, max);
    if first.len() == text.len() { text.to_owned() } else { first.to_owned() + &whole_length(text) }
}

/// What follows the beginning of a text that has been cut: `… (500 characters)`.
pub fn whole_length(text: &str) -> String {
    format!("… ({} characters)", text.chars().count())
}

fn mark_rest(first: &str, text: &str, mark: &str) -> String {
    let mark = if first.len() < text.len() { mark } else { "" };
    format!("{first}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_character_and_a_short_one_is_whole() {
        assert_eq!((first_chars("äöü", 2), first_chars("äöü", 3), first_chars("äöü", 0)), ("äö", "äöü", ""));
        assert_eq!((first_bytes("äöü", 3), first_bytes("äöü", 6), first_bytes("äöü", 1)), ("ä", "äöü", ""));
        assert_eq!((clip_chars("äöü", 2).as_str(), clip_chars("äöü", 3).as_str()), ("äö…", "äöü"));
        assert_eq!((clip_bytes("äöü", 5).as_str(), clip_bytes("äöü", 9).as_str()), ("äö…", "äöü"));
        assert_eq!((clip_counted("äöü", 1).as_str(), clip_counted("äöü", 3).as_str()), ("ä… (3 characters)", "äöü"));
    }
}
