//! Whether the commands, results and events of `src/cdp` are those of the Chrome DevTools Protocol.
//!
//! A command's parameters exist there, and the required ones are always sent. A field that is read exists there, and one
//! that must not be missing is not optional there. The types agree.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use serde_json::Value;
use syn::LitStr;

use crate::cdp_protocol::{CdpProtocol, ProtocolPart};
use crate::cdp_types::{CdpField, CdpStruct, CdpTypes, FieldType, ParsedEvent};
use crate::sources::File;

/// Compares what belongs to the domains of the protocol with it. Complains also of structs that no command, result or
/// event leads to, when `is_whole`: the protocol has all domains.
pub fn complaints(types: &CdpTypes, events: &[ParsedEvent], protocol: &CdpProtocol, is_whole: bool) -> Vec<String> {
    let mut comparison = Comparison { types, protocol, compared: HashSet::new(), complaints: Vec::new() };
    let concerns =
        |method: &str| is_whole || method.split_once('.').is_some_and(|(domain, _)| protocol.has_domain(domain));
    for command in types.commands.iter().filter(|command| concerns(&command.method)) {
        let place = &command.parameters.place;
        match protocol.command(&command.method) {
            Some(described) => {
                comparison.compare_sent(&command.parameters, described.part("parameters"));
                comparison.compare_result(&command.response, described.part("returns"), place);
            }
            None => comparison.complain(place, format!("the protocol has no command {}", command.method)),
        }
    }
    for event in events.iter().filter(|event| concerns(&event.method)) {
        match protocol.event(&event.method) {
            Some(described) => {
                let body = FieldType::Named(event.name.clone());
                comparison.compare_result(&body, described.part("parameters"), &event.place);
            }
            None => comparison.complain(&event.place, format!("the protocol has no event {}", event.method)),
        }
    }
    if is_whole {
        comparison.complain_of_unused();
    }
    comparison.complaints
}

/// Complains of texts that look like the name of a command or an event, and are none. In `starts_with`, the beginning of
/// an event's name is enough.
pub fn unknown_methods(file: &File, protocol: &CdpProtocol) -> Vec<String> {
    let stream: TokenStream = match file.text.parse() {
        Ok(stream) => stream,
        Err(error) => return vec![format!("{}: {error}", file.path)],
    };
    let mut found = Vec::new();
    collect_methods(stream, false, &mut found);
    let is_unknown = |(_, name, as_prefix): &(usize, String, bool)| {
        name.split_once('.').is_some_and(|(domain, _)| protocol.has_domain(domain))
            && !protocol.has_method(name, *as_prefix)
    };
    let line = |(line, name, _): (usize, String, bool)| format!("{}:{line}: the protocol has no {name:?}", file.path);
    found.into_iter().filter(is_unknown).map(line).collect()
}

/// The line, the text, and whether it is the argument of `starts_with`.
fn collect_methods(stream: TokenStream, mut as_prefix: bool, found: &mut Vec<(usize, String, bool)>) {
    for token in stream {
        match token {
            TokenTree::Group(group) => collect_methods(group.stream(), as_prefix, found),
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                let text = syn::parse2::<LitStr>(TokenTree::Literal(literal).into()).map(|text| text.value());
                found.extend(text.ok().filter(|text| is_method_name(text)).map(|text| (line, text, as_prefix)));
            }
            TokenTree::Ident(ident) => as_prefix = ident == "starts_with",
            TokenTree::Punct(_) => {}
        }
    }
}

/// `Domain.method`
fn is_method_name(text: &str) -> bool {
    let is_word = |word: &str, begins: fn(char) -> bool| {
        word.starts_with(begins) && word.chars().all(|letter| letter.is_ascii_alphanumeric())
    };
    text.split_once('.').is_some_and(|(domain, method)| {
        is_word(domain, |letter| letter.is_ascii_uppercase()) && is_word(method, |letter| letter.is_ascii_lowercase())
    })
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Direction {
    Sent,
    Received,
}

struct Comparison<'a> {
    types: &'a CdpTypes,
    protocol: &'a CdpProtocol,
    /// Structs with what they were compared with already: some contain themselves.
    compared: HashSet<(String, Direction, *const Value)>,
    complaints: Vec<String>,
}

impl<'a> Comparison<'a> {
    fn complain(&mut self, place: &str, what: String) {
        self.complaints.push(format!("{place}: {what}"));
    }

    fn compare_result(&mut self, body: &FieldType, declared: ProtocolPart<'a>, place: &str) {
        match body {
            FieldType::Named(name) if name == "IgnoredAny" => {}
            FieldType::Named(name) if self.types.structs.contains_key(name) => self.compare_received(name, declared),
            other => self.complain(place, format!("{} is no struct of src/cdp", show_type(other))),
        }
    }

