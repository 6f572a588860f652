//! The breakpoints of a session: what the client has asked for, how it is bound, and which request of the virtual machine
//! belongs to which.
//!
//! Plain data: sends nothing.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use tether_backend::hit_condition::HitCondition;
use tether_jdwp::EventKind;
use tether_jdwp::values::{CodeLocation, ObjectId, ReferenceTypeId};

use super::expression::syntax::JavaExpression;

/// All breakpoints.
#[derive(Default)]
pub(crate) struct BreakpointTable {
    last_id: i64,
    pub entries: BTreeMap<i64, JavaBreakpoint>,
    /// The breakpoint of each request for events.
    pub requests: HashMap<i32, i64>,
    /// The requests that report when a class is prepared in which a breakpoint may be.
    pub prepare_requests: HashMap<ClassPattern, i32>,
    /// The requests for exceptions and for the end of the virtual machine.
    pub filter_requests: Vec<(EventKind, i32)>,
    /// Of the caught exceptions, only failed assertions stop.
    pub only_assertions: bool,
    /// The failed assertion that was reported last: on its way to the runner it is thrown again.
    pub last_assertion: Option<ObjectId>,
}

/// Which classes are looked at when they are prepared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClassPattern {
    /// Those from a source file of that name.
    SourceName(String),
    /// Those whose name ends with that.
    NameEnd(String),
    /// Those whose name begins with that.
    NameStart(String),
    /// All that are not of the JDK.
    Any,
}

/// One breakpoint.
#[derive(Clone, Debug)]
pub(crate) struct JavaBreakpoint {
    pub id: i64,
    pub place: BreakpointPlace,
    pub conditions: StopConditions,
    /// How often it was reached with its condition true.
    pub hits: u64,
    /// The requests that it is bound by, with their places.
    pub bound: Vec<BoundRequest>,
    /// The line to which it is bound.
    pub line: Option<i32>,
    /// Its column has chosen the code to which it is bound.
    pub is_column_met: bool,
    /// The class file with its code, where that is older than its source.
    pub older_code: Option<PathBuf>,
}

/// One request of the virtual machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BoundRequest {
    pub kind: EventKind,
    pub request: i32,
    pub location: Option<CodeLocation>,
}

/// Where a breakpoint stops.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BreakpointPlace {
    /// On a line; the package of the file with slashes, if the file could be read.
    Line {
        path: PathBuf,
        line: i32,
        package: Option<String>,
        /// From 1, in UTF-16 code units: it chooses among the lambdas of the line. The line tables of classes have none.
        column: Option<usize>,
    },
    Function(FunctionName),
    /// On a line of a class, or of one inside of it.
    ClassLine {
        class: String,
        line: i32,
    },
    /// A field: the name of its class, its name, and the accesses at which it stops.
    Field {
        class: String,
        field: String,
        reads: bool,
        writes: bool,
    },
    /// The first line of `main` of that class.
    Entry {
        class: String,
    },
}

/// A method by its name, as a user writes it: `total`, `Order.total`, `com.example.Order.total`, each with `:exit` for the
/// return from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionName {
    /// `Order`, `com.example.Order`; none: any class that is not of the JDK.
    pub class: Option<String>,
    pub method: String,
    pub at_exit: bool,
}

/// When a breakpoint stops.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StopConditions {
    pub condition: Option<JavaExpression>,
    /// As the client has set it.
    pub condition_text: Option<String>,
    pub hits: Option<HitCondition>,
    /// What is printed instead of stopping.
    pub log: Option<Vec<LogPart>>,
}

/// A part of a log message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LogPart {
    Text(String),
    Expression(String, JavaExpression),
}

impl FunctionName {
    /// Parses the name of a function breakpoint. Errors: it is none.
    pub(crate) fn parse(text: &str) -> Result<FunctionName, String> {
        let text = text.trim();
        let (name, at_exit) = match text.rsplit_once(':') {
            Some((name, "exit")) => (name, true),
            Some((name, "entry")) => (name, false),
            Some(_) => return Err(format!("`{text}` is not a method: write `Order.total`, or `Order.total:exit`")),
            None => (text, false),
        };
        let name = name.split('(').next().unwrap_or_default().trim();
        let (class, method) = match name.rsplit_once(['.', '#']) {
            Some((class, method)) => (Some(class.trim_end_matches(':').to_owned()), method),
            None => (None, name),
        };
        if method.is_empty() || class.as_deref() == Some("") {
            return Err(format!("`{text}` is not a method: write `total` or `Order.total`"));
        }
        Ok(FunctionName { class, method: method.to_owned(), at_exit })
    }

