//! Where the code of a running program has come from: plain data.

use std::path::PathBuf;
use std::time::SystemTime;

use tempfile::TempDir;

use super::launch_arguments::JavaLaunch;

/// Where the code of the program has come from.
pub(crate) struct CodeOrigin {
    /// How it was launched; none: it was attached to.
    pub launch: Option<JavaLaunch>,
    /// The folders of its classes; empty: the virtual machine says which.
    pub folders: Vec<PathBuf>,
    /// The folder that its classes were compiled into for this run.
    pub compiled: Option<PathBuf>,
    /// Class files are changed when they are newer.
    pub since: SystemTime,
    /// Of the last swap, when the program has no folder of its own.
    pub kept: Option<TempDir>,
}

impl Default for CodeOrigin {
    fn default() -> CodeOrigin {
        let (launch, folders, compiled, kept) = Default::default();
        CodeOrigin { launch, folders, compiled, since: SystemTime::now(), kept }
    }
}
