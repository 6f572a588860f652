//! What the workspace says about itself, and what the user has said about that.
//!
//! ```text
//!  devtools.toml ──▶ settings ─────────────────────┐
//!  launch.json ────▶ launch_json ─▶ launch_window ─┤
//!  tasks.json ─────▶ tasks ─▶ task_steps (matchers)├─▶ recipe ─▶ trust
//!  package.json ───▶ package ─▶ scripts ───────────┤
//!  tsconfig.json, .gitignore ─▶ generated ─────────┘
//! ```
//!
//! A debug session has a shorter way: launch.json and tasks.json ─▶ debugging ─▶ trust; `given` is what an editor would say,
//! `named_test` finds tests by their names.
//!
//! Reads files and names what is wrong in them. Must not know windows or sessions.

pub mod folders;
pub mod init;
pub mod trust;

mod choice;
mod debugging;
mod env_file;
mod file;
mod generated;
mod given;
mod jsonc;
mod launch_json;
mod launch_window;
mod matchers;
mod merge;
mod named_test;
mod package;
mod plan;
mod recipe;
mod scripts;
mod settings;
mod shell;
mod task_steps;
mod tasks;
mod variables;

pub use choice::ActiveConfig;
pub use debugging::{DebugConfiguration, DebugPlan};
pub use file::Origin;
pub use generated::BuildOutput;
pub use given::EditorInputs;
pub use matchers::{BackgroundCycle, CycleTracker};
pub use named_test::{CARGO_TEST_BUILD, NamedTest, TestRun};
pub use plan::{BuildPlan, BuildStep, ConsentLine, NpmScript, StepCompletion, StepOrder};
pub use recipe::WindowConfig;
pub use settings::{BuildSettings, ConfirmBy, DEVTOOLS_TOML, Settings, WatchSettings, WindowKind, WindowSettings};
