//! The operation that runs the tests of a VS Code extension. Durations end in `Ms`.
//!
//! The tests run in an extension host of their own; the window stays as it is. `debug/launch` debugs them.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::debug::values::Seconds;

/// The default time limit of a test run, without its build.
pub const DEFAULT_TEST_TIMEOUT: Seconds = Seconds::of(600);

/// Build and run the tests of a VS Code extension, by .vscode-test or launch.json. To debug them: `debug_launch`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestRunParams {
    /// Test or suite, as Mocha prints it (default: all).
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Label in .vscode-test, or a launch.json configuration (default: all labels).
    #[arg(long, value_name = "LABEL")]
    pub config: Option<String>,
    /// Seconds (default 600).
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<Seconds>,
}

/// What has become of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TestState {
    Passed,
    #[default]
    Failed,
    /// Skipped, or without a body.
    Pending,
}

/// One test that has ended, or a hook that has failed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    /// With its suites: `Orders > adds`.
    pub name: String,
    pub state: TestState,
    pub duration_ms: u64,
    /// Why it has failed.
    pub error: Option<String>,
    /// Where, in the user's own code, the innermost first: `at src/a.test.ts:3:5`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// The label of its configuration, where several were run.
    pub config: Option<String>,
}

/// The results of a test run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TestReport {
    /// No test has failed, and neither has the run.
    pub ok: bool,
    pub passed: u64,
    pub failed: u64,
    pub pending: u64,
    /// Of building, launching and running.
    pub duration_ms: u64,
    /// In the order in which they ended; failed ones are never left out.
    pub tests: Vec<TestResult>,
    /// How many passed or pending ones are left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Why the run as a whole has failed: a file that cannot be loaded, a runner that throws.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// What was printed last, of a run that has failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
