//! What becomes of each attribute of a launch configuration: it is honoured, passed on, without an effect, or named.
//!
//! | file | owns |
//! |---|---|
//! | `window` | configurations that become a window |
//! | `javascript` | the adapters for Node and pages |
//! | `native` | the adapters for C, C++ and Rust |
//! | `languages` | the other adapters |
//!
//! An attribute that no table has is named. `attributes.md` is written from these tables, and
//! `tests/protocol/launch_attributes` holds them to VS Code's documentation and to what the adapters receive.
//! Does not depend on the adapters: their names are texts.

mod javascript;
mod languages;
mod native;
mod window;

use serde_json::Value;

/// The reader of a configuration that becomes a window.
pub const WINDOW: &str = "window";

/// What becomes of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeUse {
    /// tether acts on it, itself or by how it starts the adapter.
    Honoured,
    /// The adapter receives it as it is written, and acts on it.
    Passed,
    /// What it changes is not here; the reason.
    NoEffect(&'static str),
    /// It is not honoured, and a note names it with the reason.
    Noted(&'static str),
    /// Another program would run without it: an error names it with the reason.
    Refused(&'static str),
    /// No table has it: a note names it.
    Unknown,
}

/// Who reads a configuration.
#[derive(Clone, Copy, Debug)]
pub struct AttributeReader<'a> {
    /// The name of an adapter, or [`WINDOW`].
    pub name: &'a str,
    /// `type` of the configuration.
    pub kind: &'a str,
    /// `request` of the configuration.
    pub request: &'a str,
}

/// Attributes with the same use.
#[derive(Clone, Copy)]
struct Row {
    /// Separated by spaces.
    names: &'static str,
    /// `request`; both without one.
    request: Option<&'static str>,
    does: AttributeUse,
    /// Values, as JSON, that ask for nothing but what happens anyway.
    usual: &'static [&'static str],
}

const fn row(names: &'static str, does: AttributeUse) -> Row {
    Row { names, request: None, does, usual: &[] }
}

const fn honoured(names: &'static str) -> Row {
    row(names, AttributeUse::Honoured)
}

const fn passed(names: &'static str) -> Row {
    row(names, AttributeUse::Passed)
}

const fn no_effect(names: &'static str, why: &'static str) -> Row {
    row(names, AttributeUse::NoEffect(why))
}

const fn noted(names: &'static str, why: &'static str) -> Row {
    row(names, AttributeUse::Noted(why))
}

const fn refused(names: &'static str, why: &'static str) -> Row {
    row(names, AttributeUse::Refused(why))
}

impl Row {
    const fn launch(self) -> Row {
        Row { request: Some("launch"), ..self }
    }

    const fn attach(self) -> Row {
        Row { request: Some("attach"), ..self }
    }

    const fn unless(self, usual: &'static [&'static str]) -> Row {
        Row { usual, ..self }
    }
}

/// The attributes that VS Code itself reads, of a configuration that is debugged.
const GENERAL: &[Row] = &[
    honoured("name type request preLaunchTask postDebugTask envFile linux"),
    no_effect("osx windows", "it is for another system"),
    no_effect(
        "presentation order internalConsoleOptions suppressMultipleSessionWarning",
        "it is of VS Code's menus and panels",
    ),
    noted("serverReadyAction", "nothing is opened when the program prints its address"),
    noted("debugServer", "tether starts the adapter itself"),
];

