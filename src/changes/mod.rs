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

mod change;
mod comparison;
mod content;
mod extent;
mod folder;
mod ignore;
mod keeper;
mod list;
mod name;
mod pattern;
mod problem;
mod rise;
mod scan;
mod snapshot;
mod tracker;
mod truth;
mod watch;

pub use change::{Change, ChangeKind, Check, Explanation, How, MOST_LISTED};
pub use extent::{Extent, extent};
pub use folder::Stamp;
pub use ignore::{BUILT_IN, Decision, Derived, IGNORE_FILE, Rule, Rules};
pub use problem::Problem;
pub use snapshot::Snapshot;
pub use tracker::{Confirm, Options, Tracker};
