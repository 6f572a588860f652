//! Has anything changed since? Which file? Why does it count?
//!
//! ```text
//!   edit ──▶ watch ──touched──▶ keeper ──▶ truth ──▶ comparison ──▶ Check
//!              ▲                 │  │        ▲ tree     ⟷ baseline
//!              └──────fence──────┘  └─cold─▶ scan
//! ```
//!
//! [`Tracker`] answers; [`Snapshot`] is what it compares with; [`Rules`] decide what is tracked. The scan is the truth
//! and the watch makes it cheap: whenever the watch cannot vouch for itself, the answer comes from a scan and says so.

mod baseline_diff;
mod change_report;
mod content_hash;
mod file_snapshot;
mod folder_files;
mod ignore_rules;
mod index;
mod path_bytes;
mod pattern;
mod read_dir;
mod scan;
mod tracker;
mod tracker_task;
mod watch_setup;
mod watcher;
mod workspace_problem;
mod workspace_size;

pub use change_report::{ChangeReport, CheckMethod, FileChange, FileChangeKind, MAX_LISTED_CHANGES, PathExplanation};
pub use file_snapshot::FileSnapshot;
pub use folder_files::FileStamp;
pub use ignore_rules::{BUILT_IN_IGNORES, DerivedRule, IGNORE_FILE, IgnoreDecision, IgnoreRule, IgnoreRules};
pub use tracker::{ChangeCriterion, ChangeTracker, TrackerOptions};
pub use workspace_problem::WorkspaceProblem;
pub use workspace_size::{WorkspaceSize, measure_workspace};
