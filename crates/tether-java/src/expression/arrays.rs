//! New arrays: those of arrays are created one by one, so that their number has a limit.

use futures_util::future::BoxFuture;
use tether_backend::Answer;
use tether_jdwp::commands::class_types::NewArray;
use tether_jdwp::values::JdwpValue;

use super::arithmetic::promote;
use super::evaluator::Evaluator;
use super::operand::Operand;
use super::syntax::JavaExpression;
use super::{conversion, operations};
use crate::signatures::{class_signature, type_name};

/// How many elements a new array and those inside it may have.
const MAX_NEW_ELEMENTS: usize = 1_000_000;
/// How many dimensions an array has at most (JVMS 4.4.1), and of how many an expression may say the length.
const MAX_DIMENSIONS: usize = 255;
const MAX_LENGTHS: usize = 16;

/// A new array, with lengths of its first dimensions or with elements.
pub(crate) async fn evaluate_new_array(
    evaluator: &mut Evaluator<'_>,
    element: &str,
    dimensions: usize,
    lengths: &[JavaExpression],
    elements: Option<&[JavaExpression]>,
) -> Answer<Operand> {
    if dimensions > MAX_DIMENSIONS || lengths.len() > MAX_LENGTHS {
        return Err(format!("an array of an expression may have {MAX_LENGTHS} lengths").into());
    }
    let element = match class_signature(element) {
        primitive if primitive.len() == 1 => primitive,
        _ => evaluator.require_class(element).await?.signature.clone(),
    };
    let signature = "[".repeat(dimensions) + &element;
    if let Some(elements) = elements {
        let mut values = Vec::new();
        for element in elements {
            let operand = operations::evaluate(evaluator, element).await?;
            values.push(conversion::convert_for_assignment(evaluator, operand, inner_signature(&signature)?).await?);
        }
        let class = evaluator.require_array_class(&signature).await?;
        return Ok(Operand::declared(evaluator.create_array(&class, &values).await?, &signature));
    }
    let mut counts = Vec::new();
    for length in lengths {
        let length = operations::evaluate(evaluator, length).await?;
        match promote(conversion::unbox(evaluator, &length).await?) {
            Some(JdwpValue::Int(count)) => {
                let negative = |_| format!("java.lang.NegativeArraySizeException: {count}");
                counts.push(usize::try_from(count).map_err(negative)?);
            }
            _ => return Err("the length of an array is an int".into()),
        }
    }
    if !may_be_created(&counts) {
        return Err(format!("an array of an expression may have {MAX_NEW_ELEMENTS} elements").into());
    }
    let value = create_nested_arrays(evaluator, &signature, &counts).await?;
    Ok(Operand::declared(value, &signature))
}

fn create_nested_arrays<'b>(
    evaluator: &'b mut Evaluator<'_>,
    signature: &'b str,
    counts: &'b [usize],
) -> BoxFuture<'b, Answer<JdwpValue>> {
    Box::pin(async move {
        let class = evaluator.require_array_class(signature).await?;
        let (count, inner) = counts.split_first().ok_or("an array needs a length")?;
        let mut elements = Vec::new();
        if !inner.is_empty() {
            for _ in 0..*count {
                elements.push(create_nested_arrays(evaluator, inner_signature(signature)?, inner).await?);
            }
            return evaluator.create_array(&class, &elements).await;
        }
        let length = i32::try_from(*count).unwrap_or(i32::MAX);
        let request = NewArray { array_type: class.id, length };
        let value = JdwpValue::Object(evaluator.session.vm.request(&request).await?);
        evaluator.keep(value).await?;
        Ok(value)
    })
}

/// The signature of what an array contains. Errors: it is none of an array.
fn inner_signature(array: &str) -> Result<&str, String> {
    array.strip_prefix('[').ok_or_else(|| format!("{} is not an array", type_name(array)))
}

/// Whether arrays of these lengths inside of each other have few enough elements together.
fn may_be_created(lengths: &[usize]) -> bool {
    let mut elements = 1usize;
    for length in lengths {
        elements = elements.saturating_mul(*length);
        match elements {
            // No element, so no array inside.
            0 => return true,
            _ if elements > MAX_NEW_ELEMENTS => return false,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_have_few_enough_elements_also_where_the_last_length_is_zero() {
        assert!(may_be_created(&[MAX_NEW_ELEMENTS]) && may_be_created(&[1000, 1000, 0]));
        assert!(may_be_created(&[0, 2_000_000_000]), "no array inside");
        for lengths in [&[2_000_000_000, 0][..], &[1001, 1000], &[usize::MAX, usize::MAX]] {
            assert!(!may_be_created(lengths), "{lengths:?}");
        }
    }
}
