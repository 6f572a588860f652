//! The ids by which the client knows threads. An id is not used again.

use std::collections::HashMap;

use tether_jdwp::values::ObjectId;

/// The threads that have not ended.
#[derive(Debug, Default)]
pub(crate) struct ThreadIds {
    last_id: i64,
    ids: HashMap<ObjectId, i64>,
    threads: HashMap<i64, ObjectId>,
}

impl ThreadIds {
    /// The id of a thread: a new one, if it has none.
    pub(crate) fn id(&mut self, thread: ObjectId) -> i64 {
        *self.ids.entry(thread).or_insert_with(|| {
            self.last_id = self.last_id.saturating_add(1);
            self.threads.insert(self.last_id, thread);
            self.last_id
        })
    }

    /// The thread with that id.
    pub(crate) fn find(&self, id: i64) -> Option<ObjectId> {
        self.threads.get(&id).copied()
    }

    /// A thread has ended. Returns its id, if it had one.
    pub(crate) fn remove(&mut self, thread: ObjectId) -> Option<i64> {
        let id = self.ids.remove(&thread)?;
        self.threads.remove(&id);
        Some(id)
    }

    /// The ids of the threads, in order.
    pub(crate) fn all(&self) -> Vec<i64> {
        let mut ids: Vec<i64> = self.threads.keys().copied().collect();
        ids.sort_unstable();
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_id_until_it_ends_and_none_is_used_again() {
        let mut threads = ThreadIds::default();
        assert_eq!([7, 8, 7].map(|thread| threads.id(ObjectId(thread))), [1, 2, 1]);
        assert_eq!((threads.find(2), threads.find(3)), (Some(ObjectId(8)), None));
        assert_eq!((threads.remove(ObjectId(7)), threads.remove(ObjectId(7))), (Some(1), None));
        assert_eq!((threads.find(1), threads.id(ObjectId(7))), (None, 3));
        assert_eq!(threads.all(), [2, 3]);
    }

    #[test]
    fn many_threads_that_end_leave_nothing_behind() {
        let mut threads = ThreadIds::default();
        for thread in 0..200_000 {
            threads.id(ObjectId(thread));
            threads.remove(ObjectId(thread));
        }
        assert!(threads.ids.is_empty() && threads.threads.is_empty());
    }
}
