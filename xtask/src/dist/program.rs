//! The program that is packed: built for an older C library than this machine's, so that older systems run it, too.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

use crate::paths::CheckoutPaths;
use crate::tools;

/// No other target is built: rustup's servers are needed for the standard libraries of others, and for a static one (musl).
pub const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The least minor version of glibc 2 that it runs with: that of Debian 10 and of RHEL 8.
pub const GLIBC: u32 = 28;

/// A program, and what is true of it.
pub struct Program {
    pub path: PathBuf,
    /// As it prints it.
    pub version: String,
    /// The minor version of glibc 2 that it needs.
    pub glibc: u32,
    /// It is linked with the C compiler's own library.
    pub needs_libgcc: bool,
}

impl Program {
    /// Errors: it needs a newer C library than is promised.
    pub fn build(sh: &Shell, place: &CheckoutPaths) -> Result<Program> {
        ensure!(cfg!(all(target_os = "linux", target_arch = "x86_64")), "packages are built on Linux on x86-64 only");
        let zig = tools::packager_path("zigbuild")?;
        let folder = zig.parent().context("cargo-zigbuild is in no folder")?;
        let folders = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
        let path: OsString = env::join_paths([folder.to_owned()].into_iter().chain(folders))?;
        let _path = sh.push_env("PATH", path);
        let target = format!("{TARGET}.2.{GLIBC}");
        cmd!(sh, "cargo zigbuild --release --bin tether --target {target}").run()?;
        let program = Program::inspect(sh, place.target().join(TARGET).join("release/tether"))?;
        ensure!(program.glibc <= GLIBC, "the program needs glibc 2.{}, and 2.{GLIBC} is promised", program.glibc);
        Ok(program)
    }

    /// The program without its debug information.
    pub fn strip(sh: &Shell, built: &Path, into: &Path) -> Result<Program> {
        cmd!(sh, "strip -o {into} {built}").quiet().run()?;
        Program::inspect(sh, into.to_owned())
    }

    fn inspect(sh: &Shell, path: PathBuf) -> Result<Program> {
        let printed = cmd!(sh, "{path} --version").read()?;
        let version = printed.strip_prefix("tether ").with_context(|| format!("its version is {printed:?}"))?;
        let bytes = fs::read(&path)?;
        ensure!(fs::metadata(&path)?.permissions().mode() & 0o111 != 0, "{} is not executable", path.display());
        Ok(Program {
            version: version.to_owned(),
            glibc: newest_glibc(&bytes).context("it names no version of glibc")?,
            needs_libgcc: contains(&bytes, b"libgcc_s.so.1\0"),
            path,
        })
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// The newest version of glibc 2 among the versions of symbols that a program names.
fn newest_glibc(bytes: &[u8]) -> Option<u32> {
    const VERSION: &[u8] = b"\0GLIBC_2.";
    let starts = bytes.windows(VERSION.len()).enumerate().filter(|(_, window)| *window == VERSION);
    let minors = starts.filter_map(|(at, _)| {
        let digits = bytes[at + VERSION.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        String::from_utf8(digits.copied().collect()).ok()?.parse().ok()
    });
    minors.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts() {
        let check = |bytes: &[u8], expect: Option<u32>| assert_eq!(newest_glibc(bytes), expect);
        check(b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.17\0", Some(34));
        check(b"\0GLIBC_2.9\0", Some(9));
        check(b"glibc\0GLIBC_PRIVATE\0", None);
        check(b"", None);
    }
}
