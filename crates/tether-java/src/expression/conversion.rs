//! Boxing and unboxing, casts, assignments, and the texts of values in a concatenation.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_jdwp::commands::objects::StringValue;
use tether_jdwp::commands::virtual_machine::CreateString;
use tether_jdwp::values::{JdwpValue, TaggedObject};

use super::arithmetic::{convert_number, is_widened};
use super::calls::CallReceiver;
use super::evaluator::Evaluator;
use super::operand::{Operand, box_of, unboxed};
use super::overloads::is_subtype;
use crate::collection_pages::ObjectFields;
use crate::signatures::{class_signature, short_type_name, type_name};
use crate::value_text::primitive_text;

/// A new string of the program.
pub(crate) async fn create_string(evaluator: &mut Evaluator<'_>, text: &str) -> Answer<JdwpValue> {
    let id = evaluator.session.vm.request(&CreateString { text: text.to_owned() }).await?;
    let value = JdwpValue::Object(TaggedObject { tag: b's', id });
    evaluator.keep(value).await?;
    Ok(value)
}

/// The value in the program.
pub(crate) async fn materialize(evaluator: &mut Evaluator<'_>, operand: Operand) -> Answer<JdwpValue> {
    match operand {
        Operand::Value { value, .. } => Ok(value),
        Operand::Text(text) => create_string(evaluator, &text).await,
    }
}

/// The primitive value in a box; what is no box stays.
pub(crate) async fn unbox(evaluator: &mut Evaluator<'_>, operand: &Operand) -> Answer<JdwpValue> {
    let Some(value) = operand.value() else { return Err("a text is not a number".into()) };
    let Some(object) = value.as_object() else {
        let is_null_box = matches!(operand, Operand::Value { declared: Some(it), .. } if unboxed(it).is_some());
        return match value.is_null() && is_null_box {
            true => Err("java.lang.NullPointerException: a box that is null has no value".into()),
            false => Ok(value),
        };
    };
    let class = evaluator.session.vm.class_of(object.id).await?;
    if unboxed(&class.signature).is_none() {
        return Ok(value);
    }
    let fields = ObjectFields { vm: &evaluator.session.vm, object: object.id, class: &class };
    let inner = fields.read(["value"]).await?;
    Ok(inner.map_or(value, |[inner]| inner))
}

/// A primitive value in its box; an object stays. Boxed: boxing calls a method, whose arguments may be boxed.
pub(crate) fn box_value<'b>(evaluator: &'b mut Evaluator<'_>, value: JdwpValue) -> BoxFuture<'b, Answer<JdwpValue>> {
    Box::pin(async move {
        let Some(boxed) = box_of(value.tag()).filter(|_| !matches!(value, JdwpValue::Object(_))) else {
            return Ok(value);
        };
        let class = evaluator.session.vm.classes_by_signature(boxed).await?.into_iter().next();
        let class = class.ok_or_else(|| RequestFailure(format!("there is no class {}", type_name(boxed))))?;
        let arguments = vec![Operand::of(value)];
        let boxed = evaluator.call_method(CallReceiver::Class, &class, "valueOf", arguments).await?;
        materialize(evaluator, boxed).await
    })
}

/// The value as one of that type, as an assignment or a call converts it. Errors: it needs a cast.
pub(crate) async fn convert_for_assignment(
    evaluator: &mut Evaluator<'_>,
    operand: Operand,
    signature: &str,
) -> Answer<JdwpValue> {
    if let [tag] = signature.as_bytes() {
        let value = unbox(evaluator, &operand).await?;
        let fits = is_widened(value.tag(), *tag) || is_small_constant(value, *tag);
        let converted = Some(value).filter(|_| fits).and_then(|value| convert_number(value, *tag));
        return converted.ok_or_else(|| {
            let from = super::arithmetic::type_word(value);
            RequestFailure(format!("cannot assign {from} to {} without a cast", type_name(signature)))
        });
    }
    let mut value = materialize(evaluator, operand).await?;
    if !matches!(value, JdwpValue::Object(_)) {
        // A constant is boxed as the type that is wanted.
        if let Some(tag) = unboxed(signature).filter(|tag| is_small_constant(value, *tag)) {
            value = convert_number(value, tag).unwrap_or(value);
        }
        value = box_value(evaluator, value).await?;
    }
    let Some(object) = value.as_object() else { return Ok(JdwpValue::NULL) };
    let class = evaluator.session.vm.class_of(object.id).await?;
    match is_subtype(&evaluator.session.vm, &class, signature).await? {
        true => Ok(value),
        false => Err(format!("cannot convert {} to {}", class.name(), type_name(signature)).into()),
    }
}

