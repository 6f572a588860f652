//! The evaluation of each form of expression.

use futures_util::future::BoxFuture;
use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_jdwp::commands::reference_types::ClassObject;
use tether_jdwp::values::{JdwpValue, ObjectId, TaggedObject};

use super::arithmetic::{apply_binary, apply_unary, convert_number, promote};
use super::calls::CallReceiver;
use super::evaluator::{Evaluator, on_heap};
use super::names::NamePrefix;
use super::operand::Operand;
use super::scope::VariablePlace;
use super::syntax::{BinaryOperator, JavaExpression, UnaryOperator};
use super::{arrays, conversion};
use crate::session::{FrameSpot, JavaSession};
use crate::signatures::class_signature;

/// The value of an expression in a frame; an object of it is kept until the program runs on.
pub(crate) async fn evaluate_in(
    session: &JavaSession,
    spot: FrameSpot,
    expression: &JavaExpression,
) -> Answer<Operand> {
    evaluate_and_release(Evaluator::new(session, spot), expression).await
}

/// As [`evaluate_in`], without running code of the program: no call, no class that is loaded, no assignment.
/// Errors: it would need that.
pub(crate) async fn look_in(session: &JavaSession, spot: FrameSpot, expression: &JavaExpression) -> Answer<Operand> {
    evaluate_and_release(Evaluator::new(session, spot).without_code(), expression).await
}

async fn evaluate_and_release(mut evaluator: Evaluator<'_>, expression: &JavaExpression) -> Answer<Operand> {
    let result = evaluate(&mut evaluator, expression).await;
    let value = result.as_ref().ok().and_then(Operand::value);
    evaluator.release(value).await;
    result
}

/// The primitive value of a condition.
pub(crate) async fn evaluate_once(
    session: &JavaSession,
    spot: FrameSpot,
    expression: &JavaExpression,
) -> Answer<JdwpValue> {
    let mut evaluator = Evaluator::new(session, spot);
    let result = match evaluate(&mut evaluator, expression).await {
        Ok(operand) => conversion::unbox(&mut evaluator, &operand).await,
        Err(failure) => Err(failure),
    };
    evaluator.release(None).await;
    result
}

/// The text of a value, as Java would print it.
pub(crate) async fn evaluate_text(
    session: &JavaSession,
    spot: FrameSpot,
    expression: &JavaExpression,
) -> Answer<String> {
    let mut evaluator = Evaluator::new(session, spot);
    let result = match evaluate(&mut evaluator, expression).await {
        Ok(operand) => conversion::text_of(&mut evaluator, operand).await,
        Err(failure) => Err(failure),
    };
    evaluator.release(None).await;
    result
}

/// Assigns the value of an expression to a variable or a field; returns what it has then.
pub(crate) async fn assign_in(
    session: &JavaSession,
    spot: FrameSpot,
    place: VariablePlace,
    expression: &JavaExpression,
) -> Answer<Operand> {
    let mut evaluator = Evaluator::new(session, spot);
    let assigned = async {
        let operand = evaluate(&mut evaluator, expression).await?;
        let value = conversion::convert_for_assignment(&mut evaluator, operand, place.signature()).await?;
        evaluator.write_place(&place, value).await?;
        evaluator.read_place(&place).await
    };
    let result = assigned.await;
    let value = result.as_ref().ok().and_then(Operand::value);
    evaluator.release(value).await;
    result
}

/// The value of an expression in a frame, as one of that type.
pub(crate) async fn convert_in(
    session: &JavaSession,
    spot: FrameSpot,
    expression: &JavaExpression,
    signature: &str,
) -> Answer<JdwpValue> {
    let mut evaluator = Evaluator::new(session, spot);
    let converted = async {
        let operand = evaluate(&mut evaluator, expression).await?;
        conversion::convert_for_assignment(&mut evaluator, operand, signature).await
    };
    let result = converted.await;
    evaluator.release(result.as_ref().ok().copied()).await;
    result
}

