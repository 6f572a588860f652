//! The evaluation of each form of expression.

use futures_util::future::BoxFuture;
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
use crate::session::{FrameSpot, JavaSession};
use crate::signatures::class_signature;

impl Evaluator<'_> {
    /// The value of an expression in a frame; an object of it is kept until the program runs on.
    pub(crate) async fn evaluate_in(
        session: &JavaSession,
        spot: FrameSpot,
        expression: &JavaExpression,
    ) -> Result<Operand, RequestFailure> {
        let mut evaluator = Evaluator::new(session, spot);
        let result = evaluator.evaluate(expression).await;
        let value = result.as_ref().ok().and_then(Operand::value);
        evaluator.release(value).await;
        result
    }

    /// As [`Evaluator::evaluate_in`], without running code of the program: no call, no class that is loaded, no assignment.
    /// Errors: it would need that.
    pub(crate) async fn look_in(
        session: &JavaSession,
        spot: FrameSpot,
        expression: &JavaExpression,
    ) -> Result<Operand, RequestFailure> {
        let mut evaluator = Evaluator::new(session, spot).without_code();
        let result = evaluator.evaluate(expression).await;
        let value = result.as_ref().ok().and_then(Operand::value);
        evaluator.release(value).await;
        result
    }

    /// The primitive value of a condition.
    pub(crate) async fn evaluate_once(
        session: &JavaSession,
        spot: FrameSpot,
        expression: &JavaExpression,
    ) -> Result<JdwpValue, RequestFailure> {
        let mut evaluator = Evaluator::new(session, spot);
        let result = match evaluator.evaluate(expression).await {
            Ok(operand) => evaluator.unbox(&operand).await,
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
    ) -> Result<String, RequestFailure> {
        let mut evaluator = Evaluator::new(session, spot);
        let result = match evaluator.evaluate(expression).await {
            Ok(operand) => evaluator.text_of(operand).await,
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
    ) -> Result<Operand, RequestFailure> {
        let mut evaluator = Evaluator::new(session, spot);
        let assigned = async {
            let operand = evaluator.evaluate(expression).await?;
            let value = evaluator.convert_for_assignment(operand, place.signature()).await?;
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
    ) -> Result<JdwpValue, RequestFailure> {
        let mut evaluator = Evaluator::new(session, spot);
        let converted = async {
            let operand = evaluator.evaluate(expression).await?;
            evaluator.convert_for_assignment(operand, signature).await
        };
        let result = converted.await;
        evaluator.release(result.as_ref().ok().copied()).await;
        result
    }

    /// The value of an expression.
    pub(crate) fn evaluate<'b>(
        &'b mut self,
        expression: &'b JavaExpression,
    ) -> BoxFuture<'b, Result<Operand, RequestFailure>> {
        use JavaExpression as E;
        // Not in one block: each level of an expression would have a stack frame with room for all forms.
        match expression {
            E::Literal(value) => Box::pin(std::future::ready(Ok(Operand::of(*value)))),
            E::Text(text) => Box::pin(std::future::ready(Ok(Operand::Text(text.clone())))),
            E::This => Box::pin(self.evaluate_this()),
            E::Name(_) | E::Member(..) => Box::pin(self.evaluate_name(expression)),
            E::Element(..) => Box::pin(self.evaluate_element(expression)),
            E::Call { receiver, name, arguments } => Box::pin(self.evaluate_call(receiver.as_deref(), name, arguments)),
            E::New { class, arguments } => Box::pin(self.evaluate_new(class, arguments)),
            E::NewArray { element, dimensions, lengths, elements } => {
                Box::pin(self.evaluate_new_array(element, *dimensions, lengths, elements.as_deref()))
            }
            E::Unary(operator, operand) => Box::pin(self.evaluate_unary(*operator, operand)),
            E::Binary(operator, left, right) => Box::pin(self.evaluate_binary(*operator, left, right)),
            E::Conditional(condition, yes, no) => Box::pin(self.evaluate_conditional(condition, yes, no)),
            E::Cast(class, operand) => Box::pin(self.evaluate_cast(class, operand)),
            E::InstanceOf(operand, class) => Box::pin(self.evaluate_instance_test(operand, class)),
            E::ClassLiteral(name) => Box::pin(self.evaluate_class_literal(name)),
            E::Assign(target, operator, value) => Box::pin(self.evaluate_assignment(target, *operator, value)),
            E::Update { target, by, is_postfix } => Box::pin(self.evaluate_update(target, *by, *is_postfix)),
        }
    }

    async fn evaluate_this(&mut self) -> Result<Operand, RequestFailure> {
        let this = self.this_object().await?.ok_or("there is no `this` in a static method")?;
        let signature = self.frame().await?.class.signature.clone();
        Ok(Operand::declared(JdwpValue::Object(TaggedObject { tag: b'L', id: this }), &signature))
    }

    async fn evaluate_name(&mut self, expression: &JavaExpression) -> Result<Operand, RequestFailure> {
        match self.resolve_prefix(expression).await? {
            NamePrefix::Value(operand) => Ok(operand),
            NamePrefix::Class(class) => Err(format!("{} is a class, and not a value", class.name()).into()),
            NamePrefix::Package(name) => Err(format!("there is no variable or class {name} here").into()),
        }
    }

    async fn evaluate_element(&mut self, expression: &JavaExpression) -> Result<Operand, RequestFailure> {
        let place = on_heap(|| self.find_place(expression)).await?;
        on_heap(|| self.read_place(&place)).await
    }

    async fn evaluate_new(&mut self, class: &str, arguments: &[JavaExpression]) -> Result<Operand, RequestFailure> {
        let class = on_heap(|| self.require_class(class)).await?;
        let arguments = self.evaluate_all(arguments).await?;
        on_heap(|| self.create_object(&class, arguments)).await
    }

    async fn evaluate_unary(
        &mut self,
        operator: UnaryOperator,
        operand: &JavaExpression,
    ) -> Result<Operand, RequestFailure> {
        let operand = self.evaluate(operand).await?;
        let value = on_heap(|| self.unbox(&operand)).await?;
        Ok(Operand::of(apply_unary(operator, value)?))
    }

    async fn evaluate_cast(&mut self, class: &str, operand: &JavaExpression) -> Result<Operand, RequestFailure> {
        let operand = self.evaluate(operand).await?;
        on_heap(|| self.cast(operand, class)).await
    }

    async fn evaluate_instance_test(
        &mut self,
        operand: &JavaExpression,
        class: &str,
    ) -> Result<Operand, RequestFailure> {
        let operand = self.evaluate(operand).await?;
        Ok(Operand::of(JdwpValue::Boolean(on_heap(|| self.test_instance(operand, class)).await?)))
    }

    /// The values of arguments, from the left.
    pub(crate) async fn evaluate_all(
        &mut self,
        expressions: &[JavaExpression],
    ) -> Result<Vec<Operand>, RequestFailure> {
        let mut operands = Vec::new();
        for expression in expressions {
            operands.push(self.evaluate(expression).await?);
        }
        Ok(operands)
    }

    async fn evaluate_binary(
        &mut self,
        operator: BinaryOperator,
        left: &JavaExpression,
        right: &JavaExpression,
    ) -> Result<Operand, RequestFailure> {
        let left = self.evaluate(left).await?;
        if matches!(operator, BinaryOperator::AndThen | BinaryOperator::OrElse) {
            let decides = operator == BinaryOperator::OrElse;
            return match on_heap(|| self.unbox(&left)).await? {
                JdwpValue::Boolean(left) if left == decides => Ok(Operand::of(JdwpValue::Boolean(left))),
                JdwpValue::Boolean(_) => {
                    let right = self.evaluate(right).await?;
                    let right = on_heap(|| self.unbox(&right)).await?;
                    Ok(Operand::of(apply_binary(operator, JdwpValue::Boolean(!decides), right)?))
                }
                _ => Err("`&&` and `||` take booleans".into()),
            };
        }
        let right = self.evaluate(right).await?;
        on_heap(|| self.apply_operator(operator, left, right)).await
    }

    async fn apply_operator(
        &mut self,
        operator: BinaryOperator,
        left: Operand,
        right: Operand,
    ) -> Result<Operand, RequestFailure> {
        if operator == BinaryOperator::Add && (self.is_text(&left) || self.is_text(&right)) {
            let left = self.text_of(left).await?;
            return Ok(Operand::Text(left + &self.text_of(right).await?));
        }
        let is_equality = matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual);
        let is_object = |operand: &Operand| operand.value().is_none_or(|it| matches!(it, JdwpValue::Object(_)));
        if is_equality && is_object(&left) && is_object(&right) {
            let (left, right) = (self.identity_of(left).await?, self.identity_of(right).await?);
            return Ok(Operand::of(JdwpValue::Boolean((left == right) == (operator == BinaryOperator::Equal))));
        }
        let (left, right) = (self.unbox(&left).await?, self.unbox(&right).await?);
        Ok(Operand::of(apply_binary(operator, left, right)?))
    }

    /// What two references are compared by. A text in an expression is a constant, of which the program has one.
    async fn identity_of(&mut self, operand: Operand) -> Result<Option<ObjectId>, RequestFailure> {
        let is_constant = matches!(operand, Operand::Text(_));
        let mut value = self.materialize(operand).await?;
        if let Some(object) = value.as_object().filter(|_| is_constant) {
            let class = self.session.vm.class_of(object.id).await?;
            let receiver = CallReceiver::Object(object.id);
            let interned = self.call_method(receiver, &class, "intern", Vec::new()).await?;
            value = self.materialize(interned).await?;
        }
        Ok(value.as_object().map(|object| object.id))
    }

    async fn evaluate_conditional(
        &mut self,
        condition: &JavaExpression,
        yes: &JavaExpression,
        no: &JavaExpression,
    ) -> Result<Operand, RequestFailure> {
        let condition = self.evaluate(condition).await?;
        let (chosen, other) = match on_heap(|| self.unbox(&condition)).await? {
            JdwpValue::Boolean(true) => (yes, no),
            JdwpValue::Boolean(false) => (no, yes),
            _ => return Err("the condition before `?` is a boolean".into()),
        };
        let operand = self.evaluate(chosen).await?;
        // The other one is looked at for its type alone: where that would need code of the program, it has none.
        if !other.is_without_effect() {
            return Ok(operand);
        }
        let before = std::mem::replace(&mut self.runs_code, false);
        let looked_at = self.evaluate(other).await;
        self.runs_code = before;
        let Ok(other_operand) = looked_at else { return Ok(operand) };
        let number = on_heap(|| self.number_in(&operand)).await?;
        let other_number = on_heap(|| self.number_in(&other_operand)).await?;
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
    async fn number_in(&mut self, operand: &Operand) -> Result<Option<(JdwpValue, bool)>, RequestFailure> {
        let Some(value) = operand.value().filter(|value| !value.is_null()) else { return Ok(None) };
        let number = self.unbox(operand).await?;
        Ok(promote(number).map(|_| (number, value.as_object().is_some())))
    }

    async fn evaluate_class_literal(&mut self, name: &str) -> Result<Operand, RequestFailure> {
        let signature = class_signature(name);
        let primitive = signature.as_bytes().first().filter(|_| signature.len() == 1);
        let value = match primitive {
            Some(b'V') => return Err("`void.class` is not supported here".into()),
            Some(tag) => {
                let boxed = super::operand::box_of(*tag).unwrap_or_default();
                let class = self.session.vm.classes_by_signature(boxed).await?.into_iter().next();
                let class = class.ok_or_else(|| RequestFailure(format!("there is no class {name}")))?;
                let found = self.session.vm.find_field(&class, "TYPE").await?;
                let found = found.ok_or_else(|| self.member_error(&class.signature, "TYPE"))?;
                return self.read_place(&VariablePlace::Static(found)).await;
            }
            None => {
                let class = self.require_class(name).await?;
                self.session.vm.request(&ClassObject { class: class.id }).await?
            }
        };
        Ok(Operand::of(JdwpValue::Object(TaggedObject { tag: b'c', id: value })))
    }

    async fn evaluate_assignment(
        &mut self,
        target: &JavaExpression,
        operator: Option<BinaryOperator>,
        value: &JavaExpression,
    ) -> Result<Operand, RequestFailure> {
        let place = on_heap(|| self.find_place(target)).await?;
        let value = match operator {
            None => {
                let value = self.evaluate(value).await?;
                on_heap(|| self.convert_for_assignment(value, place.signature())).await?
            }
            Some(operator) => {
                let before = on_heap(|| self.read_place(&place)).await?;
                let value = self.evaluate(value).await?;
                let after = on_heap(|| self.apply_operator(operator, before, value)).await?;
                on_heap(|| self.convert_with_cast(after, place.signature())).await?
            }
        };
        on_heap(|| self.write_place(&place, value)).await?;
        Ok(Operand::declared(value, place.signature()))
    }

    async fn evaluate_update(
        &mut self,
        target: &JavaExpression,
        by: BinaryOperator,
        is_postfix: bool,
    ) -> Result<Operand, RequestFailure> {
        let place = on_heap(|| self.find_place(target)).await?;
        let before = on_heap(|| self.read_place(&place)).await?;
        let after = on_heap(|| self.apply_operator(by, before.clone(), Operand::of(JdwpValue::Int(1)))).await?;
        let after = on_heap(|| self.convert_with_cast(after, place.signature())).await?;
        on_heap(|| self.write_place(&place, after)).await?;
        Ok(if is_postfix { before } else { Operand::declared(after, place.signature()) })
    }

    /// As `+=` assigns: a number is cast to the variable's type.
    async fn convert_with_cast(&mut self, operand: Operand, signature: &str) -> Result<JdwpValue, RequestFailure> {
        let tag = signature.as_bytes().first().copied().filter(|_| signature.len() == 1);
        let tag = tag.or(super::operand::unboxed(signature));
        let cast = tag.and_then(|tag| convert_number(operand.value()?, tag));
        self.convert_for_assignment(cast.map_or(operand, Operand::of), signature).await
    }
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
                    let operand = Evaluator::evaluate_in(&session, SPOT, &parse_expression(&text).unwrap()).await;
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
        let failure = Evaluator::look_in(&session, SPOT, &concatenation).await.unwrap_err();
        let runs = |(set, number): (u8, u8)| matches!((set, number), (3, 3) | (3, 4) | (5, 1) | (9, 6));
        assert!(lock(&asked).iter().all(|it| !runs((it.0, it.1))), "{failure}: {asked:?}");
    }
}
