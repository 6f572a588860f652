//! Rewrites the ids in messages that pass between a joined editor and an adapter, and the hints of frames that the protocol
//! does not know; every other field stays as it is.
//!
//! Works on the names of fields, which the protocol uses for one kind of id each. Pure.

use serde_json::{Map, Value};

use super::editor_ids::{EditorIds, IdKind};
use crate::debug::inspect::ScopedId;

/// The fields with ids; a value of 0 stands for none, but a thread or a frame may have that id.
const ID_FIELDS: [(&str, IdKind); 4] = [
    ("threadId", IdKind::Thread),
    ("frameId", IdKind::Frame),
    ("variablesReference", IdKind::Value),
    ("sourceReference", IdKind::Source),
];
/// The values of a frame's `presentationHint`.
const FRAME_HINTS: [&str; 3] = ["normal", "label", "subtle"];
/// The adapter's own: sent back to it unchanged.
const OPAQUE_FIELD: &str = "adapterData";
/// References that lead nowhere, since the requests for them are not offered.
const DROPPED_FIELDS: [&str; 3] = ["declarationLocationReference", "valueLocationReference", "locationReference"];

/// Rewrites what an adapter has sent, for the editor.
pub fn rewrite_for_editor(message: &mut Value, target: usize, ids: &mut EditorIds) {
    match message {
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite_for_editor(item, target, ids)),
        Value::Object(fields) => {
            fields.retain(|name, _| !DROPPED_FIELDS.contains(&name.as_str()));
            if let Some(Value::Array(frames)) = fields.get_mut("stackFrames") {
                frames.iter_mut().filter_map(Value::as_object_mut).for_each(|frame| {
                    give_id(frame, ("id", IdKind::Frame), target, ids);
                    correct_frame_hint(frame);
                });
            }
            ID_FIELDS.iter().for_each(|field| give_id(fields, *field, target, ids));
            let inner = fields.iter_mut().filter(|(name, _)| *name != OPAQUE_FIELD);
            inner.for_each(|(_, value)| rewrite_for_editor(value, target, ids));
        }
        _ => {}
    }
}

/// js-debug gives the frames of skipped files the hint of a source, `deemphasize`.
fn correct_frame_hint(frame: &mut Map<String, Value>) {
    if let Some(hint) = frame.get_mut("presentationHint")
        && !FRAME_HINTS.iter().any(|known| hint == known)
    {
        *hint = "subtle".into();
    }
}

fn give_id(fields: &mut Map<String, Value>, (name, kind): (&str, IdKind), target: usize, ids: &mut EditorIds) {
    let Some(value) = fields.get_mut(name) else { return };
    let Some(id) = value.as_i64().filter(|id| is_id(kind, *id)) else { return };
    *value = ids.give(kind, ScopedId { target, id }).into();
}

/// Rewrites what the editor has sent, for the adapter. Returns the target that its ids are of, if it has ids.
/// Errors: an id is not valid any more, or two are of different targets.
pub fn rewrite_for_adapter(message: &mut Value, ids: &EditorIds) -> Result<Option<usize>, String> {
    let mut target = None;
    rewrite_fields(message, ids, &mut target)?;
    Ok(target)
}

fn rewrite_fields(message: &mut Value, ids: &EditorIds, target: &mut Option<usize>) -> Result<(), String> {
    let fields = match message {
        Value::Array(items) => return items.iter_mut().try_for_each(|item| rewrite_fields(item, ids, target)),
        Value::Object(fields) => fields,
        _ => return Ok(()),
    };
    for (name, kind) in ID_FIELDS {
        let Some(value) = fields.get_mut(name) else { continue };
        let Some(id) = value.as_i64().filter(|id| *id > 0) else { continue };
        let stale = || format!("{name} {id} is not valid: the program has been resumed since, or it was never sent");
        let scoped = ids.find(kind, id).ok_or_else(stale)?;
        if target.is_some_and(|known| known != scoped.target) {
            return Err(format!("{name} {id} is of another target than the other ids"));
        }
        *target = Some(scoped.target);
        *value = scoped.id.into();
    }
    let inner = fields.iter_mut().filter(|(name, _)| *name != OPAQUE_FIELD);
    inner.map(|(_, value)| value).try_for_each(|value| rewrite_fields(value, ids, target))
}

fn is_id(kind: IdKind, id: i64) -> bool {
    id > 0 || matches!(kind, IdKind::Thread | IdKind::Frame)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_rewritten_both_ways_and_other_fields_stay() {
        let mut ids = EditorIds::default();
        let mut stack = json!({"stackFrames": [
            {"id": 0, "name": "f", "line": 3, "moduleId": 7, "source": {"sourceReference": 9, "adapterData": {"threadId": 5}}},
            {"id": 1000, "name": "g", "line": 4, "source": {"path": "/a", "sourceReference": 0}},
        ], "totalFrames": 2});
        rewrite_for_editor(&mut stack, 1, &mut ids);
        let (first, source) = (&stack["stackFrames"][0], &stack["stackFrames"][0]["source"]);
        assert_eq!(
            (&first["id"], &first["moduleId"], &source["adapterData"]["threadId"]),
            (&json!(1), &json!(7), &json!(5))
        );
        assert_eq!((&stack["stackFrames"][1]["id"], &source["sourceReference"]), (&json!(2), &json!(3)));
        assert_eq!(stack["stackFrames"][1]["source"]["sourceReference"], 0);

        let mut scopes = json!({"frameId": 2});
        assert_eq!((rewrite_for_adapter(&mut scopes, &ids), scopes), (Ok(Some(1)), json!({"frameId": 1000})));
        let mut source = json!({"sourceReference": 3, "source": {"sourceReference": 3, "adapterData": {"frameId": 4}}});
        assert_eq!(rewrite_for_adapter(&mut source, &ids), Ok(Some(1)));
        assert_eq!(
            source,
            json!({"sourceReference": 9, "source": {"sourceReference": 9, "adapterData": {"frameId": 4}}})
        );
        let mut global = json!({"expression": "threadId", "context": "repl"});
        assert_eq!(rewrite_for_adapter(&mut global, &ids), Ok(None));
    }

    #[test]
    fn a_frame_gets_only_hints_of_the_protocol() {
        let check = |hint: &str, expect: &str| {
            let source = json!({"path": "/a", "presentationHint": "deemphasize"});
            let mut stack = json!({"stackFrames": [{"id": 1, "presentationHint": hint, "source": source}]});
            rewrite_for_editor(&mut stack, 0, &mut EditorIds::default());
            let frame = &stack["stackFrames"][0];
            assert_eq!((&frame["presentationHint"], &frame["source"]), (&json!(expect), &source), "{hint}");
        };
        check("deemphasize", "subtle");
        check("label", "label");
        check("normal", "normal");
    }

    #[test]
    fn ids_that_are_not_valid_are_refused_by_name() {
        let mut ids = EditorIds::default();
        let one = ids.give(IdKind::Frame, ScopedId { target: 0, id: 5 });
        let other = ids.give(IdKind::Value, ScopedId { target: 1, id: 5 });
        let error = rewrite_for_adapter(&mut json!({"frameId": one, "variablesReference": other}), &ids).unwrap_err();
        assert!(error.contains("another target"), "{error}");
        ids.forget_stop(0);
        let error = rewrite_for_adapter(&mut json!({"frameId": one}), &ids).unwrap_err();
        assert!(error.contains("frameId 1 is not valid"), "{error}");
    }
}
