//! The workspace's folder: what we keep in it, and which of its programs may run.
//!
//! | file | owns |
//! |---|---|
//! | `workspace_dir` | `.devtools`, our folder in the workspace |
//! | `output_files` | the files that operations hand over; reading files that a caller names |
//! | `workspace_programs` | which programs of a workspace debugging may run, with the user's consent |

pub mod output_files;
pub mod workspace_dir;
pub mod workspace_programs;
