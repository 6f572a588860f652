//! The workspace's folder: what we keep in it, and which of its programs may run.
//!
//! | file | owns |
//! |---|---|
//! | `workspace_dir` | `.devtools`, our folder in the workspace |
//! | `workspace_programs` | which programs of a workspace debugging may run, with the user's consent |

pub mod workspace_dir;
pub mod workspace_programs;
