//! How much of a large value is shown: little where a stop shows many at once, more where one is asked for.

/// Characters of a source line or a value in the summary of a stop.
pub const MAX_SUMMARY_CHARS: usize = 160;
/// Characters of a variable or of the value of an expression that was asked for.
pub const MAX_VALUE_CHARS: usize = 2000;