    fn compare_sent(&mut self, parameters: &CdpStruct, declared: ProtocolPart<'a>) {
        for field in &parameters.fields {
            let place = format!("{}: `{}` of {}", parameters.place, field.name, parameters.name);
            if matches!(field.field_type, FieldType::Optional(_)) && !field.may_be_skipped {
                self.complain(&place, "sent as null when there is none".to_owned());
            }
            match declared.list().find(|it| it.name() == field.name) {
                Some(it) => self.compare_types(&field.field_type, it, Direction::Sent, &place),
                None => self.complain(&place, "the protocol has no such parameter".to_owned()),
            }
        }
        let is_sent = |name: &str| parameters.fields.iter().any(|field| field.name == name && !field.may_be_skipped);
        for required in declared.list().filter(|it| !it.is_optional() && !is_sent(it.name())) {
            let what = format!("{} does not always send the required `{}`", parameters.name, required.name());
            self.complain(&parameters.place, what);
        }
    }

    fn compare_received(&mut self, name: &str, declared: ProtocolPart<'a>) {
        let Some(body) = self.types.structs.get(name) else { return };
        if !self.compared.insert((name.to_owned(), Direction::Received, declared.value)) {
            return;
        }
        for field in &body.fields {
            let place = format!("{}: `{}` of {name}", body.place, field.name);
            match declared.list().find(|it| it.name() == field.name) {
                Some(it) if it.is_optional() && must_be_there(field) => {
                    self.complain(&place, "may be missing, says the protocol, and is required here".to_owned());
                }
                Some(it) => self.compare_types(&field.field_type, it, Direction::Received, &place),
                None => self.complain(&place, "the protocol has no such field".to_owned()),
            }
        }
    }

    fn compare_types(&mut self, ours: &FieldType, declared: ProtocolPart<'a>, direction: Direction, place: &str) {
        let declared = self.protocol.resolve(declared);
        match (ours, declared.type_name()) {
            (FieldType::Optional(inner), _) => self.compare_types(inner, declared, direction, place),
            (FieldType::List(inner), "array") => self.compare_types(inner, declared.part("items"), direction, place),
            (FieldType::Named(name), "object") if self.types.structs.contains_key(name) => {
                self.compare_struct(name, declared.part("properties"), direction);
            }
            (FieldType::Named(name), kind) if is_compatible(name, kind, direction) => {}
            (other, kind) => {
                let what = format!("{} does not fit what the protocol calls {kind}", show_type(other));
                self.complain(place, what);
            }
        }
    }

    fn compare_struct(&mut self, name: &str, declared: ProtocolPart<'a>, direction: Direction) {
        match direction {
            Direction::Received => self.compare_received(name, declared),
            Direction::Sent => {
                if self.compared.insert((name.to_owned(), direction, declared.value)) {
                    self.compare_sent(&self.types.structs[name], declared);
                }
            }
        }
    }

    fn complain_of_unused(&mut self) {
        let used: HashSet<String> = self.compared.iter().map(|(name, ..)| name.clone()).collect();
        let types = self.types;
        for unused in types.structs.values().filter(|it| !used.contains(&it.name)) {
            self.complain(&unused.place, format!("no command, result or event leads to {}", unused.name));
        }
    }
}

fn must_be_there(field: &CdpField) -> bool {
    !field.has_default && !matches!(field.field_type, FieldType::Optional(_))
}

/// Whether a scalar type of Rust is what the protocol calls `kind`. The protocol's integers have a sign.
fn is_compatible(name: &str, kind: &str, direction: Direction) -> bool {
    match (name, kind) {
        ("Value", _) | ("String" | "str", "string") | ("bool", "boolean") | ("f64", "number") => true,
        ("i32" | "i64", "integer") => true,
        // Written with a fraction, which an integer has not.
        ("f64", "integer") => direction == Direction::Received,
        ("u8" | "u32" | "u64" | "usize", "integer") | ("i64" | "u64", "number") => direction == Direction::Sent,
        _ => false,
    }
}

