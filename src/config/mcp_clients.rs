//! The files in which clients of MCP name their servers, and tether's entry in each of them.
//!
//! Plans a change as text. What else a file has, its comments too, stays as it is.

use std::path::{Path, PathBuf};

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorContext, Result};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};

use crate::config::jsonc::DIALECT;
use crate::config::source_file::{read_text, replace_file};

/// The name of tether's entry.
const ENTRY: &str = "tether";
/// The table of the servers in Codex's file.
const CODEX_SERVERS: &str = "mcp_servers";

/// A client whose file is known.
///
/// Sources: the documentation of each, read in November 2026.
#[derive(Debug, PartialEq, Eq)]
pub struct McpClient {
    /// As users name it.
    pub name: &'static str,
    /// Relative to the workspace, or to the home folder.
    file: &'static str,
    place: FilePlace,
    format: FileFormat,
}

#[derive(Debug, PartialEq, Eq)]
enum FilePlace {
    Workspace,
    Home,
}

#[derive(Debug, PartialEq, Eq)]
enum FileFormat {
    /// An object of this name has the servers.
    Json { servers: &'static str, has_type: bool },
    /// A table for each server.
    Toml,
}

/// All of them, by name.
pub const MCP_CLIENTS: &[McpClient] = &[
    McpClient {
        name: "claude-code",
        file: ".mcp.json",
        place: FilePlace::Workspace,
        format: FileFormat::Json { servers: "mcpServers", has_type: false },
    },
    McpClient { name: "codex", file: ".codex/config.toml", place: FilePlace::Home, format: FileFormat::Toml },
    McpClient {
        name: "cursor",
        file: ".cursor/mcp.json",
        place: FilePlace::Workspace,
        format: FileFormat::Json { servers: "mcpServers", has_type: false },
    },
    McpClient {
        name: "gemini",
        file: ".gemini/settings.json",
        place: FilePlace::Workspace,
        format: FileFormat::Json { servers: "mcpServers", has_type: false },
    },
    McpClient {
        name: "vscode",
        file: ".vscode/mcp.json",
        place: FilePlace::Workspace,
        format: FileFormat::Json { servers: "servers", has_type: true },
    },
    McpClient {
        name: "zed",
        file: ".config/zed/settings.json",
        place: FilePlace::Home,
        format: FileFormat::Json { servers: "context_servers", has_type: false },
    },
];

/// What becomes of a client's file.
#[derive(Debug, PartialEq, Eq)]
pub struct FileChange {
    pub file: PathBuf,
    /// `None`: there is no such file.
    pub before: Option<String>,
    pub after: String,
}

impl McpClient {
    /// The client of that name.
    pub fn find(name: &str) -> Option<&'static McpClient> {
        MCP_CLIENTS.iter().find(|client| client.name == name)
    }

    fn path(&self, workspace: &Path, home: &Path) -> PathBuf {
        match self.place {
            FilePlace::Workspace => workspace.join(self.file),
            FilePlace::Home => home.join(self.file),
        }
    }

    /// The file with tether's entry, which starts `command`. `None`: it has that already. Errors: the file cannot be read or changed.
    pub fn plan_entry(&self, workspace: &Path, home: &Path, command: &str) -> Result<Option<FileChange>> {
        let file = self.path(workspace, home);
        let before = read_text(&file)?;
        let text = before.clone().unwrap_or_default();
        let after = match self.format {
            FileFormat::Json { servers, has_type } => {
                let (root, list) = json_servers(&file, &text, servers)?;
                // VS Code starts a server in no folder of its own.
                let (kind, args) = match has_type {
                    true => (Some("stdio"), json!(["mcp", "--workspace", "${workspaceFolder}"])),
                    false => (None, json!(["mcp"])),
                };
                let fields = kind.map(|kind| ("type", json!(kind))).into_iter();
                let entry = list.object_value_or_set(ENTRY);
                for (name, value) in fields.chain([("command", json!(command)), ("args", args)]) {
                    set_field(&entry, name, &value);
                }
                root.to_string()
            }
            FileFormat::Toml => {
                let mut document = toml_document(&file, &text)?;
                let servers = toml_table(&file, document.as_table_mut(), CODEX_SERVERS)?;
                set_toml_fields(toml_table(&file, servers, ENTRY)?, command);
                document.to_string()
            }
        };
        Ok(change(file, before, after))
    }

