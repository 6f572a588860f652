//! The environment in which `cargo test` runs each test program: `[env]` of its configuration, `CARGO_PKG_*`, what build
//! scripts set, `OUT_DIR`, the path of libraries.
//!
//! Cargo itself says it: it is run once more, with a runner that records the environment it is given instead of running the
//! tests.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_process::{CapturedCommand, LAUNCH_ID, clean_environment, run_command};

/// Everything is built already.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// The runner: `$0` is the folder of the records, `$1` the test program.
const RECORD: &str = "{ printf '%s\\0' \"$1\" && env -0; } > \"$0/$$\"";
/// What the shell of the runner sets itself.
const OF_SHELL: [&str; 5] = ["PWD", "OLDPWD", "SHLVL", "_", LAUNCH_ID];

/// What cargo adds to the environment of each test program, by its path.
pub type TestEnvironments = BTreeMap<PathBuf, BTreeMap<OsString, OsString>>;

/// Records the environments of the test programs that were built in `folder`. Errors: cargo fails.
pub async fn read_environments(folder: &Path, mark: &str) -> Result<TestEnvironments> {
    let doing = || format!("cannot read the environment of the tests in {}", folder.display());
    let records = tempfile::tempdir().doing(doing)?;
    let env = clean_environment([(LAUNCH_ID, mark)]);
    let runner = json!(["sh", "-c", RECORD, records.path()]);
    let setting = format!("target.{}.runner={runner}", host_triple(folder, &env).await?);
    // `--tests`: all that `cargo test` runs, without the examples in documentation, which it compiles anew.
    let argv = ["cargo", "test", "--tests", "--no-fail-fast", "--config", setting.as_str()];
    let argv = argv.into_iter().map(OsString::from).collect();
    let command = CapturedCommand { argv, cwd: folder.to_owned(), env: env.clone(), timeout: TIMEOUT };
    let finished = run_command(&command, std::future::pending()).await?;
    if !finished.is_success() {
        let error = Error::new(ErrorKind::BuildFailed, doing()).because(finished.tail.trim_end().to_owned());
        return Err(error.hint(format!("`cd {} && cargo test` runs them by hand", folder.display())));
    }
    let mut found = TestEnvironments::new();
    for entry in std::fs::read_dir(records.path()).doing(doing)? {
        let record = std::fs::read(entry.doing(doing)?.path()).doing(doing)?;
        found.extend(parse_record(&record, &env));
    }
    Ok(found)
}

/// The target for which cargo builds by default, in the words of its configuration.
async fn host_triple(folder: &Path, env: &BTreeMap<OsString, OsString>) -> Result<String> {
    let argv = vec!["cargo".into(), "-vV".into()];
    let command = CapturedCommand { argv, cwd: folder.to_owned(), env: env.clone(), timeout: TIMEOUT };
    let mut host = None;
    let read = tether_process::run_until_line(&command, |line| {
        host = host.take().or_else(|| line.strip_prefix("host: ").map(|it| it.trim().to_owned()));
        false
    });
    read.await?;
    host.ok_or_else(|| Error::other("cannot read for which target cargo builds").because("`cargo -vV` does not say it"))
}

/// The program, and what its environment has that `base` has not.
fn parse_record(record: &[u8], base: &BTreeMap<OsString, OsString>) -> Option<(PathBuf, BTreeMap<OsString, OsString>)> {
    let mut parts = record.split(|byte| *byte == 0).map(OsStr::from_bytes);
    let program = PathBuf::from(parts.next()?);
    let variable = |part: &OsStr| {
        let bytes = part.as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (OsStr::from_bytes(bytes.get(..at)?), OsStr::from_bytes(bytes.get(at + 1..)?));
        let is_new = base.get(name).is_none_or(|known| known != value);
        let is_of_cargo = is_new && OF_SHELL.iter().all(|it| *it != name);
        is_of_cargo.then(|| (name.to_owned(), value.to_owned()))
    };
    Some((program, parts.filter_map(variable).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_what_cargo_adds_and_changes() {
        let base = clean_environment([("SAME", "1"), ("CHANGED", "1")]);
        let record = b"/t/debug/deps/a\0SAME=1\0CHANGED=a=b\0NEW=two\nlines\0PWD=/x\0broken\0";
        let (program, found) = parse_record(record, &base).unwrap();
        assert_eq!(program, Path::new("/t/debug/deps/a"));
        let expected = [("CHANGED", "a=b"), ("NEW", "two\nlines")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(found, BTreeMap::from(expected));
    }
}
