//! The types of `pins.toml`: the tools, their versions, and how to verify them.
//!
//! Does not depend on how anything is installed.

use serde::Deserialize;
use tether_base::error::{Error, ErrorKind, Result};

/// The file, compiled into the program: a program always has its own pins.
const TEXT: &str = include_str!("pins.toml");

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    /// Programs that `tether` only checks.
    #[serde(rename = "system")]
    pub systems: Vec<SystemPin>,
    /// Each in a folder of its own; those that only tests need are among them.
    #[serde(rename = "tool")]
    pub tools: Vec<Tool>,
    /// Only `cargo xtask dist` uses them.
    #[serde(rename = "packager")]
    pub packagers: Vec<Tool>,
    /// Only tests use them.
    #[serde(rename = "template")]
    pub templates: Vec<ExtensionTemplate>,
    /// Only tests use them, and do without those that are not to be had.
    #[serde(rename = "jdk")]
    pub jdks: Vec<DebianJdk>,
    #[expect(dead_code, reason = "read by the tidy test, which compares the examples with it")]
    typescript: toml::Value,
}

/// A program that the distribution provides.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemPin {
    /// What reports call it; its program may have another name.
    pub name: String,
    /// A command that exits with 0 and prints a version.
    pub probe: Vec<String>,
    /// The least major version that works.
    pub least: u32,
    /// The Debian packages that bring it.
    pub apt: Vec<String>,
    /// `tether doctor` does not look for it.
    #[serde(default, rename = "tests-only")]
    pub tests_only: bool,
}

/// An extension that `cargo xtask tools` generates with other tools, for tests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtensionTemplate {
    /// The name of its folder among those of the tools.
    pub name: String,
    /// Those of `tests/real/extension_templates/generate.mjs`.
    pub arguments: Vec<String>,
    /// The tools that generate it.
    pub needs: Vec<String>,
}

/// A JDK from the packages of a newer Debian, for tests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebianJdk {
    /// The name of its folder among those of the tools.
    pub name: String,
    /// The release of Debian.
    pub suite: String,
    /// Its packages, with the C library that they are linked with.
    pub packages: Vec<String>,
}

/// A tool in a folder of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawTool")]
pub struct Tool {
    /// The name of its folder, and what `tether adapters install` takes.
    pub name: String,
    /// What it is for, in a few words.
    pub what: String,
    /// Decides which package client installs it.
    pub source: ToolSource,
    /// What is started or loaded, below the tool's folder.
    pub entry: String,
    /// Arguments with which `entry` must exit with 0; empty: the files are proof enough.
    pub proof: Vec<String>,
    /// Tools that it does not work without.
    pub needs: Vec<String>,
    /// The debug adapters that are in it.
    pub brings: Vec<String>,
    /// `tether adapters` does not list it.
    pub tests_only: bool,
}

/// Where a tool comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolSource {
    /// A PyPI package.
    Wheel {
        /// Its name on PyPI.
        package: String,
        /// Exact, never a range.
        version: String,
    },
    /// An npm package.
    Npm {
        /// Its name on npm, with its scope.
        package: String,
        /// Exact, never a range.
        version: String,
        /// Folders inside it that need an install of their own.
        inner: Vec<String>,
    },
    /// A program of a Rust package, from crates.io.
    Cargo {
        /// Its name on crates.io.
        package: String,
        /// Exact, never a range.
        version: String,
    },
    /// A virtual environment with exactly pinned PyPI packages.
    Venv {
        /// Each as `name==version`.
        packages: Vec<String>,
    },
}

/// A tool as it is in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawTool {
    name: String,
    what: String,
    wheel: Option<String>,
    npm: Option<String>,
    cargo: Option<String>,
    venv: Option<Vec<String>>,
    #[serde(default)]
    inner: Vec<String>,
    entry: String,
    #[serde(default)]
    proof: Vec<String>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    brings: Vec<String>,
    #[serde(default)]
    tests_only: bool,
}

impl TryFrom<RawTool> for Tool {
    type Error = String;

    fn try_from(it: RawTool) -> Result<Tool, String> {
        let unpinned = |pin: &str| format!("{}: {pin:?} names no exact version", it.name);
        let split = |pin: &str, by: &str| {
            let (package, version) = pin.rsplit_once(by).filter(|(_, version)| is_exact(version))?;
            Some((package.to_owned(), version.to_owned()))
        };
        let source = match (it.wheel, it.npm, it.cargo, it.venv) {
            (Some(pin), None, None, None) => {
                let (package, version) = split(&pin, "==").ok_or_else(|| unpinned(&pin))?;
                ToolSource::Wheel { package, version }
            }
            (None, Some(pin), None, None) => {
                let (package, version) = split(&pin, "@").ok_or_else(|| unpinned(&pin))?;
                ToolSource::Npm { package, version, inner: it.inner }
            }
            (None, None, Some(pin), None) => {
                let (package, version) = split(&pin, "@").ok_or_else(|| unpinned(&pin))?;
                ToolSource::Cargo { package, version }
            }
            (None, None, None, Some(packages)) => {
                let loose = packages.iter().find(|pin| split(pin, "==").is_none());
                loose.map_or(Ok(()), |pin| Err(unpinned(pin)))?;
                ToolSource::Venv { packages }
            }
            _ => return Err(format!("{}: exactly one of `wheel`, `npm`, `cargo` and `venv` is needed", it.name)),
        };
        let RawTool { name, what, entry, proof, needs, brings, tests_only, .. } = it;
        Ok(Tool { name, what, source, entry, proof, needs, brings, tests_only })
    }
}