    /// The file without tether's entry. `None`: it has none. Errors: the file cannot be read or changed.
    pub fn plan_removal(&self, workspace: &Path, home: &Path) -> Result<Option<FileChange>> {
        let file = self.path(workspace, home);
        let Some(text) = read_text(&file)? else { return Ok(None) };
        let after = match self.format {
            FileFormat::Json { servers, .. } => {
                let (root, list) = json_servers(&file, &text, servers)?;
                match list.get(ENTRY) {
                    Some(entry) => entry.remove(),
                    None => return Ok(None),
                }
                root.to_string()
            }
            FileFormat::Toml => {
                let mut document = toml_document(&file, &text)?;
                let servers = document.get_mut(CODEX_SERVERS).and_then(Item::as_table_like_mut);
                if servers.and_then(|servers| servers.remove(ENTRY)).is_none() {
                    return Ok(None);
                }
                document.to_string()
            }
        };
        Ok(change(file, Some(text), after))
    }
}

fn change(file: PathBuf, before: Option<String>, after: String) -> Option<FileChange> {
    (before.as_ref() != Some(&after)).then_some(FileChange { file, before, after })
}

impl FileChange {
    /// The lines that differ, with `-` and `+` before them.
    pub fn lines(&self) -> Vec<String> {
        let before: Vec<&str> = self.before.as_deref().unwrap_or_default().lines().collect();
        let after: Vec<&str> = self.after.lines().collect();
        let start = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
        let rest = before[start..].iter().rev().zip(after[start..].iter().rev());
        let end = rest.take_while(|(one, other)| one == other).count();
        let removed = before[start..before.len() - end].iter().map(|line| format!("- {line}"));
        let added = after[start..after.len() - end].iter().map(|line| format!("+ {line}"));
        removed.chain(added).collect()
    }

    /// Errors: it cannot be written; another program has changed it since it was planned.
    pub fn write(&self) -> Result<()> {
        let doing = || format!("cannot write {}", self.file.display());
        if read_text(&self.file)? != self.before {
            return Err(Error::other(doing()).because("it has changed meanwhile").hint("run this command again"));
        }
        if let Some(folder) = self.file.parent() {
            std::fs::create_dir_all(folder).doing(doing)?;
        }
        replace_file(&self.file, self.after.as_bytes()).doing(doing)
    }
}

fn unusable(file: &Path, cause: String) -> Error {
    Error::usage(format!("cannot change {}", file.display()))
        .because(cause)
        .hint("correct the file, or write the entry by hand: the README has it")
}

/// The whole document, and the object with the servers.
fn json_servers(file: &Path, text: &str, servers: &str) -> Result<(CstRootNode, CstObject)> {
    let root = CstRootNode::parse(text, &DIALECT).map_err(|cause| unusable(file, cause.to_string()))?;
    let object = root.object_value_or_create().ok_or_else(|| unusable(file, "it is not an object".to_owned()))?;
    let list = object.object_value_or_create(servers);
    let list = list.ok_or_else(|| unusable(file, format!("its `{servers}` is not an object")))?;
    Ok((root, list))
}

/// Keeps what is right already, as it is written.
fn set_field(entry: &CstObject, name: &str, value: &Value) {
    let input = match value {
        Value::Array(items) => CstInputValue::Array(items.iter().map(text_input).collect()),
        text => text_input(text),
    };
    match entry.get(name) {
        Some(field) => {
            let known = field.value().and_then(|known| serde_json::from_str::<Value>(&known.to_string()).ok());
            if known.as_ref() != Some(value) {
                field.set_value(input);
            }
        }
        None => drop(entry.append(name, input)),
    }
}

fn text_input(text: &Value) -> CstInputValue {
    CstInputValue::String(text.as_str().unwrap_or_default().to_owned())
}

fn toml_document(file: &Path, text: &str) -> Result<DocumentMut> {
    text.parse().map_err(|cause: toml_edit::TomlError| unusable(file, cause.to_string()))
}

/// The table of that name, which is made if there is none.
fn toml_table<'a>(file: &Path, parent: &'a mut dyn TableLike, name: &str) -> Result<&'a mut dyn TableLike> {
    if !parent.contains_key(name) {
        let mut table = Table::new();
        // A table that has tables only is not written itself.
        table.set_implicit(true);
        parent.insert(name, Item::Table(table));
    }
    let table = parent.get_mut(name).and_then(Item::as_table_like_mut);
    table.ok_or_else(|| unusable(file, format!("its `{name}` is not a table")))
}

