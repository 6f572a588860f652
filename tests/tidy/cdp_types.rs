//! The commands and structs of `src/cdp` as serde writes and reads them, and the events that the crate parses.
//!
//! Read from the source: the macros `command!` and `received!`, the structs beside them that derive `Serialize` or
//! `Deserialize`, and the calls of `parse_as`. Holds no rule.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Field, Fields, GenericArgument, Ident, Item, ItemStruct, LitStr, PathArguments, Token, Type};

use crate::sources::File;

/// All of them.
#[derive(Debug, Default)]
pub struct CdpTypes {
    pub commands: Vec<CdpCommandType>,
    pub structs: BTreeMap<String, CdpStruct>,
}

/// A `command!`: the fields are the parameters.
#[derive(Debug)]
pub struct CdpCommandType {
    pub method: String,
    pub response: FieldType,
    pub parameters: CdpStruct,
}

/// A struct that is sent, received, or part of one.
#[derive(Debug)]
pub struct CdpStruct {
    pub name: String,
    /// `path:line`
    pub place: String,
    pub fields: Vec<CdpField>,
}

/// A field under its name on the wire.
#[derive(Debug)]
pub struct CdpField {
    pub name: String,
    pub field_type: FieldType,
    /// Read as its default value when it is missing.
    pub has_default: bool,
    /// Not written in some cases.
    pub may_be_skipped: bool,
}

/// A type without `Box`, references and lifetimes.
#[derive(Debug)]
pub enum FieldType {
    Optional(Box<FieldType>),
    List(Box<FieldType>),
    /// `Cow<'static, str>` is `str`.
    Named(String),
}

/// A call `parse_as::<Name>("Domain.event")`.
#[derive(Debug)]
pub struct ParsedEvent {
    pub name: String,
    pub method: String,
    /// `path:line`
    pub place: String,
}

impl CdpTypes {
    /// Adds those of a file; a file without the macros has none. Errors: the file cannot be read as what it should be.
    pub fn add_file(&mut self, file: &File) -> Result<(), String> {
        let describe = |error: syn::Error| format!("{}:{}: {error}", file.path, error.span().start().line);
        let parsed = syn::parse_file(&file.text).map_err(describe)?;
        let is_macro = |item: &Item| is_call_of(item, "command") || is_call_of(item, "received");
        if !parsed.items.iter().any(is_macro) {
            return Ok(());
        }
        for item in &parsed.items {
            self.add_item(item, file).map_err(describe)?;
        }
        Ok(())
    }