/// Numbers and dots only, PyPI's `.post1`, and its `rc1` after the last number: anything else could be a range.
fn is_exact(version: &str) -> bool {
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    let (released, candidate) = version.split_once("rc").unwrap_or((version, "0"));
    is_number(candidate) && released.split('.').all(|part| is_number(part.strip_prefix("post").unwrap_or(part)))
}

impl Tool {
    /// Whether it is only used as a debug adapter.
    pub fn is_adapter(&self) -> bool {
        !self.brings.is_empty()
    }

    /// The name and the exact version, as the package's client wants them.
    pub fn pin(&self) -> String {
        match &self.source {
            ToolSource::Wheel { package, version } => format!("{package}=={version}"),
            ToolSource::Npm { package, version, .. } | ToolSource::Cargo { package, version } => {
                format!("{package}@{version}")
            }
            ToolSource::Venv { packages } => packages.join(" "),
        }
    }
}

impl Pins {
    /// The pins of this program. Errors: never in a program whose tests have run.
    pub fn read() -> Result<Pins> {
        toml::from_str(TEXT).map_err(|cause| Error::other("cannot read pins.toml").because(cause))
    }

    /// The tool of this name, or with the adapter of this name; the error names those that there are.
    pub fn tool(&self, name: &str) -> Result<&Tool> {
        let brings = |tool: &&Tool| tool.brings.iter().any(|brought| brought == name);
        let named = self.tools.iter().find(|tool| tool.name == name).or_else(|| self.tools.iter().find(brings));
        named.ok_or_else(|| {
            let names: Vec<&str> = self.listed().map(|tool| tool.name.as_str()).collect();
            Error::new(ErrorKind::Usage, format!("there is no tool {name:?}"))
                .hint(format!("there are: {}; `tether adapters` lists them", names.join(", ")))
        })
    }

    /// The tools that are listed for users.
    pub fn listed(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().filter(|tool| !tool.tests_only)
    }

    /// The tool and everything that it needs, each after what it needs itself.
    pub fn with_needs<'a>(&'a self, tool: &'a Tool) -> Result<Vec<&'a Tool>> {
        let mut all: Vec<&Tool> = Vec::new();
        for name in &tool.needs {
            for needed in self.with_needs(self.tool(name)?)? {
                if !all.iter().any(|known| known.name == needed.name) {
                    all.push(needed);
                }
            }
        }
        all.push(tool);
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_sound() {
        let pins = Pins::read().unwrap();
        for tool in &pins.tools {
            let needed = pins.with_needs(tool).unwrap();
            assert_eq!(needed.last().unwrap().name, tool.name);
            assert!(!tool.what.is_empty() && tool.what.len() < 70, "{}: {:?}", tool.name, tool.what);
        }
        for system in &pins.systems {
            assert!(!system.probe.is_empty() && !system.apt.is_empty(), "{system:?}");
        }
        let order = |name| pins.with_needs(pins.tool(name).unwrap()).unwrap().into_iter().map(|tool| &tool.name);
        assert_eq!(order("code-server").collect::<Vec<_>>(), ["node24", "code-server"]);
        assert_eq!(order("codelldb").collect::<Vec<_>>(), ["js-debug"]);
    }

    #[test]
    fn only_an_exact_version_of_one_source_is_a_pin() {
        let check = |source: &str, expect: Option<&str>| {
            let text = format!("name = 'x'\nwhat = 'y'\nentry = 'z'\n{source}");
            match (toml::from_str::<Tool>(&text), expect) {
                (Ok(tool), None) => assert!(source.contains(&tool.pin()), "{source}"),
                (Err(error), Some(part)) if error.to_string().contains(part) => {}
                (other, _) => panic!("{source}: {other:?}"),
            }
        };
        check("npm = '@a/b@1.2.3'", None);
        check("wheel = 'a-b==1.2'", None);
        check("wheel = 'a-b==1.2.post3'", None);
        check("wheel = 'a-b==1.2rc1'", None);
        check("venv = ['a==1']", None);
        check("cargo = 'a-b@1.2.3'", None);
        check("cargo = 'a'", Some("names no exact version"));
        check("npm = 'b@^1.2.3'", Some("names no exact version"));
        check("npm = 'b'", Some("names no exact version"));
        check("wheel = 'a==1.2rc'", Some("names no exact version"));
        check("wheel = 'a>=1'", Some("names no exact version"));
        check("venv = ['a==1', 'b']", Some("\"b\" names no exact version"));
        check("", Some("exactly one of"));
        check("npm = 'a@1'\nwheel = 'a==1'", Some("exactly one of"));
        check("npm = 'a@1'\npip = 'x'", Some("unknown field"));
    }
}
