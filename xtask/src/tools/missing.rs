//! What is still missing when every install has been tried: collected, and reported as one error.

use anyhow::{Error, Result, bail};

/// A tool, or a system program, that could not be installed.
#[derive(Debug)]
pub struct Missing {
    name: String,
    /// Why, and what to run.
    cause: Error,
}

impl Missing {
    /// `cause` has the hints, if any.
    pub fn new(name: impl Into<String>, cause: Error) -> Missing {
        Missing { name: name.into(), cause }
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, indent(&self.cause))
    }
}

/// Errors: when anything is missing, all of it, each with its cause. `command` installs it.
pub fn report_missing(missing: &[Missing], command: &str) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|it| it.name.as_str()).collect();
    let causes: String = missing.iter().map(|it| format!("\n  {it}")).collect();
    bail!("not installed: {}{causes}\n  hint: `{command}` tries again", names.join(", "))
}

fn indent(cause: &Error) -> String {
    format!("{cause:#}").trim_end().replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn everything_missing_is_listed_with_its_cause_and_the_command() {
        report_missing(&[], "x").unwrap();
        let missing = [
            Missing::new("node24", anyhow!("cannot install node24\n  because: no network")),
            Missing::new("git", anyhow!("apt-get needs root\n  hint: sudo apt-get install -y git")),
        ];
        let error = report_missing(&missing, "cargo xtask tools");
        assert_eq!(
            error.unwrap_err().to_string(),
            "not installed: node24, git\n  node24: cannot install node24\n    because: no network\n  \
             git: apt-get needs root\n    hint: sudo apt-get install -y git\n  hint: `cargo xtask tools` tries again"
        );
    }
}