impl AttributeReader<'_> {
    /// What becomes of this attribute, whatever its value is.
    pub fn use_of(&self, name: &str) -> AttributeUse {
        self.row_of(name).map_or(AttributeUse::Unknown, |row| row.does)
    }

    /// The values of this attribute, as JSON, that ask for nothing but what happens anyway.
    pub fn usual_values(&self, name: &str) -> &'static [&'static str] {
        self.row_of(name).map_or(&[], |row| row.usual)
    }

    /// What is to be said of an attribute with this value, after its name. `Ok(None)`: nothing. `Err`: the reason
    /// for which the configuration is refused.
    pub fn remark(&self, name: &str, value: &Value) -> Result<Option<String>, &'static str> {
        let row = self.row_of(name);
        let is_usual = |usual: &&str| usual.parse::<Value>().is_ok_and(|usual| usual == *value);
        match row.map(|row| row.does) {
            _ if row.is_some_and(|row| row.usual.iter().any(is_usual)) => Ok(None),
            Some(AttributeUse::Honoured | AttributeUse::Passed | AttributeUse::NoEffect(_)) => Ok(None),
            Some(AttributeUse::Noted(why)) => Ok(Some(format!("is not honoured: {why}"))),
            Some(AttributeUse::Refused(why)) => Err(why),
            // By convention a comment, or an editor's own.
            None | Some(AttributeUse::Unknown) if name.starts_with(['_', '$']) => Ok(None),
            None | Some(AttributeUse::Unknown) if self.passes_unknown() => {
                Ok(Some(format!("is passed on to {}, and tether does not know it", self.name)))
            }
            None | Some(AttributeUse::Unknown) => Ok(Some("is not honoured".to_owned())),
        }
    }

    /// Whether the reader receives what no table has, and may know it.
    fn passes_unknown(&self) -> bool {
        ![WINDOW, "node", "java", "rdbg"].contains(&self.name)
    }

    fn row_of(&self, name: &str) -> Option<&'static Row> {
        let is_meant = |row: &&Row| {
            row.request.is_none_or(|request| request == self.request)
                && row.names.split_whitespace().any(|it| it == name)
        };
        self.tables().iter().flat_map(|table| table.iter()).find(is_meant)
    }

    fn tables(&self) -> [&'static [Row]; 3] {
        let kind = self.kind.strip_prefix("pwa-").unwrap_or(self.kind);
        match (self.name, kind) {
            (WINDOW, "extensionHost") => [window::EVERY, window::EXTENSION_HOST, &[]],
            (WINDOW, "chrome" | "msedge") => [window::EVERY, window::BROWSER, &[]],
            (WINDOW, _) => [window::EVERY, window::NODE, &[]],
            ("node", "chrome" | "msedge") => [GENERAL, javascript::NODE_ADAPTER, javascript::NODE_ADAPTER_PAGES],
            ("node", _) => [GENERAL, javascript::NODE_ADAPTER, javascript::NODE_ADAPTER_PROGRAMS],
            ("js-debug", "chrome" | "msedge") => [GENERAL, javascript::JS_DEBUG, javascript::JS_DEBUG_PAGES],
            ("js-debug", _) => [GENERAL, javascript::JS_DEBUG, javascript::JS_DEBUG_PROGRAMS],
            ("debugpy", _) => [GENERAL, languages::DEBUGPY, &[]],
            ("java", _) => [GENERAL, languages::JAVA, &[]],
            ("dlv", _) => [GENERAL, languages::DELVE, &[]],
            ("rdbg", _) => [GENERAL, languages::RDBG, &[]],
            ("netcoredbg", _) => [GENERAL, languages::NETCOREDBG, &[]],
            ("lldb-dap", "cppdbg") => [GENERAL, native::CPPDBG_IN_LLDB, native::CPPDBG],
            ("codelldb", "cppdbg") => [GENERAL, native::CPPDBG_IN_LLDB, native::CPPDBG],
            ("gdb", "cppdbg") => [GENERAL, native::CPPDBG_IN_GDB, native::CPPDBG],
            ("lldb-dap", _) => [GENERAL, native::LLDB_DAP, &[]],
            ("codelldb", _) => [GENERAL, native::CODELLDB, &[]],
            ("gdb", _) => [GENERAL, native::GDB, &[]],
            _ => [GENERAL, &[], &[]],
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_attribute_is_named_unless_its_effect_is_the_usual_one() {
        let check = |(name, kind, request), attribute: &str, value: Value, expect: Result<Option<&str>, &str>| {
            let actual = AttributeReader { name, kind, request }.remark(attribute, &value);
            assert_eq!(
                actual.as_ref().map(Option::as_deref).map_err(|why| *why),
                expect,
                "{name}: {attribute}: {value}"
            );
        };
        let node = ("node", "pwa-node", "launch");
        check(node, "program", json!("a.js"), Ok(None));
        check(node, "sourceMaps", json!(true), Ok(None));
        check(
            node,
            "sourceMaps",
            json!(false),
            Ok(Some("is not honoured: the source maps of the workspace are always read")),
        );
        check(node, "webRoot", json!("x"), Ok(Some("is not honoured")));
        check(node, "_comment", json!("x"), Ok(None));
        check(
            ("js-debug", "node", "launch"),
            "surprise",
            json!(1),
            Ok(Some("is passed on to js-debug, and tether does not know it")),
        );
        check(("node", "chrome", "attach"), "webRoot", json!("x"), Ok(None));
        check(("window", "node", "launch"), "url", json!("x"), Ok(Some("is not honoured")));
        let pipe =
            AttributeReader { name: "gdb", kind: "cppdbg", request: "launch" }.remark("pipeTransport", &json!({}));
        assert!(pipe.unwrap_err().contains("on this machine"));
    }
}