fn show_type(shown: &FieldType) -> String {
    match shown {
        FieldType::Optional(inner) => format!("Option<{}>", show_type(inner)),
        FieldType::List(inner) => format!("Vec<{}>", show_type(inner)),
        FieldType::Named(name) => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cdp_types::parsed_events;

    fn protocol() -> CdpProtocol {
        let types = json!([
            {"id": "NodeId", "type": "integer"},
            {"id": "Tree", "type": "object", "properties": [
                {"name": "id", "$ref": "NodeId"},
                {"name": "children", "optional": true, "type": "array", "items": {"$ref": "Dom.Tree"}}
            ]}
        ]);
        let commands = json!([{
            "name": "find",
            "parameters": [{"name": "text", "type": "string"}, {"name": "depth", "optional": true, "$ref": "NodeId"}],
            "returns": [{"name": "tree", "$ref": "Tree"}, {"name": "count", "optional": true, "type": "integer"}]
        }]);
        let events = json!([{"name": "changed", "parameters": [{"name": "tree", "$ref": "Tree"}]}]);
        let dom = json!([{"domain": "Dom", "types": types, "commands": commands, "events": events}]);
        CdpProtocol::from_domains([dom])
    }

    fn check(code: &str, expect: &[&str]) {
        let file = File::of("src/cdp/types.rs", code);
        let mut types = CdpTypes::default();
        types.add_file(&file).unwrap();
        let found = complaints(&types, &parsed_events(&file).unwrap(), &protocol(), true);
        let is_as_expected =
            found.len() == expect.len() && found.iter().zip(expect).all(|(it, part)| it.contains(part));
        assert!(is_as_expected, "{code}: {found:?}");
    }

    #[test]
    fn commands_are_compared_with_the_protocol() {
        let command = |fields: &str| format!("command!(Find, \"Dom.find\", IgnoredAny, {{ {fields} }});");
        let skip = "#[serde(skip_serializing_if = \"Option::is_none\")]";
        check(&command("text: String"), &[]);
        check(&command(&format!("text: &'static str, {skip} depth: Option<u32>")), &[]);
        check(&command("text: String, depth: Option<u32>"), &["`depth` of Find: sent as null"]);
        check(&command(&format!("{skip} text: Option<String>")), &["does not always send the required `text`"]);
        check(&command(""), &["does not always send the required `text`"]);
        check(&command("text: String, node: i64"), &["`node` of Find: the protocol has no such parameter"]);
        check(&command("text: bool"), &["bool does not fit what the protocol calls string"]);
        check(&command("text: String, depth: f64"), &["f64 does not fit what the protocol calls integer"]);
        check("command!(Find, \"Dom.seek\", IgnoredAny, {});", &["the protocol has no command Dom.seek"]);
        check("command!(Find, \"Dom.find\", Missing, { text: String });", &["Missing is no struct of src/cdp"]);
    }

    #[test]
    fn results_and_events_are_compared_with_the_protocol() {
        let result = |structs: &str| {
            format!("command!(Find, \"Dom.find\", Found, {{ text: String }}); received! {{ {structs} }}")
        };
        check(&result("struct Found { count: Option<i64> }"), &[]);
        check(&result("struct Found { #[serde(default)] count: i64 }"), &[]);
        check(&result("struct Found { count: i64 }"), &["`count` of Found: may be missing"]);
        check(&result("struct Found { count: Option<u64> }"), &["u64 does not fit what the protocol calls integer"]);
        check(&result("struct Found { number: Option<i64> }"), &["`number` of Found: the protocol has no such field"]);
        check(&result("struct Found {} struct Lost {}"), &["no command, result or event leads to Lost"]);
        let tree = "struct Tree { #[serde(default)] children: Vec<Tree>, id: i64 }";
        check(&result(&format!("struct Found {{ tree: Tree }} {tree}")), &[]);
        let strict = "struct Tree { children: Vec<Tree>, id: String }";
        let expect = ["`children` of Tree: may be missing", "String does not fit what the protocol calls integer"];
        check(&result(&format!("struct Found {{ tree: Tree }} {strict}")), &expect);
        let event = |name: &str| format!("received! {{ struct E {{}} }} fn f() {{ e.parse_as::<E>(\"{name}\") }}");
        check(&event("Dom.changed"), &[]);
        check(&event("Dom.moved"), &["no event Dom.moved", "leads to E"]);
    }

    #[test]
    fn other_domains_are_left_out_where_the_protocol_is_not_whole() {
        let mut types = CdpTypes::default();
        types.add_file(&File::of("src/cdp/types.rs", "command!(A, \"Other.a\", IgnoredAny, {});")).unwrap();
        assert!(complaints(&types, &[], &protocol(), false).is_empty());
        assert_eq!(complaints(&types, &[], &protocol(), true).len(), 1);
    }

    #[test]
    fn texts_that_look_like_methods_are_methods() {
        let check = |code: &str, holds: bool| {
            let found = unknown_methods(&File::of("src/window/actor.rs", code), &protocol());
            assert_eq!(found.is_empty(), holds, "{code}: {found:?}");
        };
        check("fn f() { method == \"Dom.changed\" || method == \"Dom.find\" }", true);
        check("fn f() { method == \"Dom.moved\" }", false);
        check("fn f() { method.starts_with(\"Dom.chan\") }", true);
        check("fn f() { method.starts_with(\"Dom.x\") }", false);
        check("fn f() { method == \"Dom.chan\" }", false);
        check("fn f() { \"README.md\"; \"Other.thing\"; \"Dom.Tree\"; \"Dom.find.x\" }", true);
    }
}
