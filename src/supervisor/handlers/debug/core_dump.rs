//! Core dumps that are opened: which program wrote one, and what is to be known of it.

use std::path::{Path, PathBuf};

use tether_base::error::{Error, Result};
use tether_base::file_age::is_older;

use super::launch::existing_path;
use crate::debug::program::CoreFile;

/// The program that wrote a core dump. Errors: the dump does not name it, or it is not there.
pub(super) fn core_program(workspace: &Path, core: &Path, given: Option<&str>) -> Result<PathBuf> {
    let named = CoreFile::read(core)?.program;
    if let Some(given) = given {
        return existing_path(workspace, given);
    }
    let cause = match &named {
        Some(program) if program.is_file() => return Ok(program.clone()),
        Some(program) => format!("its program, {}, is not there", program.display()),
        None => "it does not name its program".to_owned(),
    };
    let error = Error::usage(format!("cannot open {}", core.display())).because(cause);
    Err(error.hint("name the executable: `tether debug attach --core FILE --program FILE`"))
}

/// What is to be known of a core dump: how its program ended, and whether the executable is the one that wrote it.
pub(super) fn core_notes(core: &Path, program: &Path) -> Vec<String> {
    let signal = CoreFile::read(core).ok().and_then(|core| core.signal);
    let ended = signal.map(|signal| format!("the program was ended by signal {signal}; this is its core dump"));
    let newer = is_older(core, program).then(|| {
        format!("{} is newer than the core dump: its lines and values may be those of another build", program.display())
    });
    ended.into_iter().chain(newer).collect()
}
