//! Extensions as `generator-code` makes them, with their packages, each in a slot beside the tools; for tests only.
//!
//! Does not depend on what is tested with them.

use std::fs;
use std::path::Path;

use tether_base::error::{Error, ErrorContext, Result};
use tether_tools::{ExtensionTemplate, InstallablePackage, Pins, entry_path};
use xshell::{Shell, cmd};

use crate::shell::run_quietly;

/// One of them, and the pins of what generates it.
pub struct TemplatePackage<'a> {
    template: &'a ExtensionTemplate,
    pins: &'a Pins,
}

impl<'a> TemplatePackage<'a> {
    /// `pins` has the tools that the template needs.
    pub fn new(template: &'a ExtensionTemplate, pins: &'a Pins) -> Self {
        TemplatePackage { template, pins }
    }

    fn generate(&self, folder: &Path) -> anyhow::Result<()> {
        let sh = Shell::new()?;
        let tools = tether_tools::tools_folder()?;
        let node = entry_path("node24")?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/real/extension_templates/generate.mjs");
        let arguments = &self.template.arguments;
        fs::create_dir_all(folder)?;
        run_quietly(cmd!(sh, "{node} {script} {tools} {folder} {arguments...}"))?;
        let _in = sh.push_dir(folder);
        run_quietly(cmd!(sh, "npm install --ignore-scripts --no-audit --no-fund"))
    }
}

impl InstallablePackage for TemplatePackage<'_> {
    fn name(&self) -> &str {
        &self.template.name
    }

    fn pin(&self) -> String {
        let generators = self.template.needs.iter().filter_map(|name| self.pins.tool(name).ok());
        let generators: Vec<_> = generators.map(|tool| tool.pin()).collect();
        format!("{} {}", generators.join(" "), self.template.arguments.join(" "))
    }

    /// The versions of its packages are the newest that fit on the day of the install; they stay until the pin changes.
    async fn install(&self, folder: &Path) -> Result<()> {
        self.generate(folder)
            .map_err(|cause| Error::other("cannot generate an extension").because(format!("{cause:#}")))
    }

    async fn verify(&self, folder: &Path) -> Result<()> {
        for file in ["package.json", "node_modules/.package-lock.json"] {
            let file = folder.join(file);
            fs::metadata(&file).doing(|| format!("the install never finished: no {}", file.display()))?;
        }
        Ok(())
    }
}
