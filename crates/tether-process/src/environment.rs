//! The environment of a started program: ours, without what an editor or a debugger has added.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The variable that marks every process of a launch; its value is the launch id.
pub const LAUNCH_ID: &str = "DEVTETHER_LAUNCH_ID";
/// The variable with the PID of the program that was started for a launch: what is still in that program's session ends
/// with the launch. Set for every program that is started with a launch id.
pub const LAUNCH_SESSION: &str = "DEVTETHER_LAUNCH_SESSION";

/// Our own environment without the variables of an editor or a debugger that started us, plus `extra`.
///
/// A supervisor is often started from a VS Code terminal or an MCP client; what those set would turn a launched
/// VS Code or Electron into something else (`ELECTRON_RUN_AS_NODE` makes it a plain Node) or attach a debugger
/// to every Node below us. `PWD` and `OLDPWD` are of the folder in which we were started; a program that is started gets the
/// `PWD` of its own.
pub fn clean_environment<K, V>(extra: impl IntoIterator<Item = (K, V)>) -> BTreeMap<OsString, OsString>
where
    K: Into<OsString>,
    V: Into<OsString>,
{
    let mut environment: BTreeMap<_, _> =
        std::env::vars_os().filter(|(name, value)| !is_leftover(name, value)).collect();
    environment.extend(extra.into_iter().map(|(name, value)| (name.into(), value.into())));
    environment
}

/// Our own environment, as [`clean_environment`], as far as it is UTF-8: for the supervisor, which may have been started from
/// another one.
pub fn caller_environment() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    clean_environment::<&str, &str>([]).into_iter().filter_map(text).collect()
}

/// The variables of a caller that have other values here, but for those of its terminal.
pub fn differing_variables(caller: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let own = clean_environment::<&str, &str>([]);
    let is_same = |name: &str, value: &str| own.get(OsStr::new(name)).is_some_and(|it| it == value);
    let differs = |(name, value): &(String, String)| !OF_TERMINAL.contains(&name.as_str()) && !is_same(name, value);
    caller.into_iter().filter(differs).collect()
}

/// Variables that differ from shell to shell.
const OF_TERMINAL: [&str; 8] =
    ["_", "SHLVL", "COLUMNS", "LINES", "TERM", "WINDOWID", "XDG_SESSION_ID", "TERM_SESSION_ID"];

fn is_leftover(name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
    match &*name {
        "ELECTRON_RUN_AS_NODE" | "ELECTRON_NO_ATTACH_CONSOLE" | LAUNCH_ID | LAUNCH_SESSION | "PWD" | "OLDPWD" => true,
        // js-debug's auto attach injects itself by NODE_OPTIONS; other uses of it are the user's own.
        "NODE_OPTIONS" => value.contains("--inspect") || value.contains("js-debug"),
        _ => name.starts_with("VSCODE_"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_editors_and_debuggers_are_not_inherited() {
        let check = |name: &str, value: &str, expect: bool| {
            assert_eq!(is_leftover(OsStr::new(name), OsStr::new(value)), expect, "{name}={value}");
        };
        check("VSCODE_IPC_HOOK", "/run/x.sock", true);
        check("VSCODE_INSPECTOR_OPTIONS", "{}", true);
        check("ELECTRON_RUN_AS_NODE", "1", true);
        check("DEVTETHER_LAUNCH_ID", "another window", true);
        check("DEVTETHER_LAUNCH_SESSION", "1234", true);
        check("NODE_OPTIONS", "--require /x/ms-vscode.js-debug/bootloader.js", true);
        check("NODE_OPTIONS", "--inspect-brk", true);
        check("NODE_OPTIONS", "--max-old-space-size=4096", false);
        check("PATH", "/bin", false);
        check("PWD", "/", true);
        check("OLDPWD", "/", true);
        check("MY_VSCODE_", "x", false);
    }

    #[test]
    fn variables_of_a_caller_differ_by_their_values() {
        let mut caller = caller_environment();
        assert_eq!(differing_variables(caller.clone()), BTreeMap::new());
        let changed = [("PATH", "/a"), ("NEW_ONE", "b"), ("SHLVL", "77")];
        caller.extend(changed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let expect = [("NEW_ONE", "b"), ("PATH", "/a")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(differing_variables(caller), expect.into());
    }

    #[test]
    fn extra_values_win() {
        let environment = clean_environment([("PATH", "/only/here"), (LAUNCH_ID, "abc")]);
        assert_eq!(environment[OsStr::new("PATH")], "/only/here");
        assert_eq!(environment[OsStr::new(LAUNCH_ID)], "abc");
    }
}
