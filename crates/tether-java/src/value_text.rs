//! Values as people read them. No code of the program runs: what an object shows is read from its fields.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tether_base::clipped_text::{first_chars, whole_length};
use tether_jdwp::JdwpError;
use tether_jdwp::commands::objects::{ArrayLength, StringValue};
use tether_jdwp::commands::reference_types::ReflectedType;
use tether_jdwp::values::{JdwpValue, ObjectId, TaggedObject};

use super::collection_pages::{Contents, ObjectFields};
use super::collections::find_contents;
use super::java_vm::{JavaClass, JavaVm, STATIC};
use super::signatures::{short_type_name, type_name};

/// The longest text of a string that is shown among others, in characters.
const MAX_SHOWN: usize = 1000;
/// How many values inside of each other are shown; what is deeper is `…`.
const MAX_NESTED: usize = 8;

/// A value with what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct ShownValue {
    pub text: String,
    /// `java.lang.String`; of `null` the declared type.
    pub type_name: String,
    pub children: Children,
}

/// What can be opened below a value.
#[derive(Clone, Debug)]
pub(crate) enum Children {
    None,
    /// The object's fields.
    Fields(TaggedObject),
    /// Elements of an array.
    Elements {
        array: ObjectId,
        length: usize,
    },
    /// Elements of a collection or a map.
    Contents(Contents),
}

/// The classes whose only field is shown as their value.
const VALUE_CLASSES: &[(&str, &str)] = &[
    ("Ljava/lang/Boolean;", "value"),
    ("Ljava/lang/Byte;", "value"),
    ("Ljava/lang/Character;", "value"),
    ("Ljava/lang/Short;", "value"),
    ("Ljava/lang/Integer;", "value"),
    ("Ljava/lang/Long;", "value"),
    ("Ljava/lang/Float;", "value"),
    ("Ljava/lang/Double;", "value"),
    ("Ljava/util/concurrent/atomic/AtomicInteger;", "value"),
    ("Ljava/util/concurrent/atomic/AtomicLong;", "value"),
];

impl JavaVm {
    /// A value as it is shown. `declared`: the signature of its variable.
    pub(crate) async fn show_value(&self, value: JdwpValue, declared: &str) -> Result<ShownValue, JdwpError> {
        self.show_nested(value, declared, 0).await
    }

    /// `depth`: how many values it is inside of.
    async fn show_nested(&self, value: JdwpValue, declared: &str, depth: usize) -> Result<ShownValue, JdwpError> {
        let plain = |text: String, type_name: String| ShownValue { text, type_name, children: Children::None };
        let JdwpValue::Object(object) = value else {
            let of = type_name(char::from(value.tag()).encode_utf8(&mut [0; 4]));
            return Ok(plain(primitive_text(value), of));
        };
        if object.id.is_null() {
            return Ok(plain("null".to_owned(), type_name(declared)));
        }
        if object.tag == b's' {
            let text = self.request(&StringValue { string: object.id }).await?;
            return Ok(plain(quote_text(&text, MAX_SHOWN), "java.lang.String".to_owned()));
        }
        let class = self.class_of(object.id).await?;
        self.show_object(object, &class, depth).await
    }

