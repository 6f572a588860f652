//! The configuration of a workspace: what its files run, and whether the user consents to it.
//!
//! ```text
//!  devtools_toml   devtools.toml ────────────────┐
//!  vscode          launch.json, tasks.json ──────┤
//!                    window ─────────────────────┼─▶ window_config ──┐
//!                    debug sessions ─────────────┼─▶ debug_plan ─────┼─▶ trust
//!  npm             package.json, its scripts ────┤                   │
//!  build_outputs   tsconfig.json, .gitignore ────┘   named_test ─────┘
//!  dotnet          project files, launchSettings.json ─▶ the program of a project
//!  extension_tests .vscode-test.*, launch.json ─▶ the tests of an extension
//!  mcp_clients     the files in which clients name their MCP servers
//! ```
//!
//! Reads files, and reports errors with file and line. Runs nothing. Does not depend on windows or debug sessions.

pub mod trust;

mod active_config;
mod build_checks;
mod build_outputs;
mod build_plan;
mod consent_line;
mod devtools_toml;
mod dotnet;
mod extension_tests;
mod jsonc;
mod mcp_clients;
mod named_test;
mod npm;
mod shown_environment;
mod source_file;
mod tracking;
mod vscode;
mod window_config;

pub use active_config::ActiveConfig;
pub use build_outputs::BuildOutput;
pub use build_plan::{BuildPlan, BuildStep, SharedTask, StepCompletion, StepOrder};
pub use consent_line::ConsentLine;
pub use devtools_toml::init;
pub use devtools_toml::settings::refreshes_on_save;
pub use devtools_toml::settings::{
    BuildSettings, ConfirmBy, DEVTOOLS_TOML, RefreshSetting, Settings, WatchSettings, WindowKind, WindowSettings,
    check_watch_root,
};
pub use dotnet::project_launch::{DotnetChoice, DotnetLaunch, is_dotnet_project, resolve_dotnet_project};
pub use extension_tests::evaluated_tests::{EVALUATE_SCRIPT, EvaluatedTests, HostedTests, read_evaluated};
pub use extension_tests::test_source::{
    ExtensionTestSource, TESTS_PATH_FLAG, TestDescription, find_test_file, is_test_configuration,
    means_extension_tests, take_tests_path,
};
pub use mcp_clients::{MCP_CLIENTS, McpClient};
pub use named_test::java_project::{CONSOLE_LAUNCHER, java_program};
pub use named_test::outcome::TestRunner;
pub use named_test::package_runner::PackageRunner;
pub use named_test::resolve::CARGO_TEST_BUILD;
pub use named_test::script_options::describe_script_options;
pub use named_test::test_run::{JavaTest, NamedTest, RubyTest, TestRun};
pub use npm::consented_scripts::NpmScript;
pub use npm::linked_packages::describe_unwatched_packages;
pub use shown_environment::{secrets_of_configuration, show_environment};
pub use source_file::{Origin, normalize_path, replace_file};
pub use tracking::tracker_options;
pub use vscode::attribute_use::{AttributeReader, AttributeUse, WINDOW};
pub use vscode::debug_plan::{DebugConfiguration, DebugPlan};
pub use vscode::editor_inputs::EditorInputs;
pub use vscode::env_file::{hide_values, is_environment_file};
pub use vscode::launch_json::{launch_names, launch_names_folder};
pub use vscode::launch_window::WEB_WORKER_KIND;
pub use vscode::problem_matchers::{BackgroundCycle, CycleTracker};
pub use vscode::user_settings::prepare_user_settings;
pub use window_config::WindowConfig;
pub use window_config::program_setting::resolve_program;