/// The value of an expression.
pub(crate) fn evaluate<'b>(
    evaluator: &'b mut Evaluator<'_>,
    expression: &'b JavaExpression,
) -> BoxFuture<'b, Answer<Operand>> {
    use JavaExpression as E;
    // Not in one block: each level of an expression would have a stack frame with room for all forms.
    match expression {
        E::Literal(value) => Box::pin(std::future::ready(Ok(Operand::of(*value)))),
        E::Text(text) => Box::pin(std::future::ready(Ok(Operand::Text(text.clone())))),
        E::This => Box::pin(evaluate_this(evaluator)),
        E::Name(_) | E::Member(..) => Box::pin(evaluate_name(evaluator, expression)),
        E::Element(..) => Box::pin(evaluate_element(evaluator, expression)),
        E::Call { receiver, name, arguments } => {
            Box::pin(evaluator.evaluate_call(receiver.as_deref(), name, arguments))
        }
        E::New { class, arguments } => Box::pin(evaluate_new(evaluator, class, arguments)),
        E::NewArray { element, dimensions, lengths, elements } => {
            Box::pin(arrays::evaluate_new_array(evaluator, element, *dimensions, lengths, elements.as_deref()))
        }
        E::Unary(operator, operand) => Box::pin(evaluate_unary(evaluator, *operator, operand)),
        E::Binary(operator, left, right) => Box::pin(evaluate_binary(evaluator, *operator, left, right)),
        E::Conditional(condition, yes, no) => Box::pin(evaluate_conditional(evaluator, condition, yes, no)),
        E::Cast(class, operand) => Box::pin(evaluate_cast(evaluator, class, operand)),
        E::InstanceOf(operand, class) => Box::pin(evaluate_instance_test(evaluator, operand, class)),
        E::ClassLiteral(name) => Box::pin(evaluate_class_literal(evaluator, name)),
        E::Assign(target, operator, value) => Box::pin(evaluate_assignment(evaluator, target, *operator, value)),
        E::Update { target, by, is_postfix } => Box::pin(evaluate_update(evaluator, target, *by, *is_postfix)),
    }
}

async fn evaluate_this(evaluator: &mut Evaluator<'_>) -> Answer<Operand> {
    let this = evaluator.this_object().await?.ok_or("there is no `this` in a static method")?;
    let signature = evaluator.frame().await?.class.signature.clone();
    Ok(Operand::declared(JdwpValue::Object(TaggedObject { tag: b'L', id: this }), &signature))
}

async fn evaluate_name(evaluator: &mut Evaluator<'_>, expression: &JavaExpression) -> Answer<Operand> {
    match evaluator.resolve_prefix(expression).await? {
        NamePrefix::Value(operand) => Ok(operand),
        NamePrefix::Class(class) => Err(format!("{} is a class, and not a value", class.name()).into()),
        NamePrefix::Package(name) => Err(format!("there is no variable or class {name} here").into()),
    }
}

async fn evaluate_element(evaluator: &mut Evaluator<'_>, expression: &JavaExpression) -> Answer<Operand> {
    let place = on_heap(|| evaluator.find_place(expression)).await?;
    on_heap(|| evaluator.read_place(&place)).await
}

async fn evaluate_new(evaluator: &mut Evaluator<'_>, class: &str, arguments: &[JavaExpression]) -> Answer<Operand> {
    let class = on_heap(|| evaluator.require_class(class)).await?;
    let arguments = evaluate_all(evaluator, arguments).await?;
    on_heap(|| evaluator.create_object(&class, arguments)).await
}

async fn evaluate_unary(
    evaluator: &mut Evaluator<'_>,
    operator: UnaryOperator,
    operand: &JavaExpression,
) -> Answer<Operand> {
    let operand = evaluate(evaluator, operand).await?;
    let value = on_heap(|| conversion::unbox(evaluator, &operand)).await?;
    Ok(Operand::of(apply_unary(operator, value)?))
}

async fn evaluate_cast(evaluator: &mut Evaluator<'_>, class: &str, operand: &JavaExpression) -> Answer<Operand> {
    let operand = evaluate(evaluator, operand).await?;
    on_heap(|| conversion::cast(evaluator, operand, class)).await
}

