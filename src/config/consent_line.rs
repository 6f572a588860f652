//! One line of what the files of a workspace run, as the user reads and consents to it.

use super::source_file::Origin;

/// A command, a setting or a script. Unambiguous: a change of one byte in the files changes the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentLine {
    /// Without line breaks: values are JSON.
    pub text: String,
    /// The file that sets it; `None` for a command of tether's own.
    pub origin: Option<Origin>,
}
