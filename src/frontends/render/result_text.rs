//! The trait of results that are rendered as text.

/// A result of an operation. Each result type of the operation table must implement this: `render_text` does not compile
/// otherwise. An empty implementation has the result shown as its JSON.
pub trait ResultText {
    /// The text; `None` to show the JSON.
    fn text(&self) -> Option<String> {
        None
    }
}