async fn evaluate_instance_test(
    evaluator: &mut Evaluator<'_>,
    operand: &JavaExpression,
    class: &str,
) -> Answer<Operand> {
    let operand = evaluate(evaluator, operand).await?;
    Ok(Operand::of(JdwpValue::Boolean(on_heap(|| conversion::test_instance(evaluator, operand, class)).await?)))
}

/// The values of arguments, from the left.
pub(crate) async fn evaluate_all(
    evaluator: &mut Evaluator<'_>,
    expressions: &[JavaExpression],
) -> Answer<Vec<Operand>> {
    let mut operands = Vec::new();
    for expression in expressions {
        operands.push(evaluate(evaluator, expression).await?);
    }
    Ok(operands)
}

async fn evaluate_binary(
    evaluator: &mut Evaluator<'_>,
    operator: BinaryOperator,
    left: &JavaExpression,
    right: &JavaExpression,
) -> Answer<Operand> {
    let left = evaluate(evaluator, left).await?;
    if matches!(operator, BinaryOperator::AndThen | BinaryOperator::OrElse) {
        let decides = operator == BinaryOperator::OrElse;
        return match on_heap(|| conversion::unbox(evaluator, &left)).await? {
            JdwpValue::Boolean(left) if left == decides => Ok(Operand::of(JdwpValue::Boolean(left))),
            JdwpValue::Boolean(_) => {
                let right = evaluate(evaluator, right).await?;
                let right = on_heap(|| conversion::unbox(evaluator, &right)).await?;
                Ok(Operand::of(apply_binary(operator, JdwpValue::Boolean(!decides), right)?))
            }
            _ => Err("`&&` and `||` take booleans".into()),
        };
    }
    let right = evaluate(evaluator, right).await?;
    on_heap(|| apply_operator(evaluator, operator, left, right)).await
}

async fn apply_operator(
    evaluator: &mut Evaluator<'_>,
    operator: BinaryOperator,
    left: Operand,
    right: Operand,
) -> Answer<Operand> {
    if operator == BinaryOperator::Add && (conversion::is_text(&left) || conversion::is_text(&right)) {
        let left = conversion::text_of(evaluator, left).await?;
        return Ok(Operand::Text(left + &conversion::text_of(evaluator, right).await?));
    }
    let is_equality = matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual);
    let is_object = |operand: &Operand| operand.value().is_none_or(|it| matches!(it, JdwpValue::Object(_)));
    if is_equality && is_object(&left) && is_object(&right) {
        let (left, right) = (identity_of(evaluator, left).await?, identity_of(evaluator, right).await?);
        return Ok(Operand::of(JdwpValue::Boolean((left == right) == (operator == BinaryOperator::Equal))));
    }
    let (left, right) = (conversion::unbox(evaluator, &left).await?, conversion::unbox(evaluator, &right).await?);
    Ok(Operand::of(apply_binary(operator, left, right)?))
}

/// What two references are compared by. A text in an expression is a constant, of which the program has one.
async fn identity_of(evaluator: &mut Evaluator<'_>, operand: Operand) -> Answer<Option<ObjectId>> {
    let is_constant = matches!(operand, Operand::Text(_));
    let mut value = conversion::materialize(evaluator, operand).await?;
    if let Some(object) = value.as_object().filter(|_| is_constant) {
        let class = evaluator.session.vm.class_of(object.id).await?;
        let receiver = CallReceiver::Object(object.id);
        let interned = evaluator.call_method(receiver, &class, "intern", Vec::new()).await?;
        value = conversion::materialize(evaluator, interned).await?;
    }
    Ok(value.as_object().map(|object| object.id))
}