    fn add_item(&mut self, item: &Item, file: &File) -> syn::Result<()> {
        match item {
            Item::Macro(call) if is_call_of(item, "command") => {
                let body: CommandBody = call.mac.parse_body()?;
                let parameters = read_struct(&body.name, body.fields.iter(), true, file)?;
                let (method, response) = (body.method.value(), read_type(&body.response));
                self.commands.push(CdpCommandType { method, response, parameters });
            }
            Item::Macro(call) if is_call_of(item, "received") => {
                for item in call.mac.parse_body::<ReceivedBody>()?.0 {
                    self.add_struct(&item, true, file)?;
                }
            }
            Item::Struct(item) if derives_serde(&item.attrs)? => {
                let renames = item.attrs.iter().any(|it| it.path().is_ident("serde"));
                self.add_struct(item, renames, file)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn add_struct(&mut self, item: &ItemStruct, renames: bool, file: &File) -> syn::Result<()> {
        let Fields::Named(fields) = &item.fields else {
            return Err(syn::Error::new(item.ident.span(), "only structs with named fields are understood"));
        };
        let read = read_struct(&item.ident, fields.named.iter(), renames, file)?;
        match self.structs.insert(read.name.clone(), read) {
            Some(other) => Err(syn::Error::new(item.ident.span(), format!("{} has its name too", other.place))),
            None => Ok(()),
        }
    }
}

/// The calls of `parse_as` in a file. Errors: one that names its type or its event otherwise.
pub fn parsed_events(file: &File) -> Result<Vec<ParsedEvent>, String> {
    let stream: TokenStream = file.text.parse().map_err(|error| format!("{}: {error}", file.path))?;
    let mut found = Vec::new();
    collect_parsed_events(stream, file, &mut found)?;
    Ok(found)
}

fn collect_parsed_events(stream: TokenStream, file: &File, found: &mut Vec<ParsedEvent>) -> Result<(), String> {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => collect_parsed_events(group.stream(), file, found)?,
            TokenTree::Ident(ident) if ident == "parse_as" && !follows_fn(&tokens, at) => {
                let place = format!("{}:{}", file.path, ident.span().start().line);
                let (name, method) = read_call(&tokens[at + 1..])
                    .ok_or_else(|| format!("{place}: write `parse_as::<Type>(\"Domain.event\")`"))?;
                found.push(ParsedEvent { name, method, place });
            }
            _ => {}
        }
    }
    Ok(())
}

fn follows_fn(tokens: &[TokenTree], at: usize) -> bool {
    at > 0 && matches!(&tokens[at - 1], TokenTree::Ident(word) if word == "fn")
}

/// `::<Type>("Domain.event")`; `None`: it is something else.
fn read_call(tokens: &[TokenTree]) -> Option<(String, String)> {
    let end = tokens.iter().position(|token| matches!(token, TokenTree::Punct(it) if it.as_char() == '>'))?;
    let TokenTree::Ident(name) = tokens[..end].last()? else { return None };
    let TokenTree::Group(arguments) = tokens.get(end + 1)? else { return None };
    let method: LitStr = syn::parse2(arguments.stream()).ok()?;
    let spelling: String = tokens[..end].iter().map(TokenTree::to_string).collect();
    spelling.starts_with("::<").then(|| (name.to_string(), method.value()))
}

/// `Name, "Domain.command", Response, { fields }`
struct CommandBody {
    name: Ident,
    method: LitStr,
    response: Type,
    fields: Punctuated<Field, Token![,]>,
}

impl Parse for CommandBody {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        input.call(Attribute::parse_outer)?;
        let name = input.parse()?;
        input.parse::<Token![,]>()?;
        let method = input.parse()?;
        input.parse::<Token![,]>()?;
        let response = input.parse()?;
        input.parse::<Token![,]>()?;
        let fields;
        syn::braced!(fields in input);
        let fields = fields.parse_terminated(Field::parse_named, Token![,])?;
        input.parse::<Option<Token![,]>>()?;
        Ok(CommandBody { name, method, response, fields })
    }
}

/// Structs, one after the other.
struct ReceivedBody(Vec<ItemStruct>);

impl Parse for ReceivedBody {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut all = Vec::new();
        while !input.is_empty() {
            all.push(input.parse()?);
        }
        Ok(ReceivedBody(all))
    }
}

fn is_call_of(item: &Item, name: &str) -> bool {
    matches!(item, Item::Macro(call) if call.mac.path.is_ident(name))
}

fn derives_serde(attributes: &[Attribute]) -> syn::Result<bool> {
    let mut derives = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
        attribute.parse_nested_meta(|meta| {
            let last = meta.path.segments.last().map(|segment| segment.ident.to_string());
            derives |= matches!(last.as_deref(), Some("Serialize" | "Deserialize"));
            Ok(())
        })?;
    }
    Ok(derives)
}

fn read_struct<'a>(
    name: &Ident,
    fields: impl Iterator<Item = &'a Field>,
    renames: bool,
    file: &File,
) -> syn::Result<CdpStruct> {
    let place = format!("{}:{}", file.path, name.span().start().line);
    let fields = fields.map(|field| read_field(field, renames)).collect::<syn::Result<_>>()?;
    Ok(CdpStruct { name: name.to_string(), place, fields })
}

fn read_field(field: &Field, renames: bool) -> syn::Result<CdpField> {
    let name = field.ident.as_ref().map(Ident::to_string).unwrap_or_default();
    let name = if renames { camel_case(&name) } else { name };
    let field_type = read_type(&field.ty);
    let mut read = CdpField { name, field_type, has_default: false, may_be_skipped: false };
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(|meta| {
            match meta.path.require_ident()?.to_string().as_str() {
                "rename" => read.name = meta.value()?.parse::<LitStr>()?.value(),
                "default" => read.has_default = true,
                "skip_serializing_if" => {
                    meta.value()?.parse::<LitStr>()?;
                    read.may_be_skipped = true;
                }
                _ => return Err(meta.error("this attribute of serde is not understood")),
            }
            Ok(())
        })?;
    }
    Ok(read)
}

