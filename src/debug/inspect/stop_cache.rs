//! Responses of one stop: its stacks and scopes are requested once, and the sizes of values are kept.
//!
//! Valid for one generation of the session. Stacks and scopes only until an evaluation, which may run the program; sizes
//! until the program is resumed.

use std::collections::HashMap;

use tether_dap::types::DapScope;

use super::frame::ThreadStack;
use super::scoped_id::ScopedId;

/// How many variables a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSize {
    pub indexed: i64,
    pub named: i64,
}

/// The cached responses of one stop.
#[derive(Debug, Default)]
pub struct StopCache {
    generation: u64,
    /// By thread, from the top; with how many frames were requested.
    stacks: HashMap<ScopedId, (ThreadStack, usize)>,
    /// By frame.
    scopes: HashMap<ScopedId, Vec<DapScope>>,
    /// Of values with elements, by their reference.
    sizes: HashMap<ScopedId, ValueSize>,
}

impl StopCache {
    /// The topmost frames of a thread, if that many are known, or all that there are.
    pub fn stack(&self, generation: u64, thread: ScopedId, levels: usize) -> Option<ThreadStack> {
        let (stack, requested) = self.stacks.get(&thread).filter(|_| generation == self.generation)?;
        if *requested < levels && stack.frames.len() >= *requested {
            return None;
        }
        let frames = stack.frames.iter().take(levels).cloned().collect();
        Some(ThreadStack { frames, ..*stack })
    }

    /// Whether a known frame is in that source file.
    pub fn has_frame_in(&self, generation: u64, path: &str) -> bool {
        let frames = self.stacks.values().flat_map(|(stack, _)| &stack.frames);
        generation == self.generation && frames.into_iter().any(|frame| frame.path() == Some(path))
    }

    /// The scopes of a frame.
    pub fn scopes(&self, generation: u64, frame: ScopedId) -> Option<Vec<DapScope>> {
        self.scopes.get(&frame).filter(|_| generation == self.generation).cloned()
    }

    /// Adds a response to a request that was sent in `generation`.
    pub fn insert_stack(&mut self, generation: u64, stack: ThreadStack, levels: usize) {
        if self.advance_to(generation) {
            self.stacks.insert(stack.thread, (stack, levels));
        }
    }

    /// Adds the scopes of a frame, requested in `generation`.
    pub fn insert_scopes(&mut self, generation: u64, frame: ScopedId, scopes: Vec<DapScope>) {
        if self.advance_to(generation) {
            self.scopes.insert(frame, scopes);
        }
    }

    /// Adds the size of a value with elements, requested in `generation`.
    pub fn insert_size(&mut self, generation: u64, value: ScopedId, indexed: Option<i64>, named: Option<i64>) {
        let Some(indexed) = indexed.filter(|count| *count > 0) else { return };
        if self.advance_to(generation) {
            self.sizes.insert(value, ValueSize { indexed, named: named.unwrap_or(0).max(0) });
        }
    }

    /// The size of a value that is known to have elements.
    pub fn size(&self, generation: u64, value: ScopedId) -> Option<ValueSize> {
        self.sizes.get(&value).filter(|_| generation == self.generation).copied()
    }

    /// The program may have run, although its state has not changed.
    pub fn clear_frames(&mut self) {
        self.stacks.clear();
        self.scopes.clear();
    }

    /// Whether a response of `generation` is still valid.
    fn advance_to(&mut self, generation: u64) -> bool {
        if generation > self.generation {
            *self = StopCache { generation, ..StopCache::default() };
        }
        generation == self.generation
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::StackFrameInfo;
    use super::*;
    use tether_dap::types::DapSource;

    const THREAD: ScopedId = ScopedId { target: 0, id: 1 };

    fn stack(count: i64) -> ThreadStack {
        let frame = |id| StackFrameInfo {
            id: ScopedId { target: 0, id },
            name: String::new(),
            source: None,
            line: 1,
            column: 1,
            subtle: false,
        };
        ThreadStack { thread: THREAD, frames: (0..count).map(frame).collect(), total: None }
    }

    #[test]
    fn as_many_frames_as_are_known_are_returned_and_no_more() {
        let mut cache = StopCache::default();
        cache.insert_stack(1, stack(5), 5);
        let frames = |cache: &StopCache, levels| cache.stack(1, THREAD, levels).map(|it| it.frames.len());
        assert_eq!([frames(&cache, 1), frames(&cache, 5), frames(&cache, 6)], [Some(1), Some(5), None]);
        // Fewer than were requested: these are all.
        cache.insert_stack(1, stack(3), 5);
        assert_eq!(frames(&cache, 100), Some(3));
    }

    #[test]
    fn a_file_is_named_by_the_frames_of_its_own_stop_only() {
        let mut cache = StopCache::default();
        let mut named = stack(2);
        named.frames[1].source = Some(DapSource { path: Some("/lib/a.py".to_owned()), ..DapSource::default() });
        cache.insert_stack(1, named, 5);
        assert!(cache.has_frame_in(1, "/lib/a.py") && !cache.has_frame_in(1, "/lib/a"));
        assert!(!cache.has_frame_in(2, "/lib/a.py"));
    }

    #[test]
    fn responses_are_valid_until_something_changes() {
        let mut cache = StopCache::default();
        cache.insert_stack(2, stack(1), 5);
        cache.insert_scopes(2, THREAD, Vec::new());
        assert!(cache.stack(3, THREAD, 1).is_none() && cache.scopes(3, THREAD).is_none());
        // A late response to an old request.
        cache.insert_stack(1, stack(1), 5);
        assert!(cache.stack(1, THREAD, 1).is_none() && cache.stack(2, THREAD, 1).is_some());
        cache.clear_frames();
        assert!(cache.stack(2, THREAD, 1).is_none() && cache.scopes(2, THREAD).is_none());
    }
}
