//! npm packages: `package.json`, and the scripts that package managers run.

pub mod package_json;
pub mod scripts;
