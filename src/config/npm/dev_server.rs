//! Recognises the scripts of a package.json that start a web project's dev server, by the programs that they run.
//!
//! A script that only may be one is none: it would be waited for in vain. Does not depend on how a server is started.

use crate::config::jsonc::JsonNode;
use crate::config::npm::package_json::PackageJson;

/// Names of scripts that start a dev server, the preferred one first.
const SCRIPT_NAMES: [&str; 4] = ["dev", "start", "serve", "develop"];

/// Which of a program's subcommands serve.
enum Serving {
    /// Also without a subcommand; all but these.
    AllBut(&'static [&'static str]),
    Only(&'static [&'static str]),
}

/// Dev servers, and commands around them that serve; each prints the address of the page.
const SERVERS: &[(&str, Serving)] = &[
    ("vite", Serving::AllBut(&["build", "optimize", "preview"])),
    ("next", Serving::Only(&["dev"])),
    ("webpack", Serving::Only(&["serve", "server", "s"])),
    ("webpack-cli", Serving::Only(&["serve", "server", "s"])),
    ("webpack-dev-server", Serving::AllBut(&[])),
    ("rspack", Serving::Only(&["serve", "server", "s", "dev"])),
    ("rsbuild", Serving::Only(&["dev"])),
    ("nuxt", Serving::Only(&["dev"])),
    ("nuxi", Serving::Only(&["dev"])),
    ("astro", Serving::Only(&["dev", "start"])),
    ("ng", Serving::Only(&["serve", "s", "dev"])),
    ("react-scripts", Serving::Only(&["start"])),
    ("react-router", Serving::Only(&["dev"])),
    ("vue-cli-service", Serving::Only(&["serve"])),
    ("parcel", Serving::AllBut(&["build", "watch"])),
    ("remix", Serving::Only(&["dev", "vite:dev"])),
    ("gatsby", Serving::Only(&["develop", "dev"])),
    ("docusaurus", Serving::Only(&["start"])),
    ("vitepress", Serving::Only(&["dev"])),
    ("vinxi", Serving::Only(&["dev"])),
    ("waku", Serving::Only(&["dev"])),
    ("ember", Serving::Only(&["serve", "s", "server"])),
    ("web-dev-server", Serving::AllBut(&[])),
    ("wds", Serving::AllBut(&[])),
    ("http-server", Serving::AllBut(&[])),
];

/// The script that starts the dev server of a package, and its node.
pub fn find_dev_script(package: &PackageJson) -> Option<(&'static str, &JsonNode)> {
    let of_name = |name: &'static str| Some((name, package.script(name)?));
    SCRIPT_NAMES.into_iter().filter_map(of_name).find(|(_, node)| node.text().is_some_and(is_dev_server_line))
}

/// Whether a command line starts a dev server with one of its commands.
pub fn is_dev_server_line(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    (0..words.len()).any(|at| is_dev_server(&words[at..]))
}

fn is_dev_server(words: &[&str]) -> bool {
    let program = words[0].rsplit('/').next().unwrap_or_default();
    let program = program.strip_suffix(".js").or_else(|| program.strip_suffix(".cmd")).unwrap_or(program);
    let Some((_, serving)) = SERVERS.iter().find(|(name, _)| *name == program) else { return false };
    let subcommand = words.get(1).map(|word| word.trim_end_matches([';', ')', '"', '\'']));
    let subcommand = subcommand.filter(|word| word.starts_with(|it: char| it.is_alphabetic())).unwrap_or_default();
    match serving {
        Serving::AllBut(others) => !others.contains(&subcommand),
        Serving::Only(serving) => serving.contains(&subcommand),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dev_server_is_recognised_by_program_and_subcommand() {
        let check = |line: &str, expect: bool| assert_eq!(is_dev_server_line(line), expect, "{line}");
        for line in [
            "vite",
            "vite --host 127.0.0.1",
            "vite dev",
            "cross-env NODE_ENV=development vite",
            "next dev --turbopack",
            "next dev -p 4000",
            "webpack serve --mode development",
            "webpack-dev-server",
            "npx astro dev",
            "tsc -b && ./node_modules/.bin/vite",
            "node node_modules/next/dist/bin/next dev",
        ] {
            check(line, true);
        }
        for line in [
            "vite build",
            "vite preview",
            "tsc && vite build",
            "next build",
            "next start",
            "next",
            "webpack",
            "webpack --watch",
            "vitest",
            "node server.js",
            "nodemon --watch src",
            "",
        ] {
            check(line, false);
        }
    }

    #[test]
    fn the_preferred_script_is_the_first_that_serves() {
        let check = |scripts: &str, expect: Option<&str>| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("package.json"), format!("{{\"scripts\": {scripts}}}")).unwrap();
            let package = PackageJson::read(folder.path()).unwrap().unwrap();
            assert_eq!(find_dev_script(&package).map(|(name, _)| name), expect, "{scripts}");
        };
        check(r#"{"build": "vite build", "dev": "vite", "preview": "vite preview"}"#, Some("dev"));
        check(r#"{"start": "react-scripts start", "build": "react-scripts build"}"#, Some("start"));
        check(r#"{"dev": "nodemon server.js", "start": "next start"}"#, None);
    }
}
