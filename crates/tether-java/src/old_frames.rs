//! Frames of old code: the methods that were redefined while threads were in them.
//!
//! The virtual machine names such a method by the id 0, and its agent ends the program when it is asked for the tables of
//! that one. So what is shown of these frames is what was read before the classes were redefined.
//!
//! ```text
//! swap ─▶ frames of suspended threads in the changed classes: methods, tables, texts are recorded ─▶ RedefineClasses
//! later stop ─▶ a frame without a current method ─▶ what was recorded for it, or nothing but its class
//! ```
//! A frame is recognised by its thread and its height above the outermost frame: as long as it is of old code it is the
//! same one, since a new call runs the new code. Plain data: requests nothing.

use std::collections::HashMap;
use std::sync::Arc;

use tether_jdwp::commands::reference_types::{DeclaredMethod, LineEntry, MethodVariables};
use tether_jdwp::values::{ObjectId, ReferenceTypeId};

/// How many frames are recorded.
const MAX_FRAMES: usize = 10_000;
/// How many bytes the recorded texts may have.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// A frame of a thread, by its height: that of the outermost is 1.
pub(crate) type FrameHeight = (ObjectId, usize);

/// What a method was before its class was redefined.
#[derive(Clone, Debug)]
pub(crate) struct OldMethod {
    pub class: ReferenceTypeId,
    pub method: DeclaredMethod,
    /// In the order of its code.
    pub lines: Arc<Vec<LineEntry>>,
    pub variables: Option<Arc<MethodVariables>>,
    /// The number of the text of its source.
    pub source: Option<i64>,
}

/// The recorded frames, and the texts of their sources.
#[derive(Debug, Default)]
pub(crate) struct OldFrames {
    frames: HashMap<FrameHeight, Arc<OldMethod>>,
    /// Their numbers begin with 1.
    texts: Vec<Arc<str>>,
    text_bytes: usize,
}

impl OldFrames {
    /// Records the text of a source; returns its number. `None`: there are too many.
    pub(crate) fn add_text(&mut self, text: &Arc<str>) -> Option<i64> {
        if let Some(known) = self.texts.iter().position(|known| known == text) {
            return i64::try_from(known).ok()?.checked_add(1);
        }
        if self.text_bytes.saturating_add(text.len()) > MAX_TEXT_BYTES {
            return None;
        }
        self.text_bytes = self.text_bytes.saturating_add(text.len());
        self.texts.push(Arc::clone(text));
        i64::try_from(self.texts.len()).ok()
    }

    /// The text with that number.
    pub(crate) fn text(&self, number: i64) -> Option<Arc<str>> {
        self.texts.get(usize::try_from(number.checked_sub(1)?).ok()?).cloned()
    }

    /// Records what a frame runs, before its class is redefined. Too many are left out.
    pub(crate) fn add_frame(&mut self, frame: FrameHeight, method: Arc<OldMethod>) {
        if self.frames.len() < MAX_FRAMES || self.frames.contains_key(&frame) {
            self.frames.insert(frame, method);
        }
    }

    /// What a frame of old code of that class runs.
    pub(crate) fn get(&self, frame: FrameHeight, class: ReferenceTypeId) -> Option<Arc<OldMethod>> {
        self.frames.get(&frame).filter(|old| old.class == class).cloned()
    }

    /// Takes all frames out: before the next swap, those that are still there are added again.
    pub(crate) fn take_frames(&mut self) -> HashMap<FrameHeight, Arc<OldMethod>> {
        std::mem::take(&mut self.frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tether_jdwp::values::MethodId;

    fn method(name: &str) -> Arc<OldMethod> {
        let (id, class, name) = (MethodId(7), ReferenceTypeId(1), name.to_owned());
        let method = DeclaredMethod { id, name, signature: "()V".to_owned(), generic: String::new(), modifiers: 0 };
        Arc::new(OldMethod { class, method, lines: Arc::default(), variables: None, source: None })
    }

    #[test]
    fn a_frame_of_old_code_is_known_by_its_thread_its_height_and_its_class() {
        let mut old = OldFrames::default();
        old.add_frame((ObjectId(1), 3), method("f"));
        let name = |old: &OldFrames, thread, height, class| {
            old.get((ObjectId(thread), height), ReferenceTypeId(class)).map(|it| it.method.name.clone())
        };
        assert_eq!(name(&old, 1, 3, 1).as_deref(), Some("f"));
        assert_eq!((name(&old, 1, 2, 1), name(&old, 2, 3, 1), name(&old, 1, 3, 2)), (None, None, None));
        old.add_frame((ObjectId(1), 3), method("g"));
        assert_eq!(name(&old, 1, 3, 1).as_deref(), Some("g"), "the frame of a later swap");
        assert_eq!(old.take_frames().len(), 1);
        assert_eq!(name(&old, 1, 3, 1), None);
    }

    #[test]
    fn each_text_is_kept_once_and_all_together_have_a_bound() {
        let mut old = OldFrames::default();
        let text: Arc<str> = "class A {}".into();
        assert_eq!((old.add_text(&text), old.add_text(&text)), (Some(1), Some(1)));
        assert_eq!(old.text(1), Some(text));
        assert_eq!((old.text(0), old.text(2), old.text(i64::MIN)), (None, None, None));
        assert_eq!(old.add_text(&"x".repeat(MAX_TEXT_BYTES).into()), None);
    }
}
