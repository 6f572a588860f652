//! Our own adapter for Node with programs whose workers, hooks and children are alive when something ends: nothing of ours
//! keeps them from it, and nothing of theirs keeps the adapter from answering. And with projects as they are: their layouts,
//! runners, watchers and configurations.

mod announced_modules;
mod busy_isolates;
mod compiled_in_memory;
mod conversation;
mod documented_launches;
mod program_ends;
mod project_commands;
mod project_layouts;
mod restarted_programs;
mod steps_and_values;
mod typescript_runners;
mod unused_functions;
mod worker_modules;
