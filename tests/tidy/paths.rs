//! Every path that a Rust file mentions, made absolute: imports, expressions, types, macros, attributes.
//!
//! `super::` and `self::` are resolved against the place of the file, so that no spelling hides a room.
//! Must not know which paths are allowed.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::crate_items::is_test_only;
use crate::sources::File;

/// A path as mentioned on a line: `["crate", "window", "actor"]`, or `["tokio", "time", "sleep"]`.
#[derive(Debug)]
pub struct Mention {
    pub line: usize,
    pub segments: Vec<String>,
    /// In an item with `#[cfg(test)]`.
    pub is_test: bool,
    /// In a `pub use`.
    pub is_re_export: bool,
}

/// Everything that `file` mentions with at least two segments.
pub fn mentions(file: &File) -> Result<Vec<Mention>, String> {
    let parsed = syn::parse_file(&file.text).map_err(|error| format!("{}: {error}", file.path))?;
    let mut reader = Reader { module: module_of(&file.path), found: Vec::new(), in_test: false, in_re_export: false };
    reader.visit_file(&parsed);
    Ok(reader.found)
}

/// `src/window/launch/node.rs` → `["window", "launch", "node"]`; the crate's roots → `[]`.
pub fn module_of(path: &str) -> Vec<String> {
    let inner = path.strip_prefix("src/").unwrap_or(path).trim_end_matches(".rs");
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    match inner {
        "lib" | "main" => Vec::new(),
        _ => inner.split('/').map(str::to_owned).collect(),
    }
}

/// A path mentioned in `module`, as segments below `crate`: `crate::a::b`, `super::b` and `b` alike.
pub fn below_crate(module: &[String], mut segments: Vec<String>) -> Vec<String> {
    let mut module = module.to_vec();
    match segments.first().map(String::as_str) {
        Some("crate" | "devtether") => {
            segments.remove(0);
            return segments;
        }
        Some("super" | "self") => {
            while let Some(step @ ("super" | "self")) = segments.first().map(String::as_str) {
                if step == "super" {
                    module.pop();
                }
                segments.remove(0);
            }
        }
        _ => {}
    }
    [module, segments].concat()
}

struct Reader {
    module: Vec<String>,
    found: Vec<Mention>,
    in_test: bool,
    in_re_export: bool,
}

impl Reader {
    fn mention(&mut self, span: Span, segments: Vec<String>) {
        let absolute = self.absolute(segments);
        if absolute.len() > 1 {
            let (is_test, is_re_export) = (self.in_test, self.in_re_export);
            self.found.push(Mention { line: span.start().line, segments: absolute, is_test, is_re_export });
        }
    }

    /// `super::super::debug` in `window::launch` → `crate::debug`.
    fn absolute(&self, segments: Vec<String>) -> Vec<String> {
        match segments.first().map(String::as_str) {
            Some("super" | "self" | "crate" | "devtether") => {
                [vec!["crate".to_owned()], below_crate(&self.module, segments)].concat()
            }
            _ => segments,
        }
    }

    fn import(&mut self, tree: &syn::UseTree, prefix: &[String]) {
        let with = |ident: &Ident| [prefix, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.import(&path.tree, &with(&path.ident)),
            syn::UseTree::Name(name) => self.mention(name.ident.span(), with(&name.ident)),
            syn::UseTree::Rename(rename) => self.mention(rename.ident.span(), with(&rename.ident)),
            syn::UseTree::Glob(glob) => {
                self.mention(glob.star_token.spans[0], [prefix, &["*".to_owned()]].concat());
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.import(item, prefix)),
        }
    }

    /// Paths in the unparsed tokens of a macro or an attribute: `a::b::c`, at any depth.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<Ident> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.flush(&mut path);
                    }
                    path.push(ident);
                    colons = 0;
                }
                other => {
                    self.flush(&mut path);
                    colons = 0;
                    self.nested(other);
                }
            }
        }
        self.flush(&mut path);
    }

    fn nested(&mut self, token: TokenTree) {
        match token {
            TokenTree::Group(group) => self.tokens(group.stream()),
            // serde's `with = "crate::api::time"` hides a path in a string.
            TokenTree::Literal(literal) => {
                if let Ok(path) = syn::parse_str::<syn::LitStr>(&literal.to_string()).and_then(|text| {
                    let path: syn::Path = text.parse()?;
                    Ok(path)
                }) {
                    self.mention(literal.span(), names(&path));
                }
            }
            _ => {}
        }
    }

    fn flush(&mut self, path: &mut Vec<Ident>) {
        if let Some(first) = path.first() {
            self.mention(first.span(), path.iter().map(Ident::to_string).collect());
        }
        path.clear();
    }
}

fn names(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.in_re_export = !matches!(item.vis, syn::Visibility::Inherited);
        self.import(&item.tree, &[]);
        self.in_re_export = false;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first() {
            self.mention(first.ident.span(), names(path));
        }
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let outer = self.in_test;
        self.in_test |= is_test_only(&item.attrs);
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
        self.in_test = outer;
    }

    /// `pub(super)` and `pub(in path)` name a module without using it.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.tokens(mac.tokens.clone());
        visit::visit_macro(self, mac);
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.tokens(list.tokens.clone());
        visit::visit_meta_list(self, list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, code: &str, expected: &[&str]) {
        let found = mentions(&File::of(path, code)).unwrap();
        let found: Vec<String> = found.iter().map(|mention| mention.segments.join("::")).collect();
        assert_eq!(found, expected, "in {path}: {code}");
    }

    #[test]
    fn a_path_is_found_however_it_is_spelled() {
        for (code, expected) in [
            ("use crate::window::actor;", &["crate::window::actor"][..]),
            (
                "use crate::{error, window::{self, actor as a}};",
                &["crate::error", "crate::window::self", "crate::window::actor"],
            ),
            ("use crate::window::*;", &["crate::window::*"]),
            ("use devtether::window;", &["crate::window"]),
            ("use super::debug;", &["crate::api::debug"]),
            ("use super::super::debug;", &["crate::debug"]),
            ("use self::inner::Thing;", &["crate::api::window::inner::Thing"]),
            ("fn f(w: crate::window::Plan) {}", &["crate::window::Plan"]),
            ("fn f() { crate::window::launch() }", &["crate::window::launch"]),
            ("fn f() -> Vec<crate::window::Plan> {}", &["crate::window::Plan"]),
            ("fn f() { select! { x = crate::window::launch() => x } }", &["crate::window::launch"]),
            ("fn f() { a!(b!([crate::debug::x])) }", &["crate::debug::x"]),
            ("#[serde(with = \"crate::window::ms\")] struct S;", &["crate::window::ms"]),
            ("#[arg(value_parser = crate::window::parse)] struct S;", &["crate::window::parse"]),
            ("mod tests { use super::super::super::debug; }", &["crate::debug"]),
            ("impl crate::window::T for S {}", &["crate::window::T"]),
            ("use std::time::Duration;", &["std::time::Duration"]),
        ] {
            check("src/api/window.rs", code, expected);
        }
    }

    #[test]
    fn a_file_is_where_its_module_is() {
        check("src/api/mod.rs", "use super::window;", &["crate::window"]);
        check("src/error.rs", "use super::window;", &["crate::window"]);
        check("src/window/launch/node.rs", "use super::super::page;", &["crate::window::page"]);
    }
}
