//! Tests by name: which test runner a name belongs to, what to debug for it, and whether that has run a test.
//!
//! ```text
//!  NamedTest ─▶ resolve ─▶ python_tests, ruby_tests, java_tests, script_tests, go_tests ─▶ TestRun
//!                               └─▶ test_files: which source files define it
//!  TestRunner: what its output says about the run
//! ```

pub mod go_tests;
pub mod java_project;
pub mod java_tests;
pub mod nesting;
pub mod outcome;
pub mod package_runner;
pub mod patterns;
pub mod pytest_options;
pub mod python_tests;
pub mod resolve;
pub mod ruby_tests;
pub mod script_options;
pub mod script_tests;
pub mod test_files;
pub mod test_run;
