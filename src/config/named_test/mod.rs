//! Tests by name: which test runner a name belongs to, what to debug for it, and whether that has run a test.

pub mod outcome;
pub mod resolve;
pub mod script_tests;
pub mod test_files;
