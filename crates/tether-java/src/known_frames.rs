//! The frames of stopped threads that were listed already: their ids and places, which need not be requested again.
//!
//! Ids of frames change whenever their thread runs, if only for a call of an evaluation: then all are forgotten. What was
//! requested before that and arrives after it is not added.

use std::collections::HashMap;

use tether_jdwp::commands::threads::FrameEntryOfThread;
use tether_jdwp::values::ObjectId;

/// The frames that are known.
#[derive(Debug, Default)]
pub(crate) struct KnownFrames {
    /// How often they were forgotten.
    epoch: u64,
    /// By thread and depth: 0 is the innermost.
    entries: HashMap<(ObjectId, usize), FrameEntryOfThread>,
}

impl KnownFrames {
    /// To be read before frames are requested.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The frame, if it is known.
    pub(crate) fn get(&self, thread: ObjectId, depth: usize) -> Option<FrameEntryOfThread> {
        self.entries.get(&(thread, depth)).cloned()
    }

    /// Adds frames of a thread, from a depth on, that were requested in `epoch`.
    pub(crate) fn add(&mut self, epoch: u64, thread: ObjectId, first: usize, entries: &[FrameEntryOfThread]) {
        if epoch == self.epoch {
            let place = |at: usize| (thread, first.saturating_add(at));
            self.entries.extend(entries.iter().enumerate().map(|(at, entry)| (place(at), entry.clone())));
        }
    }

    /// A thread runs, has run, or its frames have changed.
    pub(crate) fn forget(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tether_jdwp::values::{CodeLocation, FrameId, MethodId, ReferenceTypeId, TYPE_CLASS};

    #[test]
    fn frames_are_known_until_a_thread_runs() {
        let thread = ObjectId(1);
        let location = CodeLocation { type_tag: TYPE_CLASS, class: ReferenceTypeId(2), method: MethodId(3), index: 4 };
        let entries = [5, 6].map(|id| FrameEntryOfThread { frame: FrameId(id), location });
        let id = |known: &KnownFrames, depth| known.get(thread, depth).map(|entry| entry.frame.0);
        let mut known = KnownFrames::default();
        let epoch = known.epoch();
        known.add(epoch, thread, 1, &entries);
        assert_eq!([0, 1, 2, 3].map(|depth| id(&known, depth)), [None, Some(5), Some(6), None]);
        assert!(known.get(ObjectId(2), 1).is_none());
        known.forget();
        assert!(id(&known, 1).is_none());
        // The answer to a request from before.
        known.add(epoch, thread, 1, &entries);
        assert!(id(&known, 1).is_none());
    }
}
