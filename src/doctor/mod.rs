//! Diagnosis of this machine, this workspace and its supervisor; each finding with the command that fixes it.
//!
//! | file | checks |
//! |---|---|
//! | `examination` | everything below, in order |
//! | `workspace_checks` | settings, trust, what a watch needs |
//! | `window_checks` | the supervisor, the window, a `session.json` that an earlier window left |
//! | `machine_checks` | programs and tools, free disk space, our own folders |
//! | `adapter_checks` | the debug adapters on this machine |
//! | `orphan_launches` | processes of launches that no supervisor will find again; the only file that ends anything |
//! | `state_checks` | the state of workspaces that are gone |
//! | `finding` | what a check returns |
//!
//! Needs no supervisor, and starts none. Does not depend on how findings are printed.

pub mod adapter_checks;
mod examination;
mod finding;
mod machine_checks;
pub mod orphan_launches;
mod state_checks;
mod window_checks;
mod workspace_checks;

pub use examination::examine_workspace;
pub use finding::{DoctorReport, Finding, FindingLevel, FindingTopic};