    /// A value inside of another one: of an object that may contain itself.
    fn show_inner_value(&self, value: JdwpValue, depth: usize) -> BoxFuture<'_, Result<ShownValue, JdwpError>> {
        Box::pin(self.show_nested(value, "Ljava/lang/Object;", depth))
    }

    async fn show_object(
        &self,
        object: TaggedObject,
        class: &Arc<JavaClass>,
        depth: usize,
    ) -> Result<ShownValue, JdwpError> {
        let (type_name, fields) = (class.name(), Children::Fields(object));
        let shown = |text: String, children: Children| ShownValue { text, type_name: type_name.clone(), children };
        if object.tag == b'[' || class.signature.starts_with('[') {
            let length = self.request(&ArrayLength { array: object.id }).await?;
            let length = usize::try_from(length).unwrap_or(0);
            let text = with_length(&short_type_name(&class.signature), length);
            return Ok(shown(text, Children::Elements { array: object.id, length }));
        }
        if let Some(text) = self.read_value_text(object.id, class, depth).await? {
            return Ok(shown(text, fields));
        }
        if object.tag == b'c' {
            let (tag, of) = self.request(&ReflectedType { class_object: object.id }).await?;
            return Ok(shown(format!("class {}", self.class(of, tag).await?.name()), fields));
        }
        if let Some(contents) = find_contents(self, object.id, class).await? {
            let text = format!("{} (size {})", class.short_name(), contents.size);
            return Ok(shown(text, Children::Contents(contents)));
        }
        Ok(shown(format!("{}@{:x}", class.short_name(), object.id.0), fields))
    }

    /// What an object of a known class stands for: a number, the name of an enum's constant, the text of a builder.
    async fn read_value_text(
        &self,
        object: ObjectId,
        class: &Arc<JavaClass>,
        depth: usize,
    ) -> Result<Option<String>, JdwpError> {
        let fields = ObjectFields { vm: self, object, class };
        if let Some((_, field)) = VALUE_CLASSES.iter().find(|(signature, _)| *signature == class.signature) {
            return Ok(fields.read([field]).await?.map(|[value]| primitive_text(value)));
        }
        let superclasses = self.superclasses(class).await?;
        if superclasses.iter().any(|it| it.signature == "Ljava/lang/Enum;") {
            return fields.read_text("name").await;
        }
        if superclasses.iter().any(|it| it.signature == "Ljava/lang/Thread;") {
            return Ok(fields.read_text("name").await?.map(|name| format!("Thread {name:?}")));
        }
        if superclasses.iter().any(|it| it.signature == "Ljava/lang/Throwable;") {
            let message = fields.read_text("detailMessage").await?;
            return Ok(Some(message.map_or(class.name(), |message| format!("{}: {message}", class.name()))));
        }
        match class.signature.as_str() {
            "Ljava/util/Optional;" => match fields.read(["value"]).await? {
                Some([value]) if value.is_null() => Ok(Some("Optional.empty".to_owned())),
                Some(_) if depth >= MAX_NESTED => Ok(Some("Optional[…]".to_owned())),
                Some([value]) => {
                    let inner = self.show_inner_value(value, depth.saturating_add(1)).await?;
                    Ok(Some(format!("Optional[{}]", inner.text)))
                }
                None => Ok(None),
            },
            "Ljava/util/concurrent/atomic/AtomicBoolean;" => {
                let value = fields.read(["value"]).await?;
                Ok(value.map(|[value]| if value == JdwpValue::Int(0) { "false" } else { "true" }.to_owned()))
            }
            _ => Ok(None),
        }
    }

    /// The message of an exception, or of the one that has caused it.
    pub(crate) async fn exception_message(&self, exception: ObjectId) -> Result<Option<String>, JdwpError> {
        let class = self.class_of(exception).await?;
        let fields = ObjectFields { vm: self, object: exception, class: &class };
        fields.read_text("detailMessage").await
    }

    /// The instance fields of an object, with their values: those of its own class first.
    pub(crate) async fn read_fields(
        &self,
        object: ObjectId,
    ) -> Result<Vec<(super::java_vm::FoundField, JdwpValue)>, JdwpError> {
        let class = self.class_of(object).await?;
        let mut fields = self.all_fields(&class).await?;
        fields.retain(|found| found.field.modifiers & STATIC == 0);
        let ids = fields.iter().map(|found| found.field.id).collect();
        let request = tether_jdwp::commands::objects::FieldValues { object, fields: ids };
        let values = if fields.is_empty() { Vec::new() } else { self.request(&request).await? };
        Ok(fields.into_iter().zip(values).collect())
    }
}

/// `int[3]`; of an array of arrays, the length of the outer one: `int[3][]`.
fn with_length(type_name: &str, length: usize) -> String {
    match type_name.split_once("[]") {
        Some((element, inner)) => format!("{element}[{length}]{inner}"),
        None => format!("{type_name}[{length}]"),
    }
}

/// A primitive value as Java prints it; a character in quotes.
pub(crate) fn primitive_text(value: JdwpValue) -> String {
    match value {
        JdwpValue::Void => "void".to_owned(),
        JdwpValue::Boolean(value) => value.to_string(),
        JdwpValue::Byte(value) => value.to_string(),
        JdwpValue::Char(unit) => {
            let letter = String::from_utf16_lossy(&[unit]);
            format!("'{}'", escape_text(&letter).replace('\'', "\\'").replace("\\\"", "\""))
        }
        JdwpValue::Short(value) => value.to_string(),
        JdwpValue::Int(value) => value.to_string(),
        JdwpValue::Long(value) => value.to_string(),
        JdwpValue::Float(value) => floating_text(f64::from(value), format!("{value}"), format!("{value:e}")),
        JdwpValue::Double(value) => floating_text(value, format!("{value}"), format!("{value:e}")),
        JdwpValue::Object(_) => "object".to_owned(),
    }
}

