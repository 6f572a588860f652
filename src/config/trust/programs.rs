//! Identifies the programs of a workspace for the user's consent: one by one, each by its path and content.
//!
//! An interpreter that links to the machine's is identified by what it links to, and an environment also by its
//! `pyvenv.cfg`, which chooses the standard library. Which paths count: [`crate::workspace::workspace_programs`].

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::config::consent_line::ConsentLine;
use crate::config::source_file::Origin;
use crate::workspace::workspace_programs::{PYTHON_ENVIRONMENTS, WORKSPACE_PROGRAMS, interpreter_in_workspace};

/// Begins each line.
const PREFIX: &str = "program ";
/// A larger program cannot be consented to, in bytes.
const MAX_PROGRAM_BYTES: u64 = 256 << 20;

/// The programs that are there, with the interpreter of the active environment, one line each. One that cannot be
/// identified has no line, and is never run.
pub(super) fn program_lines(workspace: &Path) -> Vec<ConsentLine> {
    let active = PYTHON_ENVIRONMENTS.iter().filter_map(std::env::var_os);
    let active = active.filter_map(|folder| interpreter_in_workspace(workspace, Path::new(&folder)));
    let mut paths: Vec<PathBuf> = WORKSPACE_PROGRAMS.iter().map(|program| program.path.into()).collect();
    active.for_each(|path| {
        if !paths.contains(&path) {
            paths.push(path)
        }
    });
    paths.iter().filter_map(|path| program_line(workspace, path)).collect()
}

/// The path in the text of a line, relative to the workspace.
pub(super) fn path_of_line(text: &str) -> Option<PathBuf> {
    let json = text.strip_prefix(PREFIX)?;
    serde_json::Deserializer::from_str(json).into_iter::<String>().next()?.ok().map(PathBuf::from)
}

/// One program, for the user's consent; `None` when it is not there, or cannot be identified.
pub(super) fn program_line(workspace: &Path, relative: &Path) -> Option<ConsentLine> {
    let path = workspace.join(relative);
    let (target, sha256) = identify_program(&path).ok()?;
    let linked = if target == path { String::new() } else { format!(" which is {}", json!(target.to_string_lossy())) };
    let text = format!("{PREFIX}{}{linked}: sha256 {sha256}", json!(relative.to_string_lossy()));
    Some(ConsentLine { text, origin: Some(Origin::new(workspace, &path, None)) })
}

/// What the path leads to, and the SHA-256 of that and of the environment's settings, in hex.
fn identify_program(path: &Path) -> io::Result<(PathBuf, String)> {
    let target = path.canonicalize()?;
    let mut digest = Sha256::new();
    hash_file(&target, &mut digest)?;
    let settings = path.parent().and_then(Path::parent).map(|environment| environment.join("pyvenv.cfg"));
    if let Some(settings) = settings.filter(|settings| settings.symlink_metadata().is_ok()) {
        hash_file(&settings, &mut digest)?;
    }
    Ok((target, hex::encode(digest.finalize())))
}

/// Adds the size and the bytes of a regular file. Does not wait for the writer of a FIFO.
fn hash_file(path: &Path, digest: &mut Sha256) -> io::Result<()> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > MAX_PROGRAM_BYTES {
        return Err(io::Error::other("it is not a regular file of at most 256 MiB"));
    }
    digest.update(metadata.len().to_le_bytes());
    let (mut file, mut buffer) = (file.take(MAX_PROGRAM_BYTES), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            count => digest.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_program_is_identified_by_path_target_content_and_environment() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (workspace, write) = (root.join("w"), |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        });
        let texts = || program_lines(&workspace).into_iter().map(|line| line.text).collect::<Vec<_>>();
        assert!(texts().is_empty());
        write("python", "one");
        write("w/bin/rdbg", "one");
        write("w/.venv/pyvenv.cfg", "home = /usr");
        std::fs::create_dir_all(root.join("w/.venv/bin")).unwrap();
        symlink(root.join("python"), root.join("w/.venv/bin/python")).unwrap();
        let before = texts();
        assert_eq!(before.len(), 2);
        assert!(before[0].starts_with("program \".venv/bin/python\" which is \""), "{before:?}");
        assert!(before[1].starts_with("program \"bin/rdbg\": sha256 "), "{before:?}");
        assert_eq!(path_of_line(&before[0]), Some(".venv/bin/python".into()));
        for (file, text) in [("python", "two"), ("w/.venv/pyvenv.cfg", "home = /tmp"), ("w/bin/rdbg", "two")] {
            let was = texts();
            write(file, text);
            assert_ne!(texts(), was, "{file}");
        }
        write("other", "two");
        std::fs::remove_file(root.join("w/.venv/bin/python")).unwrap();
        let was = before;
        symlink(root.join("other"), root.join("w/.venv/bin/python")).unwrap();
        assert_ne!(texts()[0], was[0]);
    }

    #[test]
    fn a_program_that_is_no_file_or_too_large_has_no_line() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("bin")).unwrap();
        let program = folder.path().join("bin/rdbg");
        let status = std::process::Command::new("mkfifo").arg(&program).status().unwrap();
        assert!(status.success() && program_lines(folder.path()).is_empty());
        std::fs::remove_file(&program).unwrap();
        File::create(&program).unwrap().set_len(MAX_PROGRAM_BYTES + 1).unwrap();
        assert!(program_lines(folder.path()).is_empty());
    }
}
