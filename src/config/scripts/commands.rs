//! A line of a shell, taken apart as far as it takes to see which scripts it may call, and in which folders.
//!
//! Knows the words of package managers. Must not know files.

/// Programs that run scripts of a package.json.
const RUNNERS: &[&str] = &[
    "npm",
    "npm-cli",
    "pnpm",
    "yarn",
    "yarnpkg",
    "bun",
    "deno",
    "nr",
    "npm-run-all",
    "npm-run-all2",
    "run-s",
    "run-p",
    "concurrently",
    "conc",
    "npm-watch",
    "wireit",
    "vsce",
    "rushx",
    "--run",
];
/// Those that run them in all packages of a workspace.
const FOR_MEMBERS: &[&str] = &["nx", "turbo", "lerna", "lage", "rush", "wsrun", "ultra"];
/// What makes the others look for packages, also where none are listed.
const FINDS: &[&str] = &["-r", "-F", "--recursive", "--filter", "--filter-prod"];
/// What sends them to packages that are listed.
const MEMBERS: &[&str] = &["-w", "-ws", "-A", "--all", "--workspace", "--workspaces", "workspace", "workspaces"];
/// What sends a command, or those behind it, to a folder.
const FOLDERS: &[&str] = &["cd", "pushd", "-C", "--prefix", "--dir", "--cwd"];
/// Words with which package managers run scripts that nobody names.
const INSTALLS: &[&str] = &[
    "install",
    "i",
    "ci",
    "it",
    "cit",
    "install-test",
    "install-ci-test",
    "clean-install",
    "add",
    "update",
    "up",
    "upgrade",
    "rebuild",
    "link",
    "prune",
    "dedupe",
];
const LIFECYCLE: &[&str] = &["preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare"];
const PUBLISHES: &[&str] =
    &["prepare", "prepack", "postpack", "prepublish", "prepublishOnly", "publish", "postpublish"];
/// What such words stand for.
const BESIDES: &[(&[&str], &[&str])] = &[
    (INSTALLS, LIFECYCLE),
    (&["it", "cit", "install-test", "install-ci-test", "t", "tst"], &["test"]),
    (&["restart"], &["stop", "start"]),
    (&["pack", "publish"], PUBLISHES),
    (&["version"], &["preversion", "version", "postversion"]),
    (&["vsce"], &["vscode:prepublish"]),
];
/// `npm:watch`, as concurrently writes `npm run watch`.
const SHORT: &[&str] = &["npm", "pnpm", "yarn", "bun", "node", "deno"];
/// A text within a text within a text …
const DEEPEST: usize = 8;

/// One command of a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    words: Vec<String>,
}

/// Which scripts are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call<'a> {
    Named(&'a str),
    /// All that begin like this: behind it stands a pattern, or a variable.
    Beginning(&'a str),
}

/// The commands of a program with its arguments. An argument may be a line itself.
pub fn of_words(argv: &[String]) -> Vec<Command> {
    let mut taken = Taken::default();
    argv.iter().for_each(|word| taken.word(word.clone(), 0));
    taken.end();
    taken.commands
}

/// The commands of a line.
pub fn of_text(text: &str) -> Vec<Command> {
    let mut taken = Taken::default();
    taken.text(text, 0);
    taken.commands
}

#[derive(Default)]
struct Taken {
    commands: Vec<Command>,
    words: Vec<String>,
    /// The commands that words of the current one are made of.
    inner: Vec<Command>,
}

impl Taken {
    fn text(&mut self, text: &str, depth: usize) {
        let (mut word, mut open) = (String::new(), None);
        let mut characters = text.chars();
        while let Some(c) = characters.next() {
            match (c, open) {
                (c, Some(quote)) if c == quote => open = None,
                ('\\', None | Some('"')) => word.extend(characters.next()),
                (c, Some(_)) => word.push(c),
                ('\'' | '"', None) => open = Some(c),
                (c, None) if is_separator(c) => {
                    self.word(std::mem::take(&mut word), depth);
                    self.separator(c);
                }
                (c, None) => word.push(c),
            }
        }
        self.word(word, depth);
        self.end();
    }

    fn word(&mut self, word: String, depth: usize) {
        if word.is_empty() {
            return;
        }
        if word.contains(is_separator) {
            match depth < DEEPEST {
                true => {
                    let mut taken = Taken::default();
                    taken.text(&word, depth + 1);
                    self.inner.extend(taken.commands);
                }
                false => self.words.extend(word.split(is_separator).map(str::to_owned)),
            }
        }
        self.words.push(word);
    }

    fn separator(&mut self, c: char) {
        if c == '`' {
            // What it prints stands there.
            self.words.push("$".to_owned());
        }
        if "\n;&|()`".contains(c) {
            self.end();
        }
    }

    fn end(&mut self) {
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.commands.push(Command { words });
        }
        self.commands.append(&mut self.inner);
    }
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || ";&|()<>`".contains(c)
}

