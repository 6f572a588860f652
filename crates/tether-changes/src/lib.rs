//! Detects which tracked files of a workspace changed since a baseline, and explains why a path counts.
//!
//! ```text
//!   edit ──▶ watcher ──events──▶ tracker_task ──▶ index ──▶ baseline_diff ──▶ ChangeReport
//!               ▲                  │  │             ▲ tree       ⟷ baseline
//!               └──────fence───────┘  └────cold──▶ scan
//! ```
//!
//! [`ChangeTracker`] reports changes against a [`FileSnapshot`]; [`IgnoreRules`] decide which files are tracked. A scan
//! is always right; the watcher only makes it unnecessary. Whenever events may have been missed, the result comes from
//! a scan and its [`CheckMethod`] gives the reason.

#![warn(missing_docs, unreachable_pub)]

mod baseline_diff;
mod change_report;
mod content_hash;
mod file_snapshot;
mod folder_files;
mod gitignore;
mod ignore_file;
mod ignore_pattern;
mod ignore_rules;
mod index;
mod noticed_times;
mod path_bytes;
mod read_dir;
mod scan;
mod tracker;
mod tracker_options;
mod tracker_task;
mod watch_setup;
mod watcher;
mod workspace_problem;
mod workspace_size;
mod written_files;

pub use change_report::{ChangeReport, CheckMethod, FileChange, FileChangeKind, MAX_LISTED_CHANGES, PathExplanation};
pub use file_snapshot::FileSnapshot;
pub use folder_files::FileStamp;
pub use gitignore::GitignoreChain;
pub use ignore_rules::{BUILT_IN_IGNORES, DerivedRule, IGNORE_FILE, IgnoreDecision, IgnoreRule, IgnoreRules};
pub use tracker::ChangeTracker;
pub use tracker_options::{ChangeCriterion, TrackerOptions};
pub use watcher::remove_left_fences;
pub use workspace_problem::WorkspaceProblem;
pub use workspace_size::{WorkspaceSize, measure_workspace};
pub use written_files::WrittenFiles;
