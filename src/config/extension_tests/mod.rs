//! The tests of a VS Code extension: which configurations run them, and what each of them runs.
//!
//! ```text
//!  .vscode-test.{json,js,cjs,mjs} ─▶ test_source ─▶ evaluate.mjs, in Node ─▶ evaluated_tests ─▶ one host for each
//!  launch.json, --extensionTestsPath ──┘────────────────────────────────────────┘
//! ```
//! The format of the first is that of the npm package `@vscode/test-cli`. Runs nothing.

pub mod evaluated_tests;
pub mod test_source;