impl Command {
    pub fn runs_scripts(&self) -> bool {
        self.words.iter().any(|word| is_runner(word))
    }

    /// Whether it may run scripts in other packages of a workspace.
    pub fn is_for_members(&self) -> bool {
        let sent = self.words.iter().any(|word| MEMBERS.contains(&flag(word)));
        (sent && self.runs_scripts()) || self.finds_members()
    }

    /// Whether it runs them also where no package.json lists any.
    pub fn finds_members(&self) -> bool {
        let finds = |word: &String| FINDS.contains(&flag(word)) || FOR_MEMBERS.contains(&program(word));
        self.runs_scripts() && self.words.iter().any(finds)
    }

    pub fn installs(&self) -> bool {
        self.runs_scripts() && (self.has(INSTALLS) || self.is_bare_yarn())
    }

    /// The folders to which it goes, or in which it runs something.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        let is_option = |word: &&String| word.len() > 1 && word.starts_with('-');
        let behind = move |at: usize| self.words[at + 1..].iter().find(|word| !is_option(word));
        self.words.iter().enumerate().filter_map(move |(at, word)| match word.split_once('=') {
            Some((flag, folder)) if FOLDERS.contains(&flag) => Some(folder),
            _ if FOLDERS.contains(&word.as_str()) => behind(at).map(String::as_str),
            _ => word.strip_prefix("-C"),
        })
    }

    /// What it may call.
    pub fn calls(&self) -> Vec<Call<'_>> {
        let runs = self.runs_scripts();
        let of_nx = self.has(&["nx"]);
        let mut calls: Vec<Call<'_>> = self.words.iter().flat_map(|word| called(word, runs, of_nx)).collect();
        if runs {
            let besides = BESIDES.iter().filter(|(words, _)| self.has(words)).flat_map(|(_, scripts)| *scripts);
            let of_yarn = LIFECYCLE.iter().filter(|_| self.is_bare_yarn());
            calls.extend(besides.chain(of_yarn).map(|script| Call::Named(script)));
        }
        calls
    }

    fn has(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| words.contains(&program(word)))
    }

    /// `yarn` alone installs.
    fn is_bare_yarn(&self) -> bool {
        let at = self.words.iter().position(|word| program(word) == "yarn");
        at.is_some_and(|at| self.words[at + 1..].iter().all(|word| word.starts_with('-')))
    }
}

/// The name of a program: of `/usr/bin/npm`, `pnpm@9`, `.yarn/releases/yarn-4.1.0.cjs`.
fn program(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.split(['@', '.']).next().unwrap_or(name);
    if name.starts_with("yarn-") { "yarn" } else { name }
}

fn is_runner(word: &str) -> bool {
    let name = program(flag(word));
    RUNNERS.contains(&name) || FOR_MEMBERS.contains(&name) || word.contains("npm_execpath")
}

/// `--filter` of `--filter=web`
fn flag(word: &str) -> &str {
    word.split('=').next().unwrap_or(word)
}

/// The scripts that a word may mean. `runs`: it is a word of a command that runs some.
fn called(word: &str, runs: bool, of_nx: bool) -> impl Iterator<Item = Call<'_>> {
    let behind = |separator: char| word.split_once(separator).map(|(_, name)| name);
    let short = word.split_once(':').filter(|(start, _)| of_nx || SHORT.contains(start)).map(|(_, name)| name);
    // `web#build` is turbo's.
    let parts = [short, behind('='), behind('#')].into_iter().flatten();
    let whole = call(word).filter(move |it| runs || *it != Call::Beginning(""));
    whole.into_iter().chain(parts.filter_map(call).filter(|it| *it != Call::Beginning("")))
}

