//! The items of the crate that ship: types, functions, public items, re-exports; test modules are left out.
//!
//! Depends on the syntax only; holds no rule.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::sources::File;

/// A named item and where it stands.
#[derive(Debug)]
pub struct Named {
    pub name: String,
    pub path: String,
    pub line: usize,
}

/// A function with what the naming and length rules need.
#[derive(Debug)]
pub struct Function {
    pub item: Named,
    /// Neither in an `impl` nor in a trait.
    pub is_free: bool,
    /// Returns `bool`, or a `Result` or `Option` of it; also as the output of an `async fn`.
    pub returns_bool: bool,
    /// Takes `&mut self`.
    pub changes_self: bool,
    /// Lines with code, from the signature to the closing brace.
    pub code_lines: usize,
}

/// `pub use origin as name`: paths of segments below `crate`.
#[derive(Debug)]
pub struct ReExport {
    pub module: Vec<String>,
    pub name: String,
    pub origin: Vec<String>,
    pub line: usize,
}

/// All items of one file.
#[derive(Debug, Default)]
pub struct Items {
    pub types: Vec<Named>,
    pub functions: Vec<Function>,
    /// Public items with whether each has a doc comment.
    pub public: Vec<(Named, bool)>,
    pub re_exports: Vec<ReExport>,
}

/// Errors: the file is not Rust.
pub fn items_of(file: &File) -> Result<Items, String> {
    let parsed = syn::parse_file(&file.text).map_err(|error| format!("{}: {error}", file.path))?;
    let module = crate::paths::module_of(&file.path);
    let mut reader = Reader { file, module, items: Items::default(), in_type: false };
    reader.visit_file(&parsed);
    Ok(reader.items)
}

/// Whether an item has `#[cfg(test)]`.
pub fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        attribute.path().is_ident("cfg") && list.tokens.to_string() == "test"
    })
}

/// Whether a file holds only tests, which a parent declares with `#[cfg(test)] mod tests;`.
pub fn is_test_file(file: &File) -> bool {
    file.path.ends_with("/tests.rs") || file.path.contains("/tests/")
}

/// `bool`, or a `Result` or `Option` of it.
fn is_bool(output: &syn::Type) -> bool {
    let syn::Type::Path(path) = output else { return false };
    let Some(last) = path.path.segments.last() else { return false };
    match &last.arguments {
        syn::PathArguments::AngleBracketed(inner) if last.ident == "Result" || last.ident == "Option" => {
            matches!(inner.args.first(), Some(syn::GenericArgument::Type(inner)) if is_bool(inner))
        }
        _ => last.ident == "bool",
    }
}

struct Reader<'a> {
    file: &'a File,
    module: Vec<String>,
    items: Items,
    in_type: bool,
}

