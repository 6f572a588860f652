//! `cargo xtask dist`: the packages that install `tether` without a compiler, and the proof that each of them does.
//!
//! The same program is in all of them. Knows neither what a package looks like nor how it is installed.

mod installs;
mod packages;
mod program;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use self::packages::Packer;
use self::program::Program;
use crate::paths::CheckoutPaths;
use crate::test_run::TestRun;
use crate::tools;

/// The file with the digests of all others.
const DIGESTS: &str = "SHA256SUMS";

#[derive(clap::Args)]
pub struct DistOptions {
    /// Folder for the packages [default: target/dist]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Builds the program, packs it in each way, and installs and uses each package.
pub fn make_packages(options: &DistOptions) -> Result<()> {
    let place = CheckoutPaths::find()?;
    let run = TestRun::start()?;
    let sh = Shell::new()?;
    sh.change_dir(&place.checkout);
    tools::install_packagers()?;
    let out = options.out.clone().unwrap_or_else(|| place.target().join("dist"));
    let out = std::path::absolute(out)?;

    let program = Program::build(&sh, &place)?;
    prepare_extension(&sh, &place)?;
    let _ = fs::remove_dir_all(&out);
    let packer = Packer::new(&sh, &place, &program, &out)?;
    let packages = packer.pack_all()?;
    packer.write_materials(program::TARGET)?;
    write_digests(&sh, &out)?;
    for (name, value) in run.variables()? {
        sh.set_var(name, value);
    }
    installs::use_each(&sh, &place, &packages, &run)?;
    println!("\n  {} and the list of its parts are in {}", DIGESTS, out.display());
    Ok(())
}

/// Packs a program that is built already, and installs and uses each package: so that a change breaks none.
pub fn check_packages(sh: &Shell, place: &CheckoutPaths, run: &TestRun, built: &Path) -> Result<()> {
    tools::install_packager("wheel")?;
    let out = run.folder().join("dist");
    let program = Program::strip(sh, built, &run.folder().join("tether"))?;
    let packages = Packer::new(sh, place, &program, &out)?.pack_all()?;
    installs::use_each(sh, place, &packages, run)
}

/// Its code is made by its own build, whose tools npm installs.
fn prepare_extension(sh: &Shell, place: &CheckoutPaths) -> Result<()> {
    let _in = sh.push_dir(place.checkout.join("extension"));
    cmd!(sh, "npm ci --ignore-scripts").run()?;
    Ok(cmd!(sh, "npm run compile").run()?)
}

fn write_digests(sh: &Shell, out: &Path) -> Result<()> {
    let _in = sh.push_dir(out);
    let mut files: Vec<_> = fs::read_dir(out)?.map(|file| Ok(file?.file_name())).collect::<Result<_>>()?;
    files.sort();
    let digests = cmd!(sh, "sha256sum {files...}").read()?;
    fs::write(out.join(DIGESTS), digests + "\n").with_context(|| format!("cannot write {DIGESTS}"))
}
