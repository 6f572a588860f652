//! `.vscode/launch.json` and `.vscode/tasks.json`, with VS Code's variables, problem matchers and shell quoting.

pub mod attribute_use;
pub mod debug_plan;
pub mod editor_inputs;
pub mod env_file;
pub mod launch_attributes;
pub mod launch_json;
pub mod launch_window;
pub mod problem_matchers;
pub mod shell_line;
pub mod shell_quoting;
pub mod task_steps;
pub mod tasks_json;
pub mod user_settings;
pub mod variables;