impl Reader<'_> {
    fn named(&self, ident: &proc_macro2::Ident) -> Named {
        Named { name: ident.to_string(), path: self.file.path.clone(), line: ident.span().start().line }
    }

    fn type_item(&mut self, ident: &proc_macro2::Ident, visibility: &syn::Visibility, attributes: &[syn::Attribute]) {
        self.items.types.push(self.named(ident));
        self.public_item(ident, visibility, attributes);
    }

    fn public_item(&mut self, ident: &proc_macro2::Ident, visibility: &syn::Visibility, attributes: &[syn::Attribute]) {
        if matches!(visibility, syn::Visibility::Public(_)) {
            let documented = attributes.iter().any(|attribute| attribute.path().is_ident("doc"));
            self.items.public.push((self.named(ident), documented));
        }
    }

    fn function(&mut self, signature: &syn::Signature, span: Span) {
        let returns_bool = match &signature.output {
            syn::ReturnType::Type(_, output) => is_bool(output),
            syn::ReturnType::Default => false,
        };
        let changes_self = signature
            .receiver()
            .is_some_and(|receiver| matches!(receiver.kind, syn::ReceiverKind::Reference(_, _, Some(_))));
        let (first, last) = (span.start().line, span.end().line);
        let lines = self.file.text.lines().skip(first - 1).take(last + 1 - first).map(str::trim);
        let code_lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count();
        let item = self.named(&signature.ident);
        self.items.functions.push(Function { item, is_free: !self.in_type, returns_bool, changes_self, code_lines });
    }

    fn within_type(&mut self, read: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.in_type, true);
        read(self);
        self.in_type = outer;
    }

    fn re_export(&mut self, tree: &syn::UseTree, prefix: &[String]) {
        let with = |ident: &proc_macro2::Ident| [prefix, &[ident.to_string()]].concat();
        let (name, origin, span) = match tree {
            syn::UseTree::Path(path) => return self.re_export(&path.tree, &with(&path.ident)),
            syn::UseTree::Group(group) => return group.items.iter().for_each(|item| self.re_export(item, prefix)),
            syn::UseTree::Name(name) if name.ident == "self" => {
                (prefix.last().cloned().unwrap_or_default(), prefix.to_vec(), name.ident.span())
            }
            syn::UseTree::Name(name) => (name.ident.to_string(), with(&name.ident), name.ident.span()),
            syn::UseTree::Rename(rename) => (rename.rename.to_string(), with(&rename.ident), rename.ident.span()),
            syn::UseTree::Glob(glob) => ("*".to_owned(), prefix.to_vec(), glob.span()),
        };
        let origin = crate::paths::below_crate(&self.module, origin);
        let line = span.start().line;
        self.items.re_exports.push(ReExport { module: self.module.clone(), name, origin, line });
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_test_only(&item.attrs) {
            return;
        }
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !matches!(item.vis, syn::Visibility::Inherited) {
            self.re_export(&item.tree, &[]);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.type_item(&item.ident, &item.vis, &item.attrs);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.type_item(&item.ident, &item.vis, &item.attrs);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.type_item(&item.ident, &item.vis, &item.attrs);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.type_item(&item.ident, &item.vis, &item.attrs);
        self.within_type(|reader| visit::visit_item_trait(reader, item));
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.public_item(&item.ident, &item.vis, &item.attrs);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.public_item(&item.ident, &item.vis, &item.attrs);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_test_only(&item.attrs) {
            self.within_type(|reader| visit::visit_item_impl(reader, item));
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if is_test_only(&item.attrs) {
            return;
        }
        self.public_item(&item.sig.ident, &item.vis, &item.attrs);
        self.function(&item.sig, item.span());
        visit::visit_block(self, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_test_only(&item.attrs) {
            return;
        }
        self.public_item(&item.sig.ident, &item.vis, &item.attrs);
        self.function(&item.sig, item.span());
        visit::visit_block(self, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.sig, item.span());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_and_tests_are_left_out() {
        let code = "
            /// A frame.
            pub struct Frame;
            pub enum Kind {}
            pub use self::codec::{Codec, Reader as FrameReader};
            fn decode() {
                // nothing yet

                let a = 1;
            }
            impl Frame {
                pub fn is_whole(&mut self) -> bool { true }
            }
            #[cfg(test)]
            mod tests { struct Hidden; fn hidden() {} }
        ";
        let items = items_of(&File::of("src/wire/frames.rs", code)).unwrap();
        let types: Vec<&str> = items.types.iter().map(|it| &*it.name).collect();
        assert_eq!(types, ["Frame", "Kind"]);
        let public: Vec<(&str, bool)> = items.public.iter().map(|(it, documented)| (&*it.name, *documented)).collect();
        assert_eq!(public, [("Frame", true), ("Kind", false), ("is_whole", false)]);
        let functions: Vec<_> = items
            .functions
            .iter()
            .map(|it| (&*it.item.name, it.is_free, it.returns_bool, it.changes_self, it.code_lines))
            .collect();
        assert_eq!(functions, [("decode", true, false, false, 3), ("is_whole", false, true, true, 1)]);
        let exports: Vec<_> = items.re_exports.iter().map(|it| (&*it.name, it.origin.join("::"))).collect();
        let origin = |name: &str| format!("wire::frames::codec::{name}");
        assert_eq!(exports, [("Codec", origin("Codec")), ("FrameReader", origin("Reader"))]);
    }
}
