//! npm packages: `package.json`, and the scripts that package managers run.

pub mod consented_scripts;
pub mod dev_server;
pub mod linked_packages;
pub mod package_json;
pub mod package_search;
pub mod service;