/// Keeps what is right already, as it is written.
fn set_toml_fields(entry: &mut dyn TableLike, command: &str) {
    if entry.get("command").and_then(Item::as_str) != Some(command) {
        entry.insert("command", toml_edit::value(command));
    }
    let args = entry.get("args").and_then(Item::as_array);
    if !args.is_some_and(|args| args.len() == 1 && args.get(0).and_then(|arg| arg.as_str()) == Some("mcp")) {
        entry.insert("args", toml_edit::value(Array::from_iter(["mcp"])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file before and after, and after the entry was removed again.
    fn written(client: &str, text: Option<&str>) -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let (workspace, home) = (folder.path().join("w"), folder.path().join("h"));
        let client = McpClient::find(client).unwrap();
        let file = client.path(&workspace, &home);
        if let Some(text) = text {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
        }
        client.plan_entry(&workspace, &home, "tether").unwrap().unwrap().write().unwrap();
        let with = std::fs::read_to_string(&file).unwrap();
        assert_eq!(client.plan_entry(&workspace, &home, "tether").unwrap(), None, "{with}");
        client.plan_removal(&workspace, &home).unwrap().unwrap().write().unwrap();
        assert_eq!(client.plan_removal(&workspace, &home).unwrap(), None);
        (with, std::fs::read_to_string(&file).unwrap())
    }

    #[test]
    fn each_client_has_the_entry_where_it_looks_for_it() {
        for client in MCP_CLIENTS {
            let (with, _) = written(client.name, None);
            let value: serde_json::Value = match client.format {
                FileFormat::Json { .. } => serde_json::from_str(&with).unwrap(),
                FileFormat::Toml => serde_json::to_value(with.parse::<toml::Table>().unwrap()).unwrap(),
            };
            let servers = match client.format {
                FileFormat::Json { servers, .. } => servers,
                FileFormat::Toml => "mcp_servers",
            };
            let entry = &value[servers]["tether"];
            assert_eq!(
                (&entry["command"], &entry["args"][0]),
                (&json!("tether"), &json!("mcp")),
                "{}: {with}",
                client.name
            );
        }
    }

    #[test]
    fn what_else_a_file_has_stays() {
        let json = "{\n  // mine\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  }\n}\n";
        let (with, without) = written("claude-code", Some(json));
        assert!(with.contains("// mine") && with.contains("\"other\"") && with.contains("\"tether\""), "{with}");
        assert_eq!(without, json);
        let vscode = "{\"servers\": {\"tether\": {\"command\": \"old\", \"dev\": {\"watch\": \"a\"}}}}\n";
        let (with, _) = written("vscode", Some(vscode));
        assert!(
            with.contains("\"dev\": {\"watch\": \"a\"}") && !with.contains("\"old\"") && with.contains("stdio"),
            "{with}"
        );
        let toml = "model = \"m\" # mine\n\n[mcp_servers.other]\ncommand = \"x\"\n";
        let (with, without) = written("codex", Some(toml));
        assert!(
            with.starts_with(toml)
                && with.ends_with("\n\n[mcp_servers.tether]\ncommand = \"tether\"\nargs = [\"mcp\"]\n"),
            "{with}"
        );
        assert_eq!(without, toml);
    }

    #[test]
    fn each_way_to_write_a_table_is_understood() {
        let below = "[mcp_servers.tether]\ncommand = \"old\"\n\n[mcp_servers.tether.env]\nA = \"1\"\n\n[mcp_servers.tether2]\ncommand = \"y\"\n";
        let (with, without) = written("codex", Some(below));
        assert!(!with.contains("old") && with.contains("A = \"1\""), "{with}");
        assert_eq!(without.trim_start(), "[mcp_servers.tether2]\ncommand = \"y\"\n");
        let inline = "[mcp_servers]\nother = { command = \"x\" }\n";
        let (with, without) = written("codex", Some(inline));
        assert_eq!(with.parse::<toml::Table>().unwrap()["mcp_servers"]["tether"]["command"].as_str(), Some("tether"));
        assert_eq!(without, inline);
        let quoted = "[mcp_servers.\"tether\"]\ncommand = \"old\"\n";
        assert_eq!(written("codex", Some(quoted)).1, "");
        let text = "notes = \"\"\"\n[mcp_servers.tether]\n\"\"\"\n";
        assert_eq!(written("codex", Some(text)).1, text);
    }

    #[test]
    fn a_file_that_is_not_understood_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |client: &str, file: &str, text: &str| {
            std::fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
            std::fs::write(folder.path().join(file), text).unwrap();
            McpClient::find(client).unwrap().plan_entry(folder.path(), folder.path(), "tether").unwrap_err().to_string()
        };
        assert!(refused("claude-code", ".mcp.json", "[]").contains("it is not an object"));
        assert!(refused("claude-code", ".mcp.json", "{\"mcpServers\": 1}").contains("`mcpServers` is not an object"));
        assert!(refused("codex", ".codex/config.toml", "a = ").contains("cannot change"));
        assert!(refused("codex", ".codex/config.toml", "mcp_servers = 1").contains("`mcp_servers` is not a table"));
    }

    #[test]
    fn a_change_is_shown_by_its_lines() {
        let change = FileChange {
            file: PathBuf::new(),
            before: Some("{\n  \"a\": 1\n}\n".to_owned()),
            after: "{\n  \"a\": 1,\n  \"b\": 2\n}\n".to_owned(),
        };
        assert_eq!(change.lines(), ["-   \"a\": 1", "+   \"a\": 1,", "+   \"b\": 2"]);
    }
}
