//! The launch id of a window, and the paths in the state folder that contain it.
//!
//! ```text
//! <state>/window-<launch id>/      scratch folder, removed when the window stops
//! <state>/output-<launch id>.log   stdout and stderr of all processes of the launch
//! <state>/built-<launch id>        snapshot of the files that the window was built from
//! ```

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tether_base::error::{ErrorContext, Result};

/// A new random id, such as a launch id: 128 bits in hex.
pub(super) fn new_random_id() -> Result<String> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(std::io::Error::from)
        .doing(|| "cannot draw a random id".into())?;
    Ok(hex::encode(bytes))
}

/// Whether `text` has the shape of a launch id: 8–64 letters, digits and `-`. It becomes part of paths.
pub fn is_launch_id(text: &str) -> bool {
    (8..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The scratch folder of a launch, which is removed with it.
pub fn scratch_dir_of(state_dir: &Path, launch_id: &str) -> PathBuf {
    state_dir.join(format!("window-{launch_id}"))
}

/// The launch id in the name of a scratch folder.
pub(super) fn launch_id_of_scratch_dir(folder: &OsStr) -> Option<String> {
    let launch_id = folder.to_str()?.strip_prefix("window-")?;
    is_launch_id(launch_id).then(|| launch_id.to_owned())
}

/// The output file of a launch.
pub fn output_file_of(state_dir: &Path, launch_id: &str) -> PathBuf {
    state_dir.join(format!("output-{launch_id}.log"))
}

/// The snapshot of the files that the window of a launch was built from.
pub(super) fn baseline_file_of(state_dir: &Path, launch_id: &str) -> PathBuf {
    state_dir.join(format!("built-{launch_id}"))
}
