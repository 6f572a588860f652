//! .NET projects: which assembly a project file builds, and how a profile of launchSettings.json runs it.
//!
//! Only what is written is read: no MSBuild runs, since a project's targets are commands of the workspace.

pub mod project_launch;

mod launch_settings;
mod msbuild_condition;
mod project_file;
