//! Refs: stable names such as `e12` by which callers refer to elements.
//!
//! A number is used once and never reused: not for the next document, not for the next window, and not by the next
//! supervisor, since numbers are reserved on disk in blocks before they are used. A ref therefore either means the same
//! element as before or is reported as stale.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Mutex;

use tether_base::error::{Error, ErrorKind};
use tether_base::sync::lock;

/// Refs kept at the same time; beyond that the oldest become stale.
const MAX_REFS: usize = 50_000;
/// Numbers reserved on disk at a time.
const RESERVED_BLOCK: u32 = 1000;

/// Source of the numbers of refs.
pub struct RefCounter {
    file: Option<PathBuf>,
    state: Mutex<CounterState>,
}

struct CounterState {
    /// The next number.
    next: u32,
    /// The first number that is not reserved on disk.
    reserved: u32,
}

impl RefCounter {
    /// `file` keeps the reservation; without it, numbers are unique only within this process.
    pub fn new(file: Option<PathBuf>) -> RefCounter {
        let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        let next = text.and_then(|text| text.trim().parse().ok()).filter(|next| *next < u32::MAX / 2).unwrap_or(1);
        RefCounter { file, state: Mutex::new(CounterState { next, reserved: next }) }
    }

    /// A new number.
    pub fn next_number(&self) -> u32 {
        let mut state = lock(&self.state);
        if state.next >= state.reserved {
            state.reserved = state.next + RESERVED_BLOCK;
            if let Some(file) = &self.file {
                // On failure only uniqueness over supervisors is lost.
                let _ = std::fs::write(file, state.reserved.to_string());
            }
        }
        state.next += 1;
        state.next - 1
    }

    /// Whether this number may have been used for a ref.
    pub fn is_issued(&self, number: u32) -> bool {
        number < lock(&self.state).next
    }
}

/// An element: its document, and its number in the injected script of that document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementHandle {
    /// The document that contains it.
    pub document: DocumentContext,
    /// Its number in the injected script.
    pub number: u32,
}

/// The isolated world of one document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentContext {
    /// The CDP session of its target.
    pub session: String,
    /// The execution context id within that session.
    pub context: i64,
}

/// The known refs, in both directions.
#[derive(Default)]
pub struct ElementRefs {
    handles: BTreeMap<u32, ElementHandle>,
    /// The numbers of refs by document and element number.
    refs: HashMap<DocumentContext, HashMap<u32, u32>>,
}

impl ElementRefs {
    /// The number of an element's ref: the existing one, or a new one.
    pub fn assign_ref(&mut self, handle: &ElementHandle, counter: &RefCounter) -> u32 {
        if let Some(known) = self.refs.get(&handle.document).and_then(|of| of.get(&handle.number)) {
            return *known;
        }
        let number = counter.next_number();
        self.handles.insert(number, handle.clone());
        self.refs.entry(handle.document.clone()).or_default().insert(handle.number, number);
        if self.handles.len() > MAX_REFS
            && let Some((_, oldest)) = self.handles.pop_first()
            && let Some(of) = self.refs.get_mut(&oldest.document)
        {
            of.remove(&oldest.number);
        }
        number
    }

    /// The element of a ref such as `e12`. Errors: not a ref, never assigned, stale.
    pub fn resolve_ref(&self, name: &str, counter: &RefCounter) -> Result<ElementHandle, Error> {
        let number = name.strip_prefix('e').and_then(|digits| digits.parse::<u32>().ok());
        let Some(number) = number else {
            return Err(Error::usage(format!("{name:?} is not a ref"))
                .hint("refs look like `e12`; `tether snapshot` shows them"));
        };
        if let Some(handle) = self.handles.get(&number) {
            return Ok(handle.clone());
        }
        Err(if counter.is_issued(number) {
            stale_ref_error(name, "its document, or its window, is gone (or it is very old)")
        } else {
            Error::new(ErrorKind::NotFound, format!("there is no element {name}"))
                .hint("`tether snapshot` shows the elements of the page")
        })
    }

    /// Makes the refs of all documents of a session stale, or those of one execution context.
    pub fn remove_documents(&mut self, session: &str, context: Option<i64>) {
        let is_removed =
            |document: &DocumentContext| document.session == session && context.is_none_or(|it| it == document.context);
        let removed: Vec<DocumentContext> = self.refs.keys().filter(|document| is_removed(document)).cloned().collect();
        for number in removed.iter().filter_map(|document| self.refs.remove(document)).flat_map(HashMap::into_values) {
            self.handles.remove(&number);
        }
    }
}

/// The error for a ref whose element no longer exists.
pub fn stale_ref_error(name: &str, why: &str) -> Error {
    Error::new(ErrorKind::NotFound, "stale ref: take a new snapshot").because(format!("{name}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(session: &str, context: i64, number: u32) -> ElementHandle {
        ElementHandle { document: DocumentContext { session: session.into(), context }, number }
    }

    #[test]
    fn an_element_keeps_its_ref_and_the_ref_of_a_removed_document_is_stale() {
        let (counter, mut refs) = (RefCounter::new(None), ElementRefs::default());
        let (one, two, other) = (handle("S", 1, 1), handle("S", 1, 2), handle("S", 2, 1));
        assert_eq!([&one, &two, &one, &other].map(|it| refs.assign_ref(it, &counter)), [1, 2, 1, 3]);
        assert_eq!(refs.resolve_ref("e3", &counter).unwrap(), other);
        refs.remove_documents("S", Some(1));
        let error = refs.resolve_ref("e1", &counter).unwrap_err().to_string();
        assert!(error.starts_with("stale ref: take a new snapshot") && error.contains("e1: "), "{error}");
        // The same element numbers in a new document get new refs.
        assert_eq!(refs.assign_ref(&one, &counter), 4);
        assert_eq!(refs.resolve_ref("e3", &counter).unwrap(), other);
        refs.remove_documents("S", None);
        assert!(refs.resolve_ref("e3", &counter).is_err() && refs.handles.is_empty());
        for (name, expect) in
            [("e99", "there is no element e99"), ("12", "is not a ref"), ("ex", "is not a ref"), ("", "is not a ref")]
        {
            assert!(refs.resolve_ref(name, &counter).unwrap_err().to_string().contains(expect), "{name}");
        }
    }

    #[test]
    fn the_number_of_refs_is_bounded_and_the_oldest_become_stale() {
        let (counter, mut refs) = (RefCounter::new(None), ElementRefs::default());
        for number in 0..MAX_REFS as u32 + 3 {
            refs.assign_ref(&handle("S", 1, number), &counter);
        }
        assert_eq!((refs.handles.len(), refs.refs.values().map(HashMap::len).sum()), (MAX_REFS, MAX_REFS));
        assert!(refs.resolve_ref("e3", &counter).unwrap_err().doing.starts_with("stale ref"));
        assert!(refs.resolve_ref("e4", &counter).is_ok());
    }

    #[test]
    fn numbers_are_never_reused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("refs");
        let mut last = 0;
        for _ in 0..3 {
            let counter = RefCounter::new(Some(file.clone()));
            for _ in 0..RESERVED_BLOCK + 5 {
                let number = counter.next_number();
                assert!(number > last, "{number} after {last}");
                last = number;
            }
        }
        std::fs::write(&file, "garbage").unwrap();
        assert_eq!(RefCounter::new(Some(file)).next_number(), 1);
    }
}
