//! The ids that one joined editor sees, for those of the adapters of all targets.
//!
//! DAP wants ids below 2^31, and two targets may use the same ones. None is given twice: an id of an earlier stop is
//! recognised. Ids of frames and values are valid until their target is resumed. Does not depend on messages.

use std::collections::HashMap;

use crate::debug::inspect::ScopedId;

/// What an id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdKind {
    Thread,
    Frame,
    /// A scope or a structured value.
    Value,
    Source,
}

/// The ids of one editor.
#[derive(Debug, Default)]
pub struct EditorIds {
    last: i64,
    known: HashMap<i64, (IdKind, ScopedId)>,
    given: HashMap<(IdKind, ScopedId), i64>,
}

impl EditorIds {
    /// The editor's id for an adapter's, a new one if there is none yet.
    pub fn give(&mut self, kind: IdKind, scoped: ScopedId) -> i64 {
        if let Some(id) = self.given.get(&(kind, scoped)) {
            return *id;
        }
        self.last = self.last.saturating_add(1);
        self.known.insert(self.last, (kind, scoped));
        self.given.insert((kind, scoped), self.last);
        self.last
    }

    /// The adapter's id for an editor's. None: it is of an earlier stop, or was never given.
    pub fn find(&self, kind: IdKind, id: i64) -> Option<ScopedId> {
        self.known.get(&id).filter(|(of, _)| *of == kind).map(|(_, scoped)| *scoped)
    }

    /// The threads of a target that the editor knows, with the adapter's ids, in the order in which it got to know them.
    pub fn threads_of(&self, target: usize) -> Vec<i64> {
        let own = self.known.iter().filter(|(_, (kind, scoped))| *kind == IdKind::Thread && scoped.target == target);
        let mut threads: Vec<(i64, i64)> = own.map(|(id, (_, scoped))| (*id, scoped.id)).collect();
        threads.sort_unstable();
        threads.into_iter().map(|(_, thread)| thread).collect()
    }

    /// Whether all threads that the editor knows are of that target.
    pub fn has_only_threads_of(&self, target: usize) -> bool {
        self.known.values().all(|(kind, scoped)| *kind != IdKind::Thread || scoped.target == target)
    }

    /// A target was resumed: its frames and values are gone.
    pub fn forget_stop(&mut self, target: usize) {
        self.forget(|kind, scoped| matches!(kind, IdKind::Frame | IdKind::Value) && scoped.target == target);
    }

    /// A thread has exited.
    pub fn forget_thread(&mut self, thread: ScopedId) {
        self.forget(|kind, scoped| kind == IdKind::Thread && scoped == thread);
    }

    /// A target has ended.
    pub fn forget_target(&mut self, target: usize) {
        self.forget(|_, scoped| scoped.target == target);
    }

    fn forget(&mut self, is_gone: impl Fn(IdKind, ScopedId) -> bool) {
        self.known.retain(|_, (kind, scoped)| !is_gone(*kind, *scoped));
        self.given.retain(|(kind, scoped), _| !is_gone(*kind, *scoped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_small_unique_and_valid_until_their_target_is_resumed() {
        let mut ids = EditorIds::default();
        let (one, other) = (ScopedId { target: 0, id: 1 << 35 }, ScopedId { target: 1, id: 1 << 35 });
        let frame = ids.give(IdKind::Frame, one);
        assert_eq!(ids.give(IdKind::Frame, one), frame);
        let second = ids.give(IdKind::Frame, other);
        let thread = ids.give(IdKind::Thread, one);
        assert_eq!([frame, second, thread], [1, 2, 3]);
        assert_eq!((ids.find(IdKind::Frame, frame), ids.find(IdKind::Value, frame)), (Some(one), None));
        assert!(ids.has_only_threads_of(0) && ids.threads_of(0) == [1 << 35]);
        ids.forget_stop(0);
        assert_eq!((ids.find(IdKind::Frame, frame), ids.find(IdKind::Frame, second)), (None, Some(other)));
        assert_eq!(ids.give(IdKind::Frame, one), 4, "an id is never given twice");
        ids.forget_target(0);
        assert_eq!(ids.find(IdKind::Thread, thread), None);
        ids.forget_thread(other);
        assert!(ids.has_only_threads_of(7));
    }
}
