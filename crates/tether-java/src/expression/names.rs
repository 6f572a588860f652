//! Names and what is behind their dots: variables, fields, classes, methods of the frame's own class.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_jdwp::commands::objects::ArrayLength;
use tether_jdwp::values::{JdwpValue, ObjectId};

use super::arithmetic::{promote, type_word};
use super::calls::CallReceiver;
use super::evaluator::{Evaluator, on_heap};
use super::operand::Operand;
use super::overloads::find_candidates;
use super::scope::{MAX_OUTER, VariablePlace};
use super::syntax::JavaExpression;
use super::{conversion, operations};
use crate::java_vm::{JavaClass, STATIC};

/// What the beginning of a name stands for.
pub(crate) enum NamePrefix {
    Value(Operand),
    Class(Arc<JavaClass>),
    /// The beginning of a class's whole name.
    Package(String),
}

impl Evaluator<'_> {
    /// What a name, or the part of it before the last dot, stands for.
    pub(crate) fn resolve_prefix<'b>(
        &'b mut self,
        expression: &'b JavaExpression,
    ) -> BoxFuture<'b, Answer<NamePrefix>> {
        Box::pin(async move {
            match expression {
                JavaExpression::Name(name) => {
                    if let Some(place) = on_heap(|| self.find_variable(name)).await? {
                        return on_heap(|| self.read_place(&place)).await.map(NamePrefix::Value);
                    }
                    let class = on_heap(|| self.find_class(name)).await?;
                    Ok(class.map_or_else(|| NamePrefix::Package(name.clone()), NamePrefix::Class))
                }
                JavaExpression::Member(inner, name) => match self.resolve_prefix(inner).await? {
                    NamePrefix::Value(operand) => {
                        on_heap(|| self.read_member(operand, name)).await.map(NamePrefix::Value)
                    }
                    NamePrefix::Class(class) => on_heap(|| self.resolve_member_of_class(&class, name)).await,
                    NamePrefix::Package(package) => {
                        let whole = format!("{package}.{name}");
                        let class = on_heap(|| self.find_class(&whole)).await?;
                        Ok(class.map_or(NamePrefix::Package(whole), NamePrefix::Class))
                    }
                },
                other => operations::evaluate(self, other).await.map(NamePrefix::Value),
            }
        })
    }

    async fn resolve_member_of_class(&mut self, class: &Arc<JavaClass>, name: &str) -> Answer<NamePrefix> {
        match self.session.vm.find_field(class, name).await? {
            Some(found) if found.field.modifiers & STATIC != 0 => {
                let place = VariablePlace::Static(found);
                on_heap(|| self.read_place(&place)).await.map(NamePrefix::Value)
            }
            Some(_) => Err(format!("{name} is not a static field of {}", class.name()).into()),
            None => {
                let nested = format!("{}${name}", class.name());
                let nested = on_heap(|| self.find_class(&nested)).await?;
                nested.map(NamePrefix::Class).ok_or_else(|| conversion::member_error(&class.signature, name))
            }
        }
    }

    async fn read_member(&mut self, operand: Operand, name: &str) -> Answer<Operand> {
        let place = match on_heap(|| self.member_place(operand, name)).await? {
            Ok(place) => place,
            Err(length) => return Ok(Operand::of(JdwpValue::Int(length))),
        };
        on_heap(|| self.read_place(&place)).await
    }

    /// A field of a value; the length of an array instead of its `length`.
    async fn member_place(&mut self, operand: Operand, name: &str) -> Answer<Result<VariablePlace, i32>> {
        let declared = if let Operand::Value { declared, .. } = &operand { declared.clone() } else { None };
        let value = on_heap(|| conversion::materialize(self, operand)).await?;
        let JdwpValue::Object(object) = value else {
            return Err(format!("a {} has no field {name}", type_word(value)).into());
        };
        if object.id.is_null() {
            return Err(conversion::null_error(&format!("read the field {name}")));
        }
        let vm = &self.session.vm;
        let own = vm.class_of(object.id).await?;
        if own.signature.starts_with('[') && name == "length" {
            return Ok(Err(vm.request(&ArrayLength { array: object.id }).await?));
        }
        // A field that is declared again hides that of the superclass.
        let class = match declared {
            Some(declared) => vm.classes_by_signature(&declared).await?.into_iter().next().unwrap_or(own),
            None => own,
        };
        let mut found = vm.find_field(&class, name).await?;
        if found.is_none() {
            let own = vm.class_of(object.id).await?;
            found = vm.find_field(&own, name).await?;
        }
        let found = found.ok_or_else(|| conversion::member_error(&class.signature, name))?;
        Ok(Ok(match found.field.modifiers & STATIC {
            0 => VariablePlace::Instance { object: object.id, found },
            _ => VariablePlace::Static(found),
        }))
    }

    /// What an expression that can be assigned to stands for.
    pub(crate) async fn find_place(&mut self, expression: &JavaExpression) -> Answer<VariablePlace> {
        match expression {
            JavaExpression::Name(name) => {
                let found = on_heap(|| self.find_variable(name)).await?;
                found.ok_or_else(|| RequestFailure(format!("there is no variable {name} here")))
            }
            JavaExpression::Member(inner, name) => match self.resolve_prefix(inner).await? {
                NamePrefix::Value(operand) => {
                    let place = on_heap(|| self.member_place(operand, name)).await?;
                    place.map_err(|_| "the length of an array cannot be assigned".into())
                }
                NamePrefix::Class(class) => {
                    let found = self.session.vm.find_field(&class, name).await?;
                    let found = found.filter(|found| found.field.modifiers & STATIC != 0);
                    found.map(VariablePlace::Static).ok_or_else(|| conversion::member_error(&class.signature, name))
                }
                NamePrefix::Package(package) => Err(format!("there is no variable or class {package} here").into()),
            },
            JavaExpression::Element(array, index) => {
                let array = operations::evaluate(self, array).await?;
                let index = operations::evaluate(self, index).await?;
                on_heap(|| self.element_place(&array, &index)).await
            }
            _ => Err("only a variable, a field or an element can be assigned".into()),
        }
    }

    async fn element_place(&mut self, array: &Operand, index: &Operand) -> Answer<VariablePlace> {
        let Some(JdwpValue::Int(index)) = promote(conversion::unbox(self, index).await?) else {
            return Err("the index of an array is an int".into());
        };
        let Some(value) = array.value().filter(|value| matches!(value, JdwpValue::Object(_))) else {
            return Err("only an array has elements".into());
        };
        let object = value.as_object().ok_or_else(|| conversion::null_error("read an element"))?;
        let class = self.session.vm.class_of(object.id).await?;
        let Some(element) = class.signature.strip_prefix('[') else {
            return Err(format!("{} is not an array", class.name()).into());
        };
        let length = self.session.vm.request(&ArrayLength { array: object.id }).await?;
        if !(0..length).contains(&index) {
            let thrown = "java.lang.ArrayIndexOutOfBoundsException";
            return Err(format!("{thrown}: Index {index} out of bounds for length {length}").into());
        }
        Ok(VariablePlace::Element { array: object.id, index, element: element.to_owned() })
    }

    /// A call of a method.
    pub(crate) async fn evaluate_call(
        &mut self,
        receiver: Option<&JavaExpression>,
        name: &str,
        arguments: &[JavaExpression],
    ) -> Answer<Operand> {
        let Some(receiver) = receiver else { return on_heap(|| self.evaluate_own_call(name, arguments)).await };
        match self.resolve_prefix(receiver).await? {
            NamePrefix::Value(operand) => {
                let value = on_heap(|| conversion::materialize(self, operand)).await?;
                let JdwpValue::Object(object) = value else {
                    return Err(format!("a {} has no methods", type_word(value)).into());
                };
                if object.id.is_null() {
                    return Err(conversion::null_error(&format!("call {name}")));
                }
                let class = self.session.vm.class_of(object.id).await?;
                let arguments = operations::evaluate_all(self, arguments).await?;
                on_heap(|| self.call_method(CallReceiver::Object(object.id), &class, name, arguments)).await
            }
            NamePrefix::Class(class) => {
                let arguments = operations::evaluate_all(self, arguments).await?;
                on_heap(|| self.call_method(CallReceiver::Class, &class, name, arguments)).await
            }
            NamePrefix::Package(package) => Err(format!("there is no variable or class {package} here").into()),
        }
    }

    /// A method of the frame's class, or of a class around it.
    async fn evaluate_own_call(&mut self, name: &str, arguments: &[JavaExpression]) -> Answer<Operand> {
        let mut object: Option<ObjectId> = self.this_object().await?;
        let mut class = self.frame().await?.class;
        for _ in 0..MAX_OUTER {
            // A method of the object's own class overrides one of the frame's.
            let of = match object {
                Some(object) => self.session.vm.class_of(object).await?,
                None => Arc::clone(&class),
            };
            if !find_candidates(&self.session.vm, &of, name).await?.is_empty() {
                let arguments = operations::evaluate_all(self, arguments).await?;
                let receiver = object.map_or(CallReceiver::Class, CallReceiver::Object);
                return on_heap(|| self.call_method(receiver, &of, name, arguments)).await;
            }
            match self.outer_of(object, &class).await? {
                Some((outer, outer_class)) => (object, class) = (outer, outer_class),
                None => break,
            }
        }
        Err(format!("there is no method {name} here").into())
    }
}
