//! The table of adapter features: one column per adapter, generated from the results of the script.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use tether_tools::Pins;

/// In the order of the script.
const ABILITIES: &[&str] = &[
    "version",
    "launch",
    "line breakpoint",
    "conditional breakpoint",
    "hit condition",
    "log point",
    "log point with a condition",
    "log point with a hit condition",
    "function breakpoint",
    "data breakpoint",
    "exception stop",
    "step over, into, out",
    "stack",
    "variables",
    "evaluate",
    "set variable",
    "pause",
    "attach",
    "stop",
    "column",
    "column in a lambda",
    "children that stop",
    "breakpoint over a link",
    "breakpoint after a reload",
];
const ADAPTERS: &[&str] = &["debugpy", "node", "js-debug", "rdbg", "dlv", "lldb-dap", "codelldb", "gdb", "java"];
const FILE: &str = "src/adapters/abilities.md";

/// The features of one adapter, each with its cell; and those that this machine cannot show.
#[derive(Debug, Default)]
pub struct FeatureResults(Vec<(&'static str, String)>, Vec<&'static str>);

impl FeatureResults {
    /// Adds a feature; the reason for a missing one is the adapter's message.
    pub fn can(&mut self, ability: &'static str, outcome: Result<(), String>) {
        self.says(ability, outcome.map_or_else(|reason| format!("– ({reason})"), |()| "yes".to_owned()));
    }

    /// Adds what there is to say of a feature.
    pub fn says(&mut self, ability: &'static str, cell: String) {
        assert!(ABILITIES.contains(&ability), "{ability}");
        println!("{ability}: {cell}");
        self.0.push((ability, cell));
    }

    /// Leaves out a feature that this machine cannot show.
    pub fn skip(&mut self, ability: &'static str) {
        self.1.push(ability);
    }

    fn cell(&self, ability: &str) -> String {
        let found = self.0.iter().find(|(known, _)| *known == ability);
        found.unwrap_or_else(|| panic!("the story does not tell of {ability}")).1.clone()
    }
}

/// The version of an adapter that the tests run, or the least one that works where the system's package manager brings it.
pub fn pinned_version(adapter: &str) -> String {
    let pins = Pins::read().unwrap();
    if let Some(tool) = pins.tools.iter().find(|tool| tool.brings.iter().any(|it| it == adapter)) {
        let pin = tool.pin();
        return pin.split(' ').next().unwrap_or_default().to_owned();
    }
    let program = if adapter == "java" { "javac" } else { adapter };
    let system = pins.systems.iter().find(|it| it.name == program).unwrap_or_else(|| panic!("{adapter} is not pinned"));
    format!("{} {} or newer", system.name, system.least)
}

/// Serialises reading and writing the file.
static FILE_LOCK: Mutex<()> = Mutex::new(());

/// Asserts that the adapter's column matches the table; with `UPDATE_ABILITIES` writes it.
pub fn hold(adapter: &str, reported: &FeatureResults) {
    let _one = FILE_LOCK.lock().unwrap();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let mut columns = read(&fs::read_to_string(&path).unwrap_or_default());
    let column = ADAPTERS.iter().position(|name| *name == adapter).unwrap();
    let cell = |(index, ability): (usize, &&str)| match reported.1.contains(ability) {
        true => columns[column][index].clone(),
        false => reported.cell(ability),
    };
    let now: Vec<String> = ABILITIES.iter().enumerate().map(cell).collect();
    if std::env::var_os("UPDATE_ABILITIES").is_some() {
        columns[column] = now;
        return fs::write(&path, written(&columns)).unwrap();
    }
    for (index, ability) in ABILITIES.iter().enumerate() {
        let hint = "`UPDATE_ABILITIES=1 cargo test --test real adapter_features` writes the table again";
        assert_eq!(columns[column][index], now[index], "{adapter}: {ability} is not as {FILE} says; {hint}");
    }
}

fn read(text: &str) -> Vec<Vec<String>> {
    let mut columns = vec![vec![String::new(); ABILITIES.len()]; ADAPTERS.len()];
    for (row, ability) in ABILITIES.iter().enumerate() {
        let prefix = format!("| {ability} |");
        let Some(line) = text.lines().find(|line| line.starts_with(&prefix)) else { continue };
        let cells = line[prefix.len()..].trim_end_matches('|').split('|');
        for (column, cell) in cells.enumerate().take(ADAPTERS.len()) {
            columns[column][row] = cell.trim().to_owned();
        }
    }
    columns
}

fn written(columns: &[Vec<String>]) -> String {
    let mut text = String::from(
        "# What the debug adapters can do\n\nWritten by `tests/real/adapter_features`, which tells the same story with each of them \
         (real programs, the pinned versions), and held to it. Where something is not there, the reason is the adapter's \
         own, or what it does not offer. A version is the pinned one, or the least one of what the system brings.\n\n",
    );
    let _ = writeln!(text, "| | {} |", ADAPTERS.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(ADAPTERS.len()));
    for (row, ability) in ABILITIES.iter().enumerate() {
        let cells: Vec<&str> = columns.iter().map(|column| column[row].as_str()).collect();
        let _ = writeln!(text, "| {ability} | {} |", cells.join(" | "));
    }
    text
}
