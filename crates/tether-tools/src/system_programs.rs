//! Programs of the distribution: checks their versions, and names the package that installs them. Installs nothing.

use std::path::PathBuf;
use std::time::Duration;

use tether_base::error::{Error, ErrorKind, Result};
use tether_base::path_lookup::find_on_path;

use super::bounded_command::read_output;
use super::pins::SystemPin;

/// How long a program may take to print its version.
const DEADLINE: Duration = Duration::from_secs(20);

/// A program that is present and new enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemProgram {
    /// Where `PATH` has the program of the probe (`python3` for `pip`); empty if it is no longer there.
    pub path: PathBuf,
    /// As the program prints it, without the words around it.
    pub version: String,
}

/// Runs the version command and compares the first version number in its output with the oldest that works.
pub async fn check_program_version(pin: &SystemPin) -> Result<SystemProgram> {
    let install = format!("`apt-get install {}` brings it", pin.apt.join(" "));
    let printed = read_output(&pin.probe, DEADLINE).await.map_err(|error| error.hint(install.clone()))?;
    let version = first_version(&printed).unwrap_or_default();
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < pin.least) {
        return Err(Error::new(ErrorKind::MissingTool, format!("`{}` printed `{printed}`", pin.probe.join(" ")))
            .because(format!("version {} or newer is needed", pin.least))
            .hint(format!("{install}, if that is newer; or put a newer one on PATH")));
    }
    let path = find_on_path(&[&pin.probe[0]], std::env::var_os("PATH").as_deref()).unwrap_or_default();
    Ok(SystemProgram { path, version: version.to_owned() })
}

/// The first version in a text such as `v20.20.2` or `Chromium 156.0.8078.79 built on …`.
fn first_version(text: &str) -> Option<&str> {
    let from = text.find(|c: char| c.is_ascii_digit())?;
    let rest = &text[from..];
    let to = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    Some(rest[..to].trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_first_number_with_its_dots() {
        for (text, expected) in [
            ("v20.20.2", Some("20.20.2")),
            ("Chromium 156.0.8078.79 built on Debian", Some("156.0.8078.79")),
            ("git version 2.47.3", Some("2.47.3")),
            ("pip 23.2.1 from somewhere/3.11", Some("23.2.1")),
            ("version 7.", Some("7")),
            ("command not found", None),
            ("", None),
        ] {
            assert_eq!(first_version(text), expected, "{text:?}");
        }
    }

    #[tokio::test]
    async fn a_missing_or_old_program_is_reported_with_the_package_that_installs_it() {
        let check = async |script: &str, expect: Result<&str, &[&str]>| {
            let probe = ["sh", "-c", script].map(str::to_owned).to_vec();
            let pin = SystemPin { name: "x".into(), probe, least: 18, apt: vec!["nodejs".into()], tests_only: false };
            match (super::check_program_version(&pin).await, expect) {
                (Ok(found), Ok(version)) => assert!(found.version == version && found.path.is_file(), "{found:?}"),
                (Err(error), Err(parts)) => {
                    let text = error.to_string();
                    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
                    assert!(text.contains("`apt-get install nodejs` brings it"), "{text}");
                }
                (other, _) => panic!("{script}: {other:?}"),
            }
        };
        check("echo v20.1.0", Ok("20.1.0")).await;
        check("echo v16.1.0", Err(&["printed `v16.1.0`", "version 18 or newer"])).await;
        check("echo nothing", Err(&["version 18 or newer"])).await;
        check("echo no >&2; exit 1", Err(&["exit status: 1", "no"])).await;
    }
}