/// As serde's `rename_all = "camelCase"` does it.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| {
        let (initial, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        format!("{all}{}{rest}", initial.to_uppercase())
    })
}

fn read_type(written: &Type) -> FieldType {
    let path = match written {
        Type::Reference(reference) => return read_type(&reference.elem),
        Type::Path(path) => path,
        _ => return FieldType::Named("?".to_owned()),
    };
    let Some(last) = path.path.segments.last() else { return FieldType::Named("?".to_owned()) };
    let inner = match &last.arguments {
        PathArguments::AngleBracketed(inner) => inner.args.iter().find_map(|argument| match argument {
            GenericArgument::Type(inner) => Some(read_type(inner)),
            _ => None,
        }),
        _ => None,
    };
    match (last.ident.to_string().as_str(), inner) {
        ("Option", Some(inner)) => FieldType::Optional(Box::new(inner)),
        ("Vec", Some(inner)) => FieldType::List(Box::new(inner)),
        ("Box" | "Cow", Some(inner)) => inner,
        (name, _) => FieldType::Named(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = r#"
        macro_rules! command { () => {} }
        command!(
            /// Moves.
            Move, "Input.move", MoveResult, {
                #[serde(rename = "type")]
                kind: &'static str,
                #[serde(skip_serializing_if = "Option::is_none")]
                click_count: Option<u32>,
            }
        );
        received! {
            #[derive(Copy)]
            struct MoveResult { #[serde(default)] all: Vec<Box<Place>>, name: Cow<'static, str> }
        }
        #[derive(Clone, serde::Deserialize)]
        pub struct Place { pub line_number: serde_json::Value }
        struct Other(u8);
    "#;

    fn show(field: &CdpField) -> String {
        let CdpField { name, field_type, has_default, may_be_skipped } = field;
        format!("{name}: {field_type:?} {has_default} {may_be_skipped}")
    }

    #[test]
    fn commands_and_structs_are_read_as_serde_reads_them() {
        let mut types = CdpTypes::default();
        types.add_file(&File::of("src/cdp/types.rs", CODE)).unwrap();
        let [command] = &types.commands[..] else { panic!("{types:?}") };
        assert_eq!((command.method.as_str(), format!("{:?}", command.response)), ("Input.move", named("MoveResult")));
        let fields: Vec<String> = command.parameters.fields.iter().map(show).collect();
        let optional = format!("Optional({})", named("u32"));
        assert_eq!(
            fields,
            [format!("type: {} false false", named("str")), format!("clickCount: {optional} false true")]
        );
        let fields = |name: &str| types.structs[name].fields.iter().map(show).collect::<Vec<_>>();
        let list = format!("all: List({}) true false", named("Place"));
        assert_eq!(fields("MoveResult"), [list, format!("name: {} false false", named("str"))]);
        assert_eq!(fields("Place"), [format!("line_number: {} false false", named("Value"))]);
        assert_eq!(types.structs.len(), 2);
    }

    fn named(name: &str) -> String {
        format!("Named({name:?})")
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let check = |code: &str, expect: &str| {
            let error = CdpTypes::default().add_file(&File::of("src/cdp/types.rs", code)).unwrap_err();
            assert!(error.contains(expect), "{code}: {error}");
        };
        check("received! { struct A { #[serde(flatten)] b: B } }", "not understood");
        check("received! { struct A(u8); }", "named fields");
        check("received! { struct A {} struct A {} }", "has its name too");
        check("command!(A, \"A.b\", B);", "expected");
    }

    #[test]
    fn events_are_found_with_their_types() {
        let found = |code: &str| parsed_events(&File::of("src/window/actor.rs", code));
        let code = "fn parse_as() { e.parse_as::<events::Paused>(\"Debugger.paused\") }";
        let events = found(code).unwrap();
        assert_eq!((events[0].name.as_str(), events[0].method.as_str()), ("Paused", "Debugger.paused"));
        assert!(found("fn f() { e.parse_as(\"Debugger.paused\") }").unwrap_err().contains("src/window/actor.rs:1"));
        assert!(found("fn f() { e.parse_as::<Paused>(method) }").is_err());
    }
}