/// A cast. Errors: the one that the program would throw, or that the compiler would report.
pub(crate) async fn cast(evaluator: &mut Evaluator<'_>, operand: Operand, class_name: &str) -> Answer<Operand> {
    let signature = class_signature(class_name);
    if let [tag] = signature.as_bytes() {
        let value = unbox(evaluator, &operand).await?;
        let converted = convert_number(value, *tag);
        let from = super::arithmetic::type_word(value);
        return converted.map(Operand::of).ok_or_else(|| format!("cannot cast {from} to {class_name}").into());
    }
    let class = evaluator.require_class(class_name).await?;
    let value = materialize(evaluator, operand).await?;
    let value = box_value(evaluator, value).await?;
    let Some(object) = value.as_object() else { return Ok(Operand::declared(value, &class.signature)) };
    let own = evaluator.session.vm.class_of(object.id).await?;
    if is_subtype(&evaluator.session.vm, &own, &class.signature).await? {
        return Ok(Operand::declared(value, &class.signature));
    }
    let (own, class) = (own.name(), class.name());
    Err(format!("java.lang.ClassCastException: class {own} cannot be cast to class {class}").into())
}

/// Whether a value is an object of that class.
pub(crate) async fn test_instance(evaluator: &mut Evaluator<'_>, operand: Operand, class_name: &str) -> Answer<bool> {
    let class = evaluator.require_class(class_name).await?;
    if let Operand::Text(_) = operand {
        let string = evaluator.session.vm.classes_by_signature("Ljava/lang/String;").await?.into_iter().next();
        let string: Arc<_> = string.ok_or("there is no class java.lang.String")?;
        return Ok(is_subtype(&evaluator.session.vm, &string, &class.signature).await?);
    }
    match operand.value() {
        Some(JdwpValue::Object(object)) if object.id.is_null() => Ok(false),
        Some(JdwpValue::Object(object)) => {
            let own = evaluator.session.vm.class_of(object.id).await?;
            Ok(is_subtype(&evaluator.session.vm, &own, &class.signature).await?)
        }
        _ => Err("`instanceof` takes an object, and not a primitive value".into()),
    }
}

/// Whether it is a string, as far as concatenation is concerned.
pub(crate) fn is_text(operand: &Operand) -> bool {
    match operand {
        Operand::Text(_) => true,
        Operand::Value { value: JdwpValue::Object(object), declared } => {
            object.tag == b's' || declared.as_deref() == Some("Ljava/lang/String;")
        }
        Operand::Value { .. } => false,
    }
}

/// The text of a value in a concatenation: of an object what its `toString` returns.
pub(crate) async fn text_of(evaluator: &mut Evaluator<'_>, operand: Operand) -> Answer<String> {
    let value = match operand {
        Operand::Text(text) => return Ok(text),
        Operand::Value { value, .. } => value,
    };
    match value {
        JdwpValue::Void => Err("a method that returns nothing has no value".into()),
        JdwpValue::Char(unit) => Ok(String::from_utf16_lossy(&[unit])),
        // The digits differ between versions of Java.
        JdwpValue::Float(_) | JdwpValue::Double(_) => {
            let string = evaluator.session.vm.classes_by_signature("Ljava/lang/String;").await?.into_iter().next();
            let string = string.ok_or("there is no class java.lang.String")?;
            let arguments = vec![Operand::of(value)];
            let text = evaluator.call_method(CallReceiver::Class, &string, "valueOf", arguments).await?;
            string_value(evaluator, &text).await
        }
        JdwpValue::Object(object) if object.id.is_null() => Ok("null".to_owned()),
        JdwpValue::Object(object) if object.tag == b's' => {
            Ok(evaluator.session.vm.request(&StringValue { string: object.id }).await?)
        }
        JdwpValue::Object(object) => {
            let class = evaluator.session.vm.class_of(object.id).await?;
            let receiver = CallReceiver::Object(object.id);
            let text = evaluator.call_method(receiver, &class, "toString", Vec::new()).await?;
            string_value(evaluator, &text).await
        }
        primitive => Ok(primitive_text(primitive)),
    }
}

async fn string_value(evaluator: &mut Evaluator<'_>, operand: &Operand) -> Answer<String> {
    match operand.value().and_then(JdwpValue::as_object) {
        Some(object) => Ok(evaluator.session.vm.request(&StringValue { string: object.id }).await?),
        None => Ok("null".to_owned()),
    }
}

/// The error of an operation on `null`.
pub(crate) fn null_error(doing: &str) -> RequestFailure {
    RequestFailure(format!("java.lang.NullPointerException: cannot {doing} of null"))
}

/// The error of a member that a type does not have.
pub(crate) fn member_error(signature: &str, name: &str) -> RequestFailure {
    RequestFailure(format!("{} has no field {name}", short_type_name(signature)))
}

/// Whether a whole number is assigned to a smaller type without a cast: as the compiler does with constants that fit.
fn is_small_constant(value: JdwpValue, tag: u8) -> bool {
    let JdwpValue::Int(number) = value else { return false };
    match tag {
        b'B' => i8::try_from(number).is_ok(),
        b'S' => i16::try_from(number).is_ok(),
        b'C' => u16::try_from(number).is_ok(),
        _ => false,
    }
}