async fn evaluate_conditional(
    evaluator: &mut Evaluator<'_>,
    condition: &JavaExpression,
    yes: &JavaExpression,
    no: &JavaExpression,
) -> Answer<Operand> {
    let condition = evaluate(evaluator, condition).await?;
    let (chosen, other) = match on_heap(|| conversion::unbox(evaluator, &condition)).await? {
        JdwpValue::Boolean(true) => (yes, no),
        JdwpValue::Boolean(false) => (no, yes),
        _ => return Err("the condition before `?` is a boolean".into()),
    };
    let operand = evaluate(evaluator, chosen).await?;
    // The other one is looked at for its type alone: where that would need code of the program, it has none.
    if !other.is_without_effect() {
        return Ok(operand);
    }
    let before = std::mem::replace(&mut evaluator.runs_code, false);
    let looked_at = evaluate(evaluator, other).await;
    evaluator.runs_code = before;
    let Ok(other_operand) = looked_at else { return Ok(operand) };
    let number = on_heap(|| number_in(evaluator, &operand)).await?;
    let other_number = on_heap(|| number_in(evaluator, &other_operand)).await?;
    match (number, other_number) {
        (Some((value, is_boxed)), Some((other_value, is_other_boxed))) => {
            if is_boxed && is_other_boxed && value.tag() == other_value.tag() {
                return Ok(operand);
            }
            let tag = common_type((chosen, value), (other, other_value));
            Ok(Operand::of(convert_number(value, tag).unwrap_or(value)))
        }
        _ => Ok(operand),
    }
}

/// The number that an operand is, and whether it is in a box.
async fn number_in(evaluator: &mut Evaluator<'_>, operand: &Operand) -> Answer<Option<(JdwpValue, bool)>> {
    let Some(value) = operand.value().filter(|value| !value.is_null()) else { return Ok(None) };
    let number = conversion::unbox(evaluator, operand).await?;
    Ok(promote(number).map(|_| (number, value.as_object().is_some())))
}

async fn evaluate_class_literal(evaluator: &mut Evaluator<'_>, name: &str) -> Answer<Operand> {
    let signature = class_signature(name);
    let primitive = signature.as_bytes().first().filter(|_| signature.len() == 1);
    let value = match primitive {
        Some(b'V') => return Err("`void.class` is not supported here".into()),
        Some(tag) => {
            let boxed = super::operand::box_of(*tag).unwrap_or_default();
            let class = evaluator.session.vm.classes_by_signature(boxed).await?.into_iter().next();
            let class = class.ok_or_else(|| RequestFailure(format!("there is no class {name}")))?;
            let found = evaluator.session.vm.find_field(&class, "TYPE").await?;
            let found = found.ok_or_else(|| conversion::member_error(&class.signature, "TYPE"))?;
            return evaluator.read_place(&VariablePlace::Static(found)).await;
        }
        None => {
            let class = evaluator.require_class(name).await?;
            evaluator.session.vm.request(&ClassObject { class: class.id }).await?
        }
    };
    Ok(Operand::of(JdwpValue::Object(TaggedObject { tag: b'c', id: value })))
}

async fn evaluate_assignment(
    evaluator: &mut Evaluator<'_>,
    target: &JavaExpression,
    operator: Option<BinaryOperator>,
    value: &JavaExpression,
) -> Answer<Operand> {
    let place = on_heap(|| evaluator.find_place(target)).await?;
    let value = match operator {
        None => {
            let value = evaluate(evaluator, value).await?;
            on_heap(|| conversion::convert_for_assignment(evaluator, value, place.signature())).await?
        }
        Some(operator) => {
            let before = on_heap(|| evaluator.read_place(&place)).await?;
            let value = evaluate(evaluator, value).await?;
            let after = on_heap(|| apply_operator(evaluator, operator, before, value)).await?;
            on_heap(|| convert_with_cast(evaluator, after, place.signature())).await?
        }
    };
    on_heap(|| evaluator.write_place(&place, value)).await?;
    Ok(Operand::declared(value, place.signature()))
}

async fn evaluate_update(
    evaluator: &mut Evaluator<'_>,
    target: &JavaExpression,
    by: BinaryOperator,
    is_postfix: bool,
) -> Answer<Operand> {
    let place = on_heap(|| evaluator.find_place(target)).await?;
    let before = on_heap(|| evaluator.read_place(&place)).await?;
    let after = on_heap(|| apply_operator(evaluator, by, before.clone(), Operand::of(JdwpValue::Int(1)))).await?;
    let after = on_heap(|| convert_with_cast(evaluator, after, place.signature())).await?;
    on_heap(|| evaluator.write_place(&place, after)).await?;
    Ok(if is_postfix { before } else { Operand::declared(after, place.signature()) })
}

