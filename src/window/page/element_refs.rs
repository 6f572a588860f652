//! Refs: the names, such as `e12`, under which elements are known outside.
//!
//! A number is given once, and never again: neither in the next document, nor in the next window, nor by the next
//! supervisor, since whole blocks of numbers are set down as given before they are. So a ref means what it meant, or
//! is known to be stale.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, ErrorKind};

/// How many elements are known at the same time; the oldest refs go stale first.
const MOST: usize = 50_000;
/// How many numbers are set down as given at a time.
const BLOCK: u32 = 1000;

/// Gives numbers.
pub struct RefCounter {
    file: Option<PathBuf>,
    given: Mutex<CounterState>,
}

struct CounterState {
    /// The next one to give.
    next: u32,
    /// From here on they must be set down first.
    reserved: u32,
}

impl RefCounter {
    /// Without a file, they are unique only as long as this lives.
    pub fn new(file: Option<PathBuf>) -> RefCounter {
        let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        let next = text.and_then(|text| text.trim().parse().ok()).filter(|next| *next < u32::MAX / 2).unwrap_or(1);
        RefCounter { file, given: Mutex::new(CounterState { next, reserved: next }) }
    }

    pub fn next_number(&self) -> u32 {
        let mut given = lock_unpoisoned(&self.given);
        if given.next >= given.reserved {
            given.reserved = given.next + BLOCK;
            if let Some(file) = &self.file {
                // Where it cannot be written, the refs of the next supervisor may repeat these: nothing else is lost.
                let _ = std::fs::write(file, given.reserved.to_string());
            }
        }
        given.next += 1;
        given.next - 1
    }

    /// Whether this number may have been given.
    pub fn is_issued(&self, number: u32) -> bool {
        number < lock_unpoisoned(&self.given).next
    }
}

/// Where the script of a document is, and under which number it knows an element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementHandle {
    pub place: DocumentContext,
    pub number: u32,
}

/// The isolated world of one document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentContext {
    /// The session of its target.
    pub session: String,
    pub context: i64,
}

/// What the refs that were given mean.
#[derive(Default)]
pub struct ElementRefs {
    handles: BTreeMap<u32, ElementHandle>,
    numbers: HashMap<DocumentContext, HashMap<u32, u32>>,
}

impl ElementRefs {
    /// The ref of an element: the one that it has, or a new one.
    pub fn assign_ref(&mut self, handle: &ElementHandle, numbers: &RefCounter) -> u32 {
        if let Some(known) = self.numbers.get(&handle.place).and_then(|of| of.get(&handle.number)) {
            return *known;
        }
        let number = numbers.next_number();
        self.handles.insert(number, handle.clone());
        self.numbers.entry(handle.place.clone()).or_default().insert(handle.number, number);
        if self.handles.len() > MOST
            && let Some((_, oldest)) = self.handles.pop_first()
            && let Some(of) = self.numbers.get_mut(&oldest.place)
        {
            of.remove(&oldest.number);
        }
        number
    }

    /// What `e12` is. Errors: it is none, it is stale.
    pub fn resolve_ref(&self, name: &str, numbers: &RefCounter) -> Result<ElementHandle, Error> {
        let number = name.strip_prefix('e').and_then(|digits| digits.parse::<u32>().ok());
        let Some(number) = number else {
            return Err(
                Error::usage(format!("{name:?} is no ref")).hint("refs look like `e12`; `window_snapshot` shows them")
            );
        };
        if let Some(handle) = self.handles.get(&number) {
            return Ok(handle.clone());
        }
        Err(if numbers.is_issued(number) {
            stale_ref_error(name, "its document, or its window, is gone (or it is very old)")
        } else {
            Error::new(ErrorKind::NotFound, format!("there is no element {name}"))
                .hint("`window_snapshot` shows which there are")
        })
    }

    /// The documents of a session, or one of them, are gone.
    pub fn remove_document(&mut self, session: &str, context: Option<i64>) {
        let gone = |place: &DocumentContext| place.session == session && context.is_none_or(|it| it == place.context);
        let places: Vec<DocumentContext> = self.numbers.keys().filter(|place| gone(place)).cloned().collect();
        for number in places.iter().filter_map(|place| self.numbers.remove(place)).flat_map(HashMap::into_values) {
            self.handles.remove(&number);
        }
    }
}

/// What every use of a ref comes to whose element is no longer there.
pub fn stale_ref_error(name: &str, why: &str) -> Error {
    Error::new(ErrorKind::NotFound, "stale ref: take a new snapshot").because(format!("{name}: {why}"))
}

pub fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(session: &str, context: i64, number: u32) -> ElementHandle {
        ElementHandle { place: DocumentContext { session: session.into(), context }, number }
    }

    #[test]
    fn an_element_keeps_its_ref_and_a_gone_one_is_stale() {
        let (numbers, mut refs) = (RefCounter::new(None), ElementRefs::default());
        let (one, two, other) = (handle("S", 1, 1), handle("S", 1, 2), handle("S", 2, 1));
        assert_eq!([&one, &two, &one, &other].map(|it| refs.assign_ref(it, &numbers)), [1, 2, 1, 3]);
        assert_eq!(refs.resolve_ref("e3", &numbers).unwrap(), other);
        refs.remove_document("S", Some(1));
        let told = refs.resolve_ref("e1", &numbers).unwrap_err().to_string();
        assert!(told.starts_with("stale ref: take a new snapshot") && told.contains("e1: "), "{told}");
        // The same numbers in a new document are new refs.
        assert_eq!(refs.assign_ref(&one, &numbers), 4);
        assert_eq!(refs.resolve_ref("e3", &numbers).unwrap(), other);
        refs.remove_document("S", None);
        assert!(refs.resolve_ref("e3", &numbers).is_err() && refs.handles.is_empty());
        for (name, expect) in
            [("e99", "there is no element e99"), ("12", "is no ref"), ("ex", "is no ref"), ("", "is no ref")]
        {
            assert!(refs.resolve_ref(name, &numbers).unwrap_err().to_string().contains(expect), "{name}");
        }
    }

    #[test]
    fn what_is_known_is_bounded_and_the_oldest_goes_stale() {
        let (numbers, mut refs) = (RefCounter::new(None), ElementRefs::default());
        for number in 0..MOST as u32 + 3 {
            refs.assign_ref(&handle("S", 1, number), &numbers);
        }
        assert_eq!((refs.handles.len(), refs.numbers.values().map(HashMap::len).sum()), (MOST, MOST));
        assert!(refs.resolve_ref("e3", &numbers).unwrap_err().doing.starts_with("stale ref"));
        assert!(refs.resolve_ref("e4", &numbers).is_ok());
    }

    #[test]
    fn numbers_are_never_given_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("refs");
        let mut last = 0;
        for _ in 0..3 {
            let numbers = RefCounter::new(Some(file.clone()));
            for _ in 0..BLOCK + 5 {
                let given = numbers.next_number();
                assert!(given > last, "{given} after {last}");
                last = given;
            }
        }
        std::fs::write(&file, "garbage").unwrap();
        assert_eq!(RefCounter::new(Some(file)).next_number(), 1);
    }
}
