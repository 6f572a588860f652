//! The Chrome DevTools Protocol as its own JSON describes it: the npm package `devtools-protocol`, and what Node serves.
//!
//! Does not depend on what is compared with it.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Prints the protocol that Node's inspector has, its own domains included: <https://nodejs.org/api/inspector.html>.
const PRINT_PROTOCOL: &str = r#"
    const inspector = require("inspector");
    inspector.open(0, "127.0.0.1");
    const { port } = new URL(inspector.url());
    require("http").get({ host: "127.0.0.1", port, path: "/json/protocol" }, (response) => {
        response.pipe(process.stdout);
        response.on("end", () => inspector.close());
    });
"#;
/// Domains that only Node has.
const NODE_DOMAINS: [&str; 2] = ["NodeWorker", "NodeRuntime"];
/// Domains that Node has whole, as V8 has them; of others it has parts.
const V8_DOMAINS: [&str; 2] = ["Debugger", "Runtime"];

/// The domains by their names.
pub struct CdpProtocol(HashMap<String, Value>);

/// A part of a domain, and the domain that its references are relative to.
#[derive(Clone, Copy)]
pub struct ProtocolPart<'a> {
    domain: &'a str,
    pub value: &'a Value,
}

impl CdpProtocol {
    /// The newest browser's and Node's. `None` where they are not installed, which is an error under CI.
    pub fn installed() -> Option<CdpProtocol> {
        let folder = installed_tool("devtools-protocol")?;
        let files = ["browser_protocol.json", "js_protocol.json"].map(|name| {
            let text = fs::read_to_string(folder.join(name)).expect("a complete install has the file");
            domains_of(&text)
        });
        let mut all = CdpProtocol::from_domains(files);
        let node = CdpProtocol::of_node()?;
        all.0.extend(node.0.into_iter().filter(|(name, _)| NODE_DOMAINS.contains(&name.as_str())));
        Some(all)
    }

    /// What the pinned Node has, and has whole. `None` as above.
    pub fn of_node() -> Option<CdpProtocol> {
        let node = installed_tool("node24")?;
        let printed = Command::new(node).args(["-e", PRINT_PROTOCOL]).output().expect("Node can be started");
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        let mut all = CdpProtocol::from_domains([domains_of(&String::from_utf8_lossy(&printed.stdout))]);
        all.0.retain(|name, _| NODE_DOMAINS.contains(&name.as_str()) || V8_DOMAINS.contains(&name.as_str()));
        assert_eq!(all.0.len(), NODE_DOMAINS.len() + V8_DOMAINS.len(), "Node has no such domain any more");
        Some(all)
    }

    /// From lists of domains.
    pub fn from_domains(lists: impl IntoIterator<Item = Value>) -> CdpProtocol {
        let domains = lists.into_iter().flat_map(|list| match list {
            Value::Array(domains) => domains,
            other => panic!("no list of domains: {other}"),
        });
        CdpProtocol(domains.map(|domain| (domain["domain"].as_str().unwrap_or_default().to_owned(), domain)).collect())
    }

    /// The description of `Domain.command`.
    pub fn command(&self, method: &str) -> Option<ProtocolPart<'_>> {
        self.find("commands", "name", method)
    }

    /// The description of `Domain.event`.
    pub fn event(&self, method: &str) -> Option<ProtocolPart<'_>> {
        self.find("events", "name", method)
    }

    /// Whether there are commands or events of that domain.
    pub fn has_domain(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether a command or an event has the name, or an event a name that begins with it.
    pub fn has_method(&self, name: &str, as_prefix: bool) -> bool {
        let begins = || {
            let (domain, begin) = name.split_once('.')?;
            let events = self.0.get(domain)?["events"].as_array()?;
            Some(events.iter().any(|event| event["name"].as_str().is_some_and(|name| name.starts_with(begin))))
        };
        self.command(name).or_else(|| self.event(name)).is_some() || (as_prefix && begins().unwrap_or_default())
    }

    /// What a parameter, a property or a list's element is, with references followed.
    pub fn resolve<'a>(&'a self, part: ProtocolPart<'a>) -> ProtocolPart<'a> {
        let Some(reference) = part.value["$ref"].as_str() else { return part };
        let full = if reference.contains('.') { reference.to_owned() } else { format!("{}.{reference}", part.domain) };
        let found = self.find("types", "id", &full);
        self.resolve(found.unwrap_or_else(|| panic!("the protocol refers to {full}, and does not have it")))
    }

    fn find(&self, kind: &str, key: &str, full: &str) -> Option<ProtocolPart<'_>> {
        let (domain, name) = full.split_once('.')?;
        let (domain, content) = self.0.get_key_value(domain)?;
        let value = content[kind].as_array()?.iter().find(|it| it[key] == name)?;
        Some(ProtocolPart { domain, value })
    }
}

impl<'a> ProtocolPart<'a> {
    /// Its own part of that name: `parameters`, `returns`, `properties`, `items`.
    pub fn part(self, name: &str) -> ProtocolPart<'a> {
        ProtocolPart { value: &self.value[name], ..self }
    }

    /// The parts of a list; none where there is no list.
    pub fn list(self) -> impl Iterator<Item = ProtocolPart<'a>> {
        let all = self.value.as_array().into_iter().flatten();
        all.map(move |value| ProtocolPart { value, ..self })
    }

    /// The name of a parameter or property.
    pub fn name(self) -> &'a str {
        self.value["name"].as_str().unwrap_or_default()
    }

    /// Whether a parameter or property may be missing.
    pub fn is_optional(self) -> bool {
        self.value["optional"] == true
    }

    /// `string`, `object`, …
    pub fn type_name(self) -> &'a str {
        self.value["type"].as_str().unwrap_or_default()
    }
}

/// The entry of a pinned tool, if it is installed.
fn installed_tool(name: &str) -> Option<PathBuf> {
    let entry = tether_tools::entry_path(name).expect("the tool is pinned");
    if !entry.exists() {
        assert!(std::env::var_os("CI").is_none(), "{name} is missing\n  hint: `cargo xtask tools` installs it");
        eprintln!("SKIPPED: {name} is missing; `cargo xtask tools` installs it");
        return None;
    }
    Some(entry)
}

/// The list of domains in the text of a protocol.
fn domains_of(text: &str) -> Value {
    let mut protocol: Value = serde_json::from_str(text).expect("the protocol is JSON");
    protocol["domains"].take()
}
