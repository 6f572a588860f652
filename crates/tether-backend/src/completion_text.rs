//! What completions of our own adapters have in common: the text before the cursor, and which items go on with a name that
//! has been begun.
//!
//! Does not depend on any language.

use tether_dap::types::{CompletionItem, CompletionsResponse};

/// How many items are offered.
pub const MAX_ITEMS: usize = 200;

/// The text before a position; line and column from 1, columns in UTF-16 code units.
pub fn text_before(text: &str, line: Option<i64>, column: i64) -> String {
    let from_first = |number: i64| usize::try_from(number.saturating_sub(1)).unwrap_or(0);
    let at = from_first(line.unwrap_or(1)).min(text.matches('\n').count());
    let mut lines = text.split_inclusive('\n');
    let before: String = lines.by_ref().take(at).collect();
    let begun = lines.next().unwrap_or_default().trim_end_matches('\n').encode_utf16().take(from_first(column));
    before + &String::from_utf16_lossy(&begun.collect::<Vec<u16>>())
}

/// The items that go on with what has been begun, whatever its case; `column` is where it ends.
pub fn offer_items(items: impl IntoIterator<Item = CompletionItem>, begun: &str, column: i64) -> CompletionsResponse {
    let length = i64::try_from(begun.encode_utf16().count()).unwrap_or(i64::MAX);
    let begun = begun.to_lowercase();
    let fitting = items.into_iter().filter(|item| item.label.to_lowercase().starts_with(&begun));
    let start = column.saturating_sub(length);
    let place = |item: CompletionItem| CompletionItem { start: Some(start), length: Some(length), ..item };
    CompletionsResponse { targets: fitting.take(MAX_ITEMS).map(place).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_before_a_position_is_counted_in_utf16() {
        assert_eq!(text_before("ä€b", None, 3), "ä€");
        assert_eq!((text_before("ab", None, 0), text_before("ab", None, 9)), (String::new(), "ab".to_owned()));
        assert_eq!(text_before("a\n𝄞bc\nd", Some(2), 4), "a\n𝄞b");
        assert_eq!(text_before("a\nb", Some(9), 2), "a\nb");
        assert_eq!(text_before("a\n", Some(2), 1), "a\n");
        assert_eq!(text_before("a\nb", Some(i64::MIN), i64::MIN), "");
        assert_eq!(text_before("a\nb", Some(i64::MAX), i64::MAX), "a\nb");
    }

    #[test]
    fn a_column_that_no_text_has_is_answered() {
        let items = || [CompletionItem { label: "ab".to_owned(), ..CompletionItem::default() }];
        let start = |column| offer_items(items(), "a", column).targets.first().and_then(|item| item.start);
        assert_eq!([start(2), start(i64::MIN), start(i64::MAX)], [Some(1), Some(i64::MIN), Some(i64::MAX - 1)]);
    }

    #[test]
    fn items_that_go_on_with_a_name_replace_it() {
        let item = |label: &str| CompletionItem { label: label.to_owned(), ..CompletionItem::default() };
        let offered = offer_items(["Total", "other", "totals"].map(item), "tot", 7).targets;
        let labels: Vec<&str> = offered.iter().map(|item| item.label.as_str()).collect();
        assert_eq!((labels, offered[0].start, offered[0].length), (vec!["Total", "totals"], Some(4), Some(3)));
        let many = (0..1000).map(|at| item(&format!("a{at}")));
        assert_eq!(offer_items(many, "", 1).targets.len(), MAX_ITEMS);
    }
}