fn call(name: &str) -> Option<Call<'_>> {
    Some(fixed(name).map_or(Call::Named(name), Call::Beginning)).filter(|_| !name.is_empty())
}

/// What comes before a pattern or a variable in a name, when there is one.
fn fixed(name: &str) -> Option<&str> {
    let is_expression = name.len() > 2 && name.starts_with('/') && name.ends_with('/');
    if is_expression {
        return Some("");
    }
    // `a:!(b|c)`: the parenthesis begins another command.
    let open = name.strip_suffix(['!', '@', '+']);
    let wild = name.find(['*', '?', '[', '{', '$']).map(|at| &name[..at]);
    let is_name = |it: &char| it.is_alphanumeric() || "*$".contains(*it);
    wild.or(open).filter(|_| name.chars().any(|c| is_name(&c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        of_text(line).iter().map(|command| command.words.join("|")).collect()
    }

    #[test]
    fn a_line_is_its_commands_and_those_in_its_words() {
        let check = |line: &str, expect: &[&str]| assert_eq!(words(line), expect, "{line}");
        check("npm run a && npm run b", &["npm|run|a", "npm|run|b"]);
        check("cd 'web view';npm run a>log", &["cd|web view", "web|view", "npm|run|a|log"]);
        check("concurrently \"npm run a\" 'tsc -w'", &["concurrently|npm run a|tsc -w", "npm|run|a", "tsc|-w"]);
        check(
            "sh -c \"cd x && sh -c 'npm run a'\"",
            &["sh|-c|cd x && sh -c 'npm run a'", "cd|x", "sh|-c|npm run a", "npm|run|a"],
        );
        check("cd `pwd` && cd $(pwd)", &["cd|$", "pwd|$", "cd|$", "pwd"]);
        check("echo don't", &["echo|dont"]);
        check(r"cd my\ app", &["cd|my app", "my|app"]);
    }

    #[test]
    fn a_command_goes_to_folders() {
        let check = |line: &str, expect: &[&str]| {
            let commands = of_text(line);
            assert_eq!(commands.iter().flat_map(Command::folders).collect::<Vec<_>>(), expect, "{line}");
        };
        check("cd a && pushd -q b", &["a", "b"]);
        check("cd -- a; cd -; cd", &["a", "-"]);
        check("npm --prefix a run b; npm --prefix=a run b; npm run b -C a", &["a", "a", "a"]);
        check("pnpm --dir a b; yarn --cwd a b; yarn --cwd=a b; pnpm -Ca b", &["a", "a", "a", "a"]);
    }

    #[test]
    fn words_that_call_scripts_are_known() {
        let check = |line: &str, expect: &[Call<'_>]| {
            let commands = of_text(line);
            let calls: Vec<Call<'_>> = commands.iter().flat_map(Command::calls).collect();
            for call in expect {
                assert!(calls.contains(call), "{line}: {call:?} is not in {calls:?}");
            }
        };
        use Call::*;
        check(
            "concurrently npm:watch-tsc yarn:x 'npm:watch:*'",
            &[Named("watch-tsc"), Named("x"), Beginning("watch:")],
        );
        check("npm run build:$TARGET", &[Beginning("build:")]);
        check("pnpm run '/^build:.*/'", &[Beginning("")]);
        check("run-p '*:watch' a:!(b)", &[Beginning(""), Beginning("a:"), Named("b")]);
        check("node --run=x", &[Named("x")]);
        check("turbo run web#build", &[Named("build")]);
        check("nx run web:build", &[Named("build")]);
        check("npm t", &[Named("test")]);
        check("yarn --immutable", &[Named("prepare")]);
        let none = of_text("eslint '**/*.ts' && [ -f x ]");
        assert!(none.iter().flat_map(Command::calls).all(|call| matches!(call, Named(_))));
    }

    #[test]
    fn what_runs_in_other_packages_is_known() {
        let check = |line: &str, expect: bool| {
            assert_eq!(of_text(line).iter().any(Command::is_for_members), expect, "{line}");
        };
        check("npm run b -w web", true);
        check("npm run b --workspace=web", true);
        check("npm run b --workspaces", true);
        check("pnpm --filter web b", true);
        check("pnpm -r b", true);
        check("yarn workspace web b", true);
        check("npx lerna run b", true);
        check("npm run b && cp -r a b", false);
        check("tsc -w", false);
    }
}
