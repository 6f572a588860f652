//! The types and functions that ship; test modules are left out.
//!
//! Depends on the syntax only; holds no rule.

use syn::visit::{self, Visit};

use crate::sources::File;

/// A named item and where it stands.
#[derive(Debug)]
pub struct Named {
    pub name: String,
    pub path: String,
    pub line: usize,
}

/// A function, with what the rules need.
#[derive(Debug)]
pub struct Function {
    pub item: Named,
    /// Neither in an `impl` nor in a trait.
    pub is_free: bool,
    /// Returns `bool`, or a `Result` or `Option` of it; also as the output of an `async fn`.
    pub returns_bool: bool,
    /// Takes `&mut self`.
    pub changes_self: bool,
}

/// All items of one file.
#[derive(Debug, Default)]
pub struct Items {
    pub types: Vec<Named>,
    pub functions: Vec<Function>,
}

/// Errors: the file is not Rust.
pub fn items_of(file: &File) -> Result<Items, String> {
    let parsed = syn::parse_file(&file.text).map_err(|error| format!("{}: {error}", file.path))?;
    let mut reader = Reader { file, items: Items::default(), in_type: false };
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
    items: Items,
    in_type: bool,
}

impl Reader<'_> {
    fn named(&self, ident: &proc_macro2::Ident) -> Named {
        Named { name: ident.to_string(), path: self.file.path.clone(), line: ident.span().start().line }
    }

    fn function(&mut self, signature: &syn::Signature) {
        let returns_bool = match &signature.output {
            syn::ReturnType::Type(_, output) => is_bool(output),
            syn::ReturnType::Default => false,
        };
        let changes_self = signature
            .receiver()
            .is_some_and(|receiver| matches!(receiver.kind, syn::ReceiverKind::Reference(_, _, Some(_))));
        let item = self.named(&signature.ident);
        self.items.functions.push(Function { item, is_free: !self.in_type, returns_bool, changes_self });
    }

    fn within_type(&mut self, read: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.in_type, true);
        read(self);
        self.in_type = outer;
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test_only(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.items.types.push(self.named(&item.ident));
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.items.types.push(self.named(&item.ident));
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.items.types.push(self.named(&item.ident));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.items.types.push(self.named(&item.ident));
        self.within_type(|reader| visit::visit_item_trait(reader, item));
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
        self.function(&item.sig);
        visit::visit_block(self, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_test_only(&item.attrs) {
            return;
        }
        self.function(&item.sig);
        visit::visit_block(self, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.sig);
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
        let functions: Vec<_> =
            items.functions.iter().map(|it| (&*it.item.name, it.is_free, it.returns_bool, it.changes_self)).collect();
        assert_eq!(functions, [("decode", true, false, false), ("is_whole", false, true, true)]);
    }
}
