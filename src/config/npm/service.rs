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
/// The options of each watcher that take a value in the next word.
const NODE_VALUES: &[&str] =
    &["--watch-path", "--import", "-r", "--require", "--loader", "--env-file", "--conditions", "-C"];
const TSX_VALUES: &[&str] =
    &["--tsconfig", "--include", "--exclude", "--ignore", "--env-file", "--import", "-r", "--require"];
const NODEMON_VALUES: &[&str] =
    &["-w", "--watch", "-i", "--ignore", "-e", "--ext", "-d", "--delay", "--signal", "--config"];

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
    let words: Vec<String> = words.collect();
    let (own, values) = match program.rsplit('/').next()? {
        "tsx" => (words.iter().position(|word| word == "watch")?, TSX_VALUES),
        "nodemon" if !words.iter().any(|word| word == "--exec" || word == "-x") => (0, NODEMON_VALUES),
        "node" if words.iter().any(|word| word.starts_with("--watch")) => (0, NODE_VALUES),
        _ => return None,
    };
    let is_tsx = values == TSX_VALUES;
    let mut rest = words.into_iter().skip(own + usize::from(is_tsx));
    while let Some(word) = rest.next() {
        if !word.starts_with('-') {
            let ending = word.rsplit('.').next()?;
            // nodemon runs TypeScript by ts-node, which may not be there.
            let is_typescript = values != NODEMON_VALUES && TYPESCRIPT.contains(&ending);
            if !is_typescript && !JAVASCRIPT.contains(&ending) {
                return None;
            }
            service.program = word;
            service.args = rest.collect();
            break;
        }
        let value = if values.contains(&word.as_str()) { Some(rest.next()?) } else { None };
        let is_of_node = values == NODE_VALUES && !word.starts_with("--watch");
        let is_passed_on = is_tsx && ["--env-file", "--import", "-r", "--require"].contains(&word.split('=').next()?);
        if is_of_node || is_passed_on {
            service.runtime_args.push(word);
            service.runtime_args.extend(value);
        }
    }
    if is_tsx {
        service.runtime_args.extend(["--import", "tsx"].map(str::to_owned));
    }
    (!service.program.is_empty()).then_some(service)
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
