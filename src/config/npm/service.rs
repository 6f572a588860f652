//! Recognises the scripts of a package.json that run a Node service and start it again after each change, by the program that they run:
//! the window is then that service, and tether starts it again instead.
//!
//! A line that needs a shell is none: what it runs is not known. Does not depend on how a service is started.

use std::collections::BTreeMap;

use crate::config::jsonc::JsonNode;
use crate::config::npm::package_json::PackageJson;

/// Names of scripts that start a service for development, the preferred one first.
const SCRIPT_NAMES: [&str; 4] = ["dev", "start:dev", "watch", "start"];
/// What only a shell understands.
const SHELL: &[char] = &['&', '|', ';', '<', '>', '(', ')', '$', '`', '"', '\'', '\\', '*', '?', '~', '#'];
/// The endings of scripts of Node's.
const JAVASCRIPT: [&str; 3] = ["js", "mjs", "cjs"];
const TYPESCRIPT: [&str; 4] = ["ts", "mts", "cts", "tsx"];

/// What starts a service again after each change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watcher {
    Node,
    Nodemon,
    Tsx,
}

impl Watcher {
    /// Its options that take a value in the next word.
    fn value_options(self) -> &'static [&'static str] {
        match self {
            Watcher::Node => {
                &["--watch-path", "--import", "-r", "--require", "--loader", "--env-file", "--conditions", "-C"]
            }
            Watcher::Nodemon => {
                &["-w", "--watch", "-i", "--ignore", "-e", "--ext", "-d", "--delay", "--signal", "--config"]
            }
            Watcher::Tsx => {
                &["--tsconfig", "--include", "--exclude", "--ignore", "--env-file", "--import", "-r", "--require"]
            }
        }
    }

    /// Whether an option is one of Node itself.
    fn passes_on(self, option: &str) -> bool {
        match self {
            Watcher::Node => !option.starts_with("--watch"),
            Watcher::Nodemon => false,
            Watcher::Tsx => {
                let name = option.split('=').next().unwrap_or_default();
                ["--env-file", "--import", "-r", "--require"].contains(&name)
            }
        }
    }

    /// Whether it runs a file of that name; nodemon runs TypeScript by ts-node, which may not be there.
    fn runs(self, file: &str) -> bool {
        let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
        JAVASCRIPT.contains(&ending) || self != Watcher::Nodemon && TYPESCRIPT.contains(&ending)
    }
}

/// A service, and the script that starts it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// The script of Node's, relative to the package.
    pub program: String,
    pub args: Vec<String>,
    /// Of Node itself.
    pub runtime_args: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// The service of a package, and the node of its script.
pub fn find_service(package: &PackageJson) -> Option<(Service, &JsonNode)> {
    let of_name = |name: &str| package.script(name);
    SCRIPT_NAMES.into_iter().filter_map(of_name).find_map(|node| Some((read_line(node.text()?)?, node)))
}

/// The service that a command line starts, and watches.
fn read_line(line: &str) -> Option<Service> {
    let mut words = line.split_whitespace().map(str::to_owned).peekable();
    let mut service = Service::default();
    if line.contains(SHELL) {
        return None;
    }
    words.next_if(|word| word == "cross-env");
    while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
        service.env.insert(name.to_owned(), value.to_owned());
        words.next();
    }
    words.next_if(|word| word == "npx");
    let program = words.next()?;
    let watcher = match program.rsplit('/').next()? {
        "tsx" => words.next_if(|word| word == "watch").map(|_| Watcher::Tsx)?,
        "nodemon" => Watcher::Nodemon,
        "node" => Watcher::Node,
        _ => return None,
    };
    let mut is_watched = watcher != Watcher::Node;
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            service.program = word;
            break;
        }
        // What nodemon runs by another program is not known.
        if watcher == Watcher::Nodemon && (word.starts_with("--exec") || word == "-x") {
            return None;
        }
        is_watched |= word.starts_with("--watch");
        let value = if watcher.value_options().contains(&word.as_str()) { Some(words.next()?) } else { None };
        if watcher.passes_on(&word) {
            service.runtime_args.push(word);
            service.runtime_args.extend(value);
        }
    }
    service.args = words.collect();
    if watcher == Watcher::Tsx {
        service.runtime_args.extend(["--import", "tsx"].map(str::to_owned));
    }
    (is_watched && watcher.runs(&service.program)).then_some(service)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_recognised_by_its_watcher() {
        let check = |line: &str, program: &str, args: &[&str], runtime_args: &[&str]| {
            let service = read_line(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(
                (service.program.as_str(), service.args, service.runtime_args),
                (program, words(args), words(runtime_args)),
                "{line}"
            );
        };
        check("tsx watch src/server.ts", "src/server.ts", &[], &["--import", "tsx"]);
        check(
            "tsx watch --clear-screen=false --env-file=.env --include data src/server.ts --port 1",
            "src/server.ts",
            &["--port", "1"],
            &["--env-file=.env", "--import", "tsx"],
        );
        check("nodemon server.js", "server.js", &[], &[]);
        check("npx nodemon --watch src -e js,json ./bin/www.js", "./bin/www.js", &[], &[]);
        check("node --watch --enable-source-maps dist/main.js", "dist/main.js", &[], &["--enable-source-maps"]);
        check("node --watch-path=src -r ./setup.cjs server.mjs", "server.mjs", &[], &["-r", "./setup.cjs"]);
        let with_env = read_line("NODE_ENV=development PORT=1 node --watch server.js").unwrap();
        assert_eq!(
            with_env.env.into_iter().collect::<Vec<_>>(),
            [("NODE_ENV".into(), "development".into()), ("PORT".into(), "1".into())]
        );
    }

    #[test]
    fn what_is_no_service_or_needs_a_shell_is_none() {
        for line in [
            "",
            "tsx src/server.ts",
            "tsx watch",
            "node server.js",
            "node server.js --watch",
            "tsx src/server.ts watch",
            "nodemon --exec=tsx src/server.ts",
            "nodemon",
            "nodemon --exec tsx src/server.ts",
            "nodemon src/server.ts",
            "nodemon --watch src",
            "tsc -w & nodemon dist/server.js",
            "tsx watch \"src/my server.ts\"",
            "node --watch",
            "vite",
        ] {
            assert_eq!(read_line(line), None, "{line}");
        }
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}
