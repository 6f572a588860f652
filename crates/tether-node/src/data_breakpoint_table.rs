//! The data breakpoints of a session, and the properties that they watch.
//!
//! Plain data: sends nothing.

use std::collections::{HashMap, HashSet};

use tether_backend::hit_condition::HitCondition;
use tether_dap::types::DataBreakpoint;

/// The data breakpoints of a session.
#[derive(Default)]
pub(crate) struct DataBreakpointTable {
    /// The object of the script in each isolate that watches.
    pub scripts: HashMap<i64, String>,
    pub entries: Vec<NodeDataBreakpoint>,
    /// Isolates that have to leave a setter before they step out.
    pub leaving_setters: HashSet<i64>,
}

/// One data breakpoint.
#[derive(Clone, Debug)]
pub(crate) struct NodeDataBreakpoint {
    pub id: i64,
    pub wanted: DataBreakpoint,
    pub property: WatchedProperty,
    pub hits: Option<HitCondition>,
    /// How often the property was written with the condition true.
    pub hit_count: u64,
}

/// A property that can be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchedProperty {
    pub isolate: i64,
    /// Its number in the isolate.
    pub watch: i64,
    /// As the client has named it.
    pub name: String,
}

impl WatchedProperty {
    /// Of an id that [`WatchedProperty::data_id`] has made in the same session.
    pub(crate) fn parse(session: &str, data_id: &str) -> Option<WatchedProperty> {
        let mut parts = data_id.strip_prefix(session)?.strip_prefix('/')?.splitn(3, '/');
        let (isolate, watch) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(WatchedProperty { isolate, watch, name: parts.next()?.to_owned() })
    }

    /// The id of DAP; no other session takes it.
    pub(crate) fn data_id(&self, session: &str) -> String {
        format!("{session}/{}/{}/{}", self.isolate, self.watch, self.name)
    }
}

impl DataBreakpointTable {
    /// An isolate is gone, and so are its properties.
    pub(crate) fn forget_isolate(&mut self, isolate: i64) {
        self.scripts.remove(&isolate);
        self.leaving_setters.remove(&isolate);
        self.entries.retain(|entry| entry.property.isolate != isolate);
    }

    /// Whether a data breakpoint watches a property.
    pub(crate) fn is_watching(&self, property: &WatchedProperty) -> bool {
        let is_same = |other: &WatchedProperty| (other.isolate, other.watch) == (property.isolate, property.watch);
        self.entries.iter().any(|entry| is_same(&entry.property))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_data_has_its_place_and_its_name() {
        let property = WatchedProperty { isolate: 1, watch: 22, name: "a['/'].b".to_owned() };
        assert_eq!(WatchedProperty::parse("s", &property.data_id("s")), Some(property));
        for bad in ["", "s", "s/1", "s/1/2", "s/x/2/a", "t/1/2/a", "&total"] {
            assert_eq!(WatchedProperty::parse("s", bad), None, "{bad}");
        }
    }
}