/// As `+=` assigns: a number is cast to the variable's type.
async fn convert_with_cast(evaluator: &mut Evaluator<'_>, operand: Operand, signature: &str) -> Answer<JdwpValue> {
    let tag = signature.as_bytes().first().copied().filter(|_| signature.len() == 1);
    let tag = tag.or(super::operand::unboxed(signature));
    let cast = tag.and_then(|tag| convert_number(operand.value()?, tag));
    conversion::convert_for_assignment(evaluator, cast.map_or(operand, Operand::of), signature).await
}

/// The tag of the type that both numbers of a conditional have (JLS 15.25): a constant `int` takes the smaller type of the
/// other one if it fits into it; else both are promoted.
fn common_type(one: (&JavaExpression, JdwpValue), other: (&JavaExpression, JdwpValue)) -> u8 {
    let takes = |(constant, value): (&JavaExpression, JdwpValue), tag: u8| {
        let is_small = matches!(tag, b'B' | b'S' | b'C');
        let fits = || convert_number(value, tag).and_then(|small| convert_number(small, b'I')) == Some(value);
        is_small && matches!((constant, value), (JavaExpression::Literal(_), JdwpValue::Int(_))) && fits()
    };
    let (tag, other_tag) = (one.1.tag(), other.1.tag());
    if tag == other_tag || takes(other, tag) {
        return tag;
    }
    if takes(one, other_tag) {
        return other_tag;
    }
    // `byte` and `short`.
    if matches!([tag, other_tag], [b'B', b'S'] | [b'S', b'B']) {
        return b'S';
    }
    apply_binary(BinaryOperator::Add, one.1, other.1).map_or(tag, |sum| sum.tag())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::parser::parse_expression;
    use crate::scripted_vm::open_scripted_session;
    use crate::small_stack::run_on_small_stack;
    use tether_base::sync::lock;

    const SPOT: FrameSpot = FrameSpot { thread: ObjectId(1), depth: 0 };

    #[test]
    fn the_deepest_expressions_are_evaluated_on_a_small_stack() {
        run_on_small_stack(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (session, _) = open_scripted_session(|_, _, _| Err(99)).await;
                for (begin, end, expect) in [
                    ("1+(", ")", JdwpValue::Int(49)),
                    ("true&&(", ")", JdwpValue::Boolean(true)),
                    ("true?(", "):2", JdwpValue::Int(1)),
                    ("~(", ")", JdwpValue::Int(1)),
                ] {
                    let inner = if begin.starts_with("true&&") { "true" } else { "1" };
                    let text = format!("{}{inner}{}", begin.repeat(48), end.repeat(48));
                    let operand = evaluate_in(&session, SPOT, &parse_expression(&text).unwrap()).await;
                    assert_eq!(operand, Ok(Operand::of(expect)), "{begin}");
                }
            });
        });
    }

    #[tokio::test]
    async fn who_only_looks_runs_no_code_of_the_program() {
        // Every class is loaded, and has a method `valueOf`; no command that runs code is answered.
        let (session, asked) = open_scripted_session(|set, number, _| match (set, number) {
            (1, 2) => Ok([vec![0, 0, 0, 1, 1], vec![0, 0, 0, 0, 0, 0, 0, 1], vec![0; 4]].concat()),
            _ => Err(99),
        })
        .await;
        let concatenation = parse_expression("\"a\" + 1.5").unwrap();
        let failure = look_in(&session, SPOT, &concatenation).await.unwrap_err();
        let runs = |(set, number): (u8, u8)| matches!((set, number), (3, 3) | (3, 4) | (5, 1) | (9, 6));
        assert!(lock(&asked).iter().all(|it| !runs((it.0, it.1))), "{failure}: {asked:?}");
    }
}
