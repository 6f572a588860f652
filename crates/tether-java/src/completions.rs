//! What a text may go on with: variables, fields and methods, as the frame knows them. No code of the program runs, and no
//! class is loaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use tether_backend::Answer;
use tether_backend::completion_text::{offer_items, text_before};
use tether_dap::types::{CompletionItem, CompletionsArguments, CompletionsResponse};

use super::expression::evaluator::Evaluator;
use super::expression::parser::parse_expression;
use super::java_vm::{JavaClass, SYNTHETIC};
use super::session::{FrameSpot, JavaSession};
use super::signatures::{method_types, parameter_names, short_type_name};
use super::variables::is_visible;
use super::{evaluation, frames};
use crate::expression::operations;

/// What the text before the column, from 1 and in UTF-16 code units, may go on with.
pub(crate) async fn completions(session: &JavaSession, arguments: CompletionsArguments) -> Answer<CompletionsResponse> {
    let spot = match arguments.frame_id {
        Some(id) => session.frame_spot(id)?,
        None => evaluation::any_spot(session)?,
    };
    let before = text_before(&arguments.text, arguments.line, arguments.column);
    let (receiver, begun) = split_completed(&before);
    let items = match receiver {
        Some(receiver) => members_of(session, spot, receiver).await?,
        None => names_in_frame(session, spot).await?,
    };
    Ok(offer_items(items, begun, arguments.column))
}

/// The fields and methods behind a dot. What has effects, as a call may, is not evaluated.
async fn members_of(session: &JavaSession, spot: FrameSpot, receiver: &str) -> Answer<Vec<CompletionItem>> {
    let expression = parse_expression(receiver)?;
    if !expression.is_without_effect() {
        return Ok(Vec::new());
    }
    let operand = operations::look_in(session, spot, &expression).await;
    let class = match operand.ok().and_then(|operand| operand.value()).and_then(|value| value.as_object()) {
        Some(object) if !object.id.is_null() => Some(session.vm.class_of(object.id).await?),
        // No value: the name of a class, perhaps. One that is not loaded stays so: that would run its code.
        _ => Evaluator::new(session, spot).without_code().find_class(receiver).await.ok().flatten(),
    };
    match class {
        Some(class) => members_of_class(session, &class).await,
        None => Ok(Vec::new()),
    }
}

async fn names_in_frame(session: &JavaSession, spot: FrameSpot) -> Answer<Vec<CompletionItem>> {
    let frame = frames::read_frame(session, spot).await?;
    let mut items = Vec::new();
    if let Some(variables) = frames::frame_variables(session, &frame).await? {
        let seen = variables.variables.iter().filter(|it| is_visible(it, frame.location));
        items.extend(seen.map(|it| item(&it.name, short_type_name(&it.signature), "variable")));
    }
    items.extend(members_of_class(session, &frame.class).await?);
    Ok(items)
}

/// The fields and methods of a class and its ancestors, the nearest of each name.
async fn members_of_class(session: &JavaSession, class: &Arc<JavaClass>) -> Answer<Vec<CompletionItem>> {
    let mut items: BTreeMap<String, CompletionItem> = BTreeMap::new();
    for class in session.vm.ancestors(class).await? {
        for field in session.vm.fields(&class).await?.iter().filter(|it| it.modifiers & SYNTHETIC == 0) {
            let found = item(&field.name, short_type_name(&field.signature), "field");
            items.entry(field.name.clone()).or_insert(found);
        }
        let is_callable = |name: &str| !name.starts_with('<') && !name.contains('$');
        for method in session.vm.methods(&class).await?.iter().filter(|it| is_callable(&it.name)) {
            let text = format!("{}({})", method.name, parameter_names(&method.signature));
            let returned = short_type_name(method_types(&method.signature).1);
            let found = CompletionItem { text: Some(method.name.clone()), ..item(&text, returned, "method") };
            items.entry(text).or_insert(found);
        }
    }
    Ok(items.into_values().collect())
}

fn item(label: &str, detail: String, kind: &str) -> CompletionItem {
    let (label, kind) = (label.to_owned(), Some(kind.to_owned()));
    CompletionItem { label, detail: Some(detail), kind, ..CompletionItem::default() }
}

/// What stands before the last dot, if there is one, and the name that has been begun.
fn split_completed(before: &str) -> (Option<&str>, &str) {
    let is_part = |c: char| c.is_alphanumeric() || "_$.[]".contains(c);
    let start = before.char_indices().rev().take_while(|(_, c)| is_part(*c)).last().map_or(before.len(), |(at, _)| at);
    let completed = before.get(start..).unwrap_or_default();
    match completed.rsplit_once('.') {
        Some((receiver, begun)) if !receiver.is_empty() => (Some(receiver), begun),
        Some((_, begun)) => (None, begun),
        None => (None, completed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_completed_is_the_name_before_the_column() {
        let check = |before: &str, receiver: Option<&str>, begun: &str| {
            assert_eq!(split_completed(before), (receiver, begun), "{before}");
        };
        check("tot", None, "tot");
        check("a + order.it", Some("order"), "it");
        check("f(this.lines[0].", Some("this.lines[0]"), "");
        check("a.b.c", Some("a.b"), "c");
        check("", None, "");
        check("1 + ", None, "");
        check(".x", None, "x");
    }
}