    /// Whether a class of that name, `com.example.Order$Line`, is meant.
    pub(crate) fn is_of_class(&self, name: &str) -> bool {
        self.class.as_deref().is_none_or(|class| is_class_named(name, class))
    }

    /// Whether the method of a class with that simple name is meant; a constructor by its class's name, too.
    pub(crate) fn is_method(&self, name: &str, class_name: &str) -> bool {
        name == self.method || (name == "<init>" && class_name.rsplit(['.', '$']).next() == Some(self.method.as_str()))
    }
}

/// Whether a class with that binary name is the one that a user calls so: by its whole name, or by the last parts of it.
pub(crate) fn is_class_named(binary_name: &str, wanted: &str) -> bool {
    let (name, wanted) = (binary_name.replace('$', "."), wanted.replace('$', "."));
    name == wanted || name.strip_suffix(&wanted).is_some_and(|before| before.ends_with('.'))
}

/// As [`is_class_named`], of a class or of one around it.
pub(crate) fn is_class_around(binary_name: &str, wanted: &str) -> bool {
    let ends = binary_name.match_indices('$').map(|(at, _)| at).chain([binary_name.len()]);
    ends.into_iter().filter_map(|end| binary_name.get(..end)).any(|around| is_class_named(around, wanted))
}

impl BreakpointPlace {
    /// The place of a function breakpoint: a method, or `com.example.Order:12`. Errors: it is neither.
    pub(crate) fn parse_function(text: &str) -> Result<BreakpointPlace, String> {
        match text.trim().rsplit_once(':') {
            Some((class, line)) if !class.is_empty() && line.starts_with(|c: char| c.is_ascii_digit()) => {
                let line = line.parse().ok().filter(|line| *line > 0);
                let line = line.ok_or_else(|| format!("`{text}` has no such line"))?;
                Ok(BreakpointPlace::ClassLine { class: class.to_owned(), line })
            }
            _ => FunctionName::parse(text).map(BreakpointPlace::Function),
        }
    }

    /// Whether a client sets it with its function breakpoints.
    pub(crate) fn is_function(&self) -> bool {
        matches!(self, BreakpointPlace::Function(_) | BreakpointPlace::ClassLine { .. })
    }

    /// Which classes it may be in.
    pub(crate) fn pattern(&self) -> ClassPattern {
        match self {
            BreakpointPlace::Line { path, .. } => {
                ClassPattern::SourceName(path.file_name().unwrap_or_default().to_string_lossy().into_owned())
            }
            BreakpointPlace::Function(FunctionName { class: Some(class), .. })
            | BreakpointPlace::Field { class, .. }
            | BreakpointPlace::Entry { class } => {
                let last = class.rsplit(['.', '$']).next().unwrap_or_default();
                ClassPattern::NameEnd(last.to_owned())
            }
            BreakpointPlace::ClassLine { class, .. } => {
                class_start(class).map_or(ClassPattern::Any, ClassPattern::NameStart)
            }
            BreakpointPlace::Function(_) => ClassPattern::Any,
        }
    }

    /// Whether it is on a line of that file.
    pub(crate) fn is_in_file(&self, file: &Path) -> bool {
        matches!(self, BreakpointPlace::Line { path, .. } if path == file)
    }
}

/// How the names of a class and of those inside of it begin: `com.example.Order` for `com.example.Order.Line`, whose name is
/// `com.example.Order$Line`. `None`: the name has no package, and so any class may be meant.
fn class_start(class: &str) -> Option<String> {
    let mut end = 0;
    for part in class.split_inclusive(['.', '$']) {
        end = part.len().saturating_add(end);
        if part.starts_with(char::is_uppercase) {
            break;
        }
    }
    let start = class.get(..end)?.trim_end_matches(['.', '$']);
    start.contains('.').then(|| start.to_owned())
}

impl BreakpointTable {
    /// Adds a breakpoint that is not bound yet; returns its id.
    pub(crate) fn add(&mut self, place: BreakpointPlace, conditions: StopConditions) -> i64 {
        let id = self.last_id.saturating_add(1);
        self.last_id = id;
        let (bound, line, is_column_met, older_code) = Default::default();
        let entry = JavaBreakpoint { id, place, conditions, hits: 0, bound, line, is_column_met, older_code };
        self.entries.insert(id, entry);
        id
    }