/// As `Double.toString`: with an exponent below 0.001 and from 10,000,000 on. `plain` and `scientific` are the shortest
/// digits that are this number.
fn floating_text(value: f64, plain: String, scientific: String) -> String {
    let with_fraction = |digits: &str| if digits.contains('.') { digits.to_owned() } else { format!("{digits}.0") };
    match value {
        _ if value.is_nan() => "NaN".to_owned(),
        _ if value.is_infinite() => if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        _ if value == 0.0 || (1e-3..1e7).contains(&value.abs()) => with_fraction(&plain),
        _ => {
            let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
            format!("{}E{exponent}", with_fraction(digits))
        }
    }
}

/// A text in quotes, with escapes; cut after `most` characters.
pub(crate) fn quote_text(text: &str, most: usize) -> String {
    let first = first_chars(text, most);
    let rest = if first.len() < text.len() { whole_length(text) } else { String::new() };
    format!("\"{}\"{rest}", escape_text(first))
}

fn escape_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '"' | '\\' => escaped.extend(['\\', letter]),
            _ if letter.is_control() => escaped.push_str(&format!("\\u{:04x}", u32::from(letter))),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted_vm::{id, open_scripted_vm, text};
    use crate::small_stack::run_on_small_stack;
    use JdwpValue as V;

    #[test]
    fn numbers_are_written_as_java_prints_them() {
        for (value, expect) in [
            (V::Double(1.0), "1.0"),
            (V::Double(0.1), "0.1"),
            (V::Double(1e7), "1.0E7"),
            (V::Double(12345678.9), "1.23456789E7"),
            (V::Double(1234567.0), "1234567.0"),
            (V::Double(0.001), "0.001"),
            (V::Double(0.0001), "1.0E-4"),
            (V::Double(-0.0), "-0.0"),
            (V::Double(f64::NAN), "NaN"),
            (V::Double(f64::NEG_INFINITY), "-Infinity"),
            (V::Float(0.1), "0.1"),
            (V::Float(1.5e10), "1.5E10"),
            (V::Char(97), "'a'"),
            (V::Char(10), "'\\n'"),
            (V::Char(39), "'\\''"),
            (V::Char(34), "'\"'"),
            (V::Byte(-1), "-1"),
            (V::Boolean(true), "true"),
        ] {
            assert_eq!(primitive_text(value), expect, "{value:?}");
        }
    }

    /// A class `Optional` whose only field is an object, which is the `Optional` itself.
    fn endless(set: u8, number: u8, _: &[u8]) -> Result<Vec<u8>, u16> {
        match (set, number) {
            (9, 1) => Ok([vec![1], id(1)].concat()),
            (2, 1) => Ok(text("Ljava/util/Optional;")),
            (3, 1) => Ok(id(0)),
            (2, 10) => Ok(vec![0; 4]),
            (2, 14) => {
                let field = [id(3), text("value"), text("Ljava/lang/Object;"), text(""), vec![0; 4]].concat();
                Ok([vec![0, 0, 0, 1], field].concat())
            }
            (9, 2) => Ok([vec![0, 0, 0, 1, b'L'], id(9)].concat()),
            _ => Err(99),
        }
    }

    #[test]
    fn values_inside_of_each_other_are_shown_to_a_depth() {
        run_on_small_stack(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let shown = runtime.block_on(async {
                let (vm, _) = open_scripted_vm(endless).await;
                let value = V::Object(TaggedObject { tag: b'L', id: ObjectId(9) });
                vm.show_value(value, "Ljava/lang/Object;").await.unwrap()
            });
            let expect = format!("{}Optional[…]{}", "Optional[".repeat(MAX_NESTED), "]".repeat(MAX_NESTED));
            assert_eq!(shown.text, expect);
        });
    }

    #[test]
    fn texts_are_quoted_and_cut() {
        assert_eq!(quote_text("a\"b\\\n\u{1}ä", 100), "\"a\\\"b\\\\\\n\\u0001ä\"");
        assert_eq!(quote_text("äöü", 2), "\"äö\"… (3 characters)");
        assert_eq!(with_length("int[][]", 3), "int[3][]");
    }
}
