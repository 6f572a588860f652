//! Where a thread of JavaScript runs: in Node, or in which part of a browser.

/// Where an isolate runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IsolateHost {
    Node,
    /// A page, or a frame of it with a process of its own, by the id of the frame.
    Document {
        frame: String,
    },
    /// A worker of a page.
    WebWorker,
    /// It answers only once it runs.
    ServiceWorker,
}
