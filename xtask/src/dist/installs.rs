//! Installs each package into an empty folder, as its users do, and uses what was installed.
//!
//! Does not know what is in a package.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use xshell::{Shell, cmd};

use super::packages::{Package, PackageKind};
use crate::paths::CheckoutPaths;
use crate::shell::run_quietly;
use crate::test_run::TestRun;

const PROGRAM: &str = "let total = 0;\nfor (const price of [1, 2]) total += price;\nconsole.log(total);\n";

/// Errors: a package cannot be installed, or what was installed does not do its main job.
pub fn use_each(sh: &Shell, place: &CheckoutPaths, packages: &[Package], run: &TestRun) -> Result<()> {
    for package in packages {
        let name = package.kind.name();
        if package.kind == PackageKind::Vsix && !place.tool("code-server")?.exists() && env::var_os("CI").is_none() {
            eprintln!(
                "warning: {name} is not installed: code-server is missing\n  hint: `cargo xtask tools` installs it"
            );
            continue;
        }
        let folder = tempfile::Builder::new().prefix("installed-").tempdir_in(run.folder())?;
        let began = Instant::now();
        let program = install(sh, place, package, folder.path()).with_context(|| format!("cannot install: {name}"))?;
        let printed = cmd!(sh, "{program} --version").read()?;
        let took = began.elapsed();
        ensure!(printed == format!("tether {}", package.version), "{name}: its version is {printed:?}");
        let workspace = folder.path().join("workspace");
        stop_at_breakpoint(sh, &program, &workspace).with_context(|| format!("{name}: a program is not debugged"))?;
        answer_an_agent(sh, &program, &workspace).with_context(|| format!("{name}: an agent gets no answer"))?;
        let sizes = package.files.iter().map(|file| Ok(fs::metadata(file)?.len())).collect::<Result<Vec<_>>>()?;
        let size = sizes.iter().sum::<u64>() as f64 / 1e6;
        println!("  {name:<8} {size:>5.1} MB, installed and started in {:.2} s", took.as_secs_f64());
    }
    Ok(())
}

/// The installed program.
fn install(sh: &Shell, place: &CheckoutPaths, package: &Package, folder: &Path) -> Result<PathBuf> {
    let files = &package.files;
    let file = files.first().context("it has no file")?;
    match package.kind {
        PackageKind::Archive => {
            run_quietly(cmd!(sh, "tar --extract --file {file} --directory {folder} --strip-components 1"))?;
            Ok(folder.join("tether"))
        }
        PackageKind::Npm => {
            let options = ["--offline", "--ignore-scripts", "--no-audit", "--no-fund"];
            run_quietly(cmd!(sh, "npm install --global --prefix {folder} {options...} {files...}"))?;
            Ok(folder.join("bin/tether"))
        }
        PackageKind::Wheel => {
            run_quietly(cmd!(sh, "python3 -m venv {folder}"))?;
            let pip = folder.join("bin/pip");
            run_quietly(cmd!(sh, "{pip} install --no-index --disable-pip-version-check {file}"))?;
            Ok(folder.join("bin/tether"))
        }
        PackageKind::Debian => {
            install_debian(sh, file, folder)?;
            Ok(folder.join("usr/bin/tether"))
        }
        PackageKind::Vsix => install_extension(sh, place, file, folder),
    }
}

/// Into a database of its own. Another user than root may only unpack it.
fn install_debian(sh: &Shell, file: &Path, folder: &Path) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return run_quietly(cmd!(sh, "dpkg-deb --extract {file} {folder}"));
    }
    let database = folder.join("var/lib/dpkg");
    for name in ["info", "updates"] {
        fs::create_dir_all(database.join(name))?;
    }
    fs::write(database.join("status"), "")?;
    // The packages that it needs are in this machine's own database.
    let options = ["--force-depends", "--install"];
    run_quietly(cmd!(sh, "dpkg --admindir {database} --instdir {folder} {options...} {file}"))
}

fn install_extension(sh: &Shell, place: &CheckoutPaths, file: &Path, folder: &Path) -> Result<PathBuf> {
    let (node, server) = (place.tool("node24")?, place.tool("code-server")?);
    let (extensions, data) = (folder.join("extensions"), folder.join("data"));
    let options =
        ["--install-extension".as_ref(), file.as_os_str(), "--extensions-dir".as_ref(), extensions.as_os_str()];
    run_quietly(cmd!(sh, "{node} {server} --user-data-dir {data} {options...}"))?;
    let installed = fs::read_dir(&extensions)?.filter_map(|it| Some(it.ok()?.path().join("bin/tether")));
    let programs: Vec<PathBuf> = installed.filter(|program| program.is_file()).collect();
    let [program] = programs.as_slice() else { anyhow::bail!("{} programs were installed", programs.len()) };
    Ok(program.clone())
}

/// A program of Node, whose adapter is a part of the program.
fn stop_at_breakpoint(sh: &Shell, tether: &Path, workspace: &Path) -> Result<()> {
    fs::create_dir_all(workspace)?;
    fs::write(workspace.join("app.js"), PROGRAM)?;
    let _in = sh.push_dir(workspace);
    run_quietly(cmd!(sh, "{tether} trust --programs --yes"))?;
    let result = (|| -> Result<()> {
        let stopped = cmd!(sh, "{tether} debug launch app.js -b app.js:3 --wait 60 --json").quiet().read()?;
        let stopped: Value = serde_json::from_str(&stopped)?;
        ensure!(stopped["stopReason"]["location"]["lineNumber"] == json!(3), "it has not stopped: {stopped:#}");
        let value = cmd!(sh, "{tether} debug evaluate total --json").quiet().read()?;
        ensure!(serde_json::from_str::<Value>(&value)?["result"] == json!("3"), "the value is not 3: {value}");
        run_quietly(cmd!(sh, "{tether} debug stop"))
    })();
    result.and(run_quietly(cmd!(sh, "{tether} shutdown --all")))
}

/// The MCP server, with a client that leaves after the first answer.
fn answer_an_agent(sh: &Shell, tether: &Path, workspace: &Path) -> Result<()> {
    let client = json!({"name": "dist", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let _in = sh.push_dir(workspace);
    let printed = cmd!(sh, "{tether} mcp").stdin(format!("{request}\n")).quiet().read()?;
    let answer: Value = serde_json::from_str(printed.lines().next().unwrap_or_default()).context(printed.clone())?;
    ensure!(answer["result"]["serverInfo"].is_object(), "it has answered {answer}");
    Ok(())
}