    /// Removes breakpoints; returns the requests that they were bound by.
    pub(crate) fn remove(&mut self, is_meant: impl Fn(&JavaBreakpoint) -> bool) -> Vec<BoundRequest> {
        let removed: Vec<JavaBreakpoint> =
            self.entries.extract_if(.., |_, entry| is_meant(entry)).map(|it| it.1).collect();
        let bound: Vec<BoundRequest> = removed.into_iter().flat_map(|entry| entry.bound).collect();
        for it in &bound {
            self.requests.remove(&it.request);
        }
        bound
    }

    /// Takes the requests at the code of classes away from their breakpoints, and returns them.
    pub(crate) fn unbind_classes(&mut self, classes: &[ReferenceTypeId]) -> Vec<BoundRequest> {
        let is_there = |bound: &mut BoundRequest| bound.location.is_some_and(|it| classes.contains(&it.class));
        let mut removed = Vec::new();
        for entry in self.entries.values_mut() {
            removed.extend(entry.bound.extract_if(.., is_there));
            if entry.bound.is_empty() {
                entry.line = None;
            }
        }
        for it in &removed {
            self.requests.remove(&it.request);
        }
        removed
    }

    /// A breakpoint is bound by a request.
    pub(crate) fn record_request(&mut self, id: i64, bound: BoundRequest) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.bound.push(bound);
            self.requests.insert(bound.request, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_with_and_without_their_class() {
        let check = |text: &str, class: Option<&str>, method: &str, at_exit: bool| {
            let expect = FunctionName { class: class.map(str::to_owned), method: method.to_owned(), at_exit };
            assert_eq!(FunctionName::parse(text), Ok(expect));
        };
        check("total", None, "total", false);
        check("com.example.Order.total(int):exit", Some("com.example.Order"), "total", true);
        check("Order#total:entry", Some("Order"), "total", false);
        assert!(FunctionName::parse("").is_err() && FunctionName::parse("a:b").is_err());
        let order = FunctionName::parse("Order.total").unwrap();
        assert!(order.is_of_class("com.example.Order") && order.is_of_class("Order"));
        assert!(!order.is_of_class("com.example.BackOrder") && !order.is_of_class("Order$Line"));
        assert!(FunctionName::parse("Order.Order").unwrap().is_method("<init>", "com.example.Order"));
        assert!(is_class_named("a.B$C", "B.C") && is_class_named("a.B$C", "C") && !is_class_named("a.B$C", "B"));
    }

    #[test]
    fn lines_of_classes_are_named_among_the_functions() {
        let parse = BreakpointPlace::parse_function;
        let place = BreakpointPlace::ClassLine { class: "com.example.Order".to_owned(), line: 12 };
        assert_eq!(parse(" com.example.Order:12"), Ok(place));
        assert!(matches!(parse("Order.total:exit"), Ok(BreakpointPlace::Function(_))));
        assert!(parse("Order:0").is_err() && parse("Order:1x").is_err() && parse(":3").is_err());
        let start = |class: &str| class_start(class).unwrap_or_default();
        assert_eq!(start("com.example.Order$Line"), "com.example.Order");
        assert_eq!(start("com.example.Order.Line"), "com.example.Order");
        assert_eq!((start("Order").as_str(), start("com.order").as_str()), ("", "com.order"));
        assert!(is_class_around("a.Order$Line$1", "a.Order") && is_class_around("a.Order$Line$1", "Order.Line"));
        assert!(!is_class_around("a.Orders$Line", "a.Order") && !is_class_around("a.Order", "a.Order.Line"));
    }

    #[test]
    fn removed_breakpoints_leave_no_request() {
        let mut table = BreakpointTable::default();
        let id = table.add(BreakpointPlace::Entry { class: "A".into() }, StopConditions::default());
        let bound = BoundRequest { kind: EventKind::Breakpoint, request: 7, location: None };
        table.record_request(id, bound);
        assert_eq!(table.requests.get(&7), Some(&id));
        assert_eq!(table.remove(|_| true), [bound]);
        assert!(table.requests.is_empty() && table.entries.is_empty());
    }
}
