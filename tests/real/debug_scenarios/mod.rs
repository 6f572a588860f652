//! The debug scenarios by their numbers: the real `tether` command line with real adapters. Each call is a separate
//! process; the supervisor holds the sessions.

mod breakpoint_persistence;
mod columns;
mod edited_sources;
mod ended_stops;
mod exit_facts;
mod exits;
mod hit_counts;
mod java_classes;
mod java_events;
mod java_lines;
mod java_projects;
mod java_status;
mod java_stops;
mod java_suspensions;
mod java_swapped_frames;
mod java_watchpoints;
mod linked_files;
mod native_stops;
mod node_stops;
mod one_shot;
mod page_stops;
mod program_failures;
mod python_attach;
mod python_children;
mod python_processes;
mod reloaded_modules;
mod ruby_children;
mod session_end;
mod session_events;
mod several_programs;
mod stops;
pub mod targets;
mod undebugged_children;
mod unreached_breakpoints;
mod unreached_causes;
mod unreached_matrix;
