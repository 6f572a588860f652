//! Tests by name: which test runner a name belongs to, and what to debug for it.

pub mod resolve;
pub mod test_files;
