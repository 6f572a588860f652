//! Steps into one of several calls on a line: the one that the client has chosen by its name.
//!
//! ```text
//! step into ─▶ entered a method: the chosen one ─▶ stop
//!    ▲           │ another one
//!    └─ same line ◀─ step out                     another line, or the caller: stop, it was not called
//! ```

use tether_jdwp::StepDepth;
use tether_jdwp::values::MethodId;
use tree_sitter::{Node, Parser};

/// How many calls of a line are offered.
const MAX_TARGETS: usize = 100;

/// A step into a chosen method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SmartStep {
    /// The name of the method; of a constructor that of its class.
    pub method: String,
    /// Where it began: how many frames, which method, which line.
    pub frames: i32,
    pub caller: MethodId,
    pub line: i32,
}

/// Where a step has ended, beside where it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepEnd<'a> {
    pub frames: i32,
    pub class_name: &'a str,
    pub method_name: &'a str,
    pub method: MethodId,
    pub line: i32,
}

impl SmartStep {
    /// The step that follows; `None`: it has ended.
    pub(crate) fn next_step(&self, end: StepEnd<'_>) -> Option<StepDepth> {
        if end.frames > self.frames {
            let is_constructor = end.method_name == "<init>" && end.class_name == self.method;
            return (end.method_name != self.method && !is_constructor).then_some(StepDepth::Out);
        }
        let is_same_line = end.frames == self.frames && end.method == self.caller && end.line == self.line;
        is_same_line.then_some(StepDepth::Into)
    }
}

/// The names of the methods and classes that are called on a line, from 1; each once, in the order of their ends: the inner
/// calls are done first.
pub(crate) fn calls_on_line(text: &str, line: usize) -> Vec<String> {
    let Some(row) = line.checked_sub(1) else { return Vec::new() };
    let mut parser = Parser::new();
    let is_ready = parser.set_language(&tree_sitter_java::LANGUAGE.into()).is_ok();
    let Some(tree) = is_ready.then(|| parser.parse(text, None)).flatten() else { return Vec::new() };
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut left = vec![tree.root_node()];
    while let Some(node) = left.pop() {
        if !(node.start_position().row..=node.end_position().row).contains(&row) {
            continue;
        }
        found.extend(called_name(node, text, row).map(|name| (node.end_byte(), name)));
        let mut cursor = node.walk();
        left.extend(node.named_children(&mut cursor));
    }
    found.sort();
    let mut names: Vec<String> = Vec::new();
    for (_, name) in found {
        if !names.contains(&name) && names.len() < MAX_TARGETS {
            names.push(name);
        }
    }
    names
}

fn called_name(node: Node<'_>, text: &str, row: usize) -> Option<String> {
    let name = match node.kind() {
        "method_invocation" => node.child_by_field_name("name")?,
        "object_creation_expression" => node.child_by_field_name("type")?,
        _ => return None,
    };
    let text = name.utf8_text(text.as_bytes()).ok().filter(|_| name.start_position().row == row)?;
    // Without type arguments and without the package.
    let plain = text.split('<').next().unwrap_or_default();
    Some(plain.rsplit('.').next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_a_line_are_named_in_the_order_in_which_they_are_done() {
        let text = "class A {\n  void f() {\n    int x = outer(inner(1), new java.util.ArrayList<String>(2).size()) + inner(2);\n\
                    Runnable r = () -> later();\n  }\n}\n";
        assert_eq!(calls_on_line(text, 3), ["inner", "ArrayList", "size", "outer"]);
        assert_eq!(calls_on_line(text, 4), ["later"]);
        assert_eq!(calls_on_line(text, 2), [""; 0]);
        assert_eq!(calls_on_line("no java {{{", 1), [""; 0]);
    }

    #[test]
    fn a_smart_step_goes_on_until_the_method_or_the_next_line() {
        let step = SmartStep { method: "outer".to_owned(), frames: 3, caller: MethodId(1), line: 10 };
        let check = |frames, method_name, method, line, expect| {
            let end = StepEnd { frames, class_name: "A", method_name, method: MethodId(method), line };
            assert_eq!(step.next_step(end), expect, "{method_name} {line}");
        };
        check(4, "inner", 2, 20, Some(StepDepth::Out));
        check(3, "f", 1, 10, Some(StepDepth::Into));
        check(4, "outer", 3, 30, None);
        check(3, "f", 1, 11, None);
        check(2, "main", 4, 10, None);
        let constructor = SmartStep { method: "A".to_owned(), ..step.clone() };
        let end = StepEnd { frames: 4, class_name: "A", method_name: "<init>", method: MethodId(9), line: 1 };
        assert_eq!(constructor.next_step(end), None);
    }
}
