//! What can be read and subscribed to over MCP: the window's state, its last build, its console; the debug sessions; the
//! timeline.
//!
//! Owns the URIs and who is told of a change. Does not depend on how a resource is read from the supervisor.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rmcp::model::{ListResourcesResult, Resource, ResourceContents, SubscriptionFilter};
use rmcp::service::ServiceError;
use serde_json::Value;
use tether_base::display_text::escape_text;
use tether_base::sync::lock;
use tether_wire::rpc::RpcIncoming;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::api::page::PageConsoleParams;
use crate::api::protocol::{
    DEBUG_DID_CHANGE_STATE, TIMELINE_DID_CHANGE, WINDOW_DID_CHANGE_CONSOLE, WINDOW_DID_CHANGE_STATE,
};
use crate::api::timeline::TimelineReadParams;
use crate::api::window::WindowStatusParams;
use crate::api::{OperationGroup, OperationParams, debug, find_operation};
use crate::frontends::mcp::tool_names::name_tools;
use crate::frontends::mcp::tools::escape_values;
use crate::frontends::render;

/// One resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    State,
    Build,
    Console,
    Sessions,
    Timeline,
}

impl ResourceKind {
    /// All resources, in the order in which they are listed.
    pub const ALL: [ResourceKind; 5] = [
        ResourceKind::State,
        ResourceKind::Build,
        ResourceKind::Console,
        ResourceKind::Sessions,
        ResourceKind::Timeline,
    ];

    /// The URI of the resource.
    pub fn uri(self) -> &'static str {
        match self {
            ResourceKind::State => "tether://window/state",
            ResourceKind::Build => "tether://window/build",
            ResourceKind::Console => "tether://window/console",
            ResourceKind::Sessions => "tether://debug/sessions",
            ResourceKind::Timeline => "tether://timeline",
        }
    }

    /// The topic of a URI.
    pub fn from_uri(uri: &str) -> Option<ResourceKind> {
        ResourceKind::ALL.into_iter().find(|topic| topic.uri() == uri)
    }

    fn description(self) -> (&'static str, &'static str, &'static str) {
        match self {
            ResourceKind::State => ("window state", "The result of window_status", "application/json"),
            ResourceKind::Build => ("last build", "The last lines of the last build", "text/plain"),
            ResourceKind::Console => ("console", "The newest console entries, as text", "text/plain"),
            ResourceKind::Sessions => ("debug sessions", "The result of debug_status", "application/json"),
            ResourceKind::Timeline => ("timeline", "The newest events of the workspace, as text", "text/plain"),
        }
    }

    /// The JSON-RPC method whose result contains it.
    pub fn method(self) -> &'static str {
        match self {
            ResourceKind::State | ResourceKind::Build => WindowStatusParams::METHOD,
            ResourceKind::Console => PageConsoleParams::METHOD,
            ResourceKind::Sessions => debug::DebugStatusParams::METHOD,
            ResourceKind::Timeline => TimelineReadParams::METHOD,
        }
    }

    /// The contents, from the result of [`ResourceKind::method`].
    pub fn contents(self, answer: &Value) -> ResourceContents {
        let text = match self {
            ResourceKind::State | ResourceKind::Sessions => {
                let mut answer = answer.clone();
                name_tools(&mut answer);
                escape_values(&mut answer);
                answer.to_string()
            }
            ResourceKind::Build => match answer.get("lastBuild") {
                None => "nothing has been built yet".to_owned(),
                Some(build) => escape_text(build["tail"].as_str().unwrap_or_default()),
            },
            ResourceKind::Console | ResourceKind::Timeline => escape_text(&render::render_text(self.method(), answer)),
        };
        ResourceContents::text(text, self.uri()).with_mime_type(self.description().2)
    }
}

/// The list of the resources of a part of the API.
pub fn list_resources(group: Option<OperationGroup>) -> ListResourcesResult {
    let offered =
        |topic: &ResourceKind| find_operation(topic.method()).is_some_and(|it| it.group.is_offered_with(group));
    let resource = |topic: ResourceKind| {
        let (name, description, mime_type) = topic.description();
        Resource::new(topic.uri(), name).with_description(description).with_mime_type(mime_type)
    };
    ListResourcesResult::with_all_items(ResourceKind::ALL.into_iter().filter(offered).map(resource).collect())
}

/// How often each resource has changed since the start of this server.
type ChangeCounts = [u64; ResourceKind::ALL.len()];

/// Counts changes, and notifies subscribers of them.
#[derive(Default)]
pub struct ResourceWatcher {
    changed: watch::Sender<ChangeCounts>,
    /// Of clients that subscribe to one resource at a time (before 2026-07-28).
    single: Mutex<HashMap<ResourceKind, AbortHandle>>,
}

impl ResourceWatcher {
    /// Counts the supervisor's notifications until its connection closes, which is a change of state too.
    pub async fn watch_notifications(&self, mut incoming: mpsc::Receiver<RpcIncoming>) {
        let mut last_build = None;
        while let Some(message) = incoming.recv().await {
            let RpcIncoming::Notification { method, params } = message else { continue };
            match method.as_str() {
                WINDOW_DID_CHANGE_STATE => {
                    let build = params.get("lastBuild");
                    self.count_changes(&[ResourceKind::State]);
                    if build != last_build.as_ref() {
                        self.count_changes(&[ResourceKind::Build]);
                    }
                    last_build = build.cloned();
                }
                WINDOW_DID_CHANGE_CONSOLE => self.count_changes(&[ResourceKind::Console]),
                DEBUG_DID_CHANGE_STATE => self.count_changes(&[ResourceKind::Sessions]),
                TIMELINE_DID_CHANGE => self.count_changes(&[ResourceKind::Timeline]),
                _ => {}
            }
        }
        self.count_changes(&[ResourceKind::State, ResourceKind::Sessions, ResourceKind::Timeline]);
    }

    fn count_changes(&self, kinds: &[ResourceKind]) {
        self.changed.send_modify(|counts| kinds.iter().for_each(|kind| counts[*kind as usize] += 1));
    }

    /// Calls `notify` for each change of one of `topics` from now on, until it fails; changes during a call are merged.
    pub async fn follow<T, E>(&self, topics: Vec<ResourceKind>, tell: impl Fn(ResourceKind) -> T)
    where
        T: Future<Output = Result<(), E>>,
    {
        let mut changes = self.changed.subscribe();
        let mut seen = *changes.borrow_and_update();
        while changes.changed().await.is_ok() {
            let now = *changes.borrow_and_update();
            for topic in topics.iter().copied().filter(|topic| now[*topic as usize] != seen[*topic as usize]) {
                if tell(topic).await.is_err() {
                    return;
                }
            }
            seen = now;
        }
    }

    /// Follows one resource in a task of its own, until [`ResourceWatcher::stop_following`].
    pub fn follow_single<T>(
        self: &Arc<Self>,
        topic: ResourceKind,
        tell: impl Fn(ResourceKind) -> T + Send + Sync + 'static,
    ) where
        T: Future<Output = Result<(), ServiceError>> + Send,
    {
        let resources = Arc::clone(self);
        let following = tokio::spawn(async move { resources.follow(vec![topic], tell).await });
        if let Some(before) = lock(&self.single).insert(topic, following.abort_handle()) {
            before.abort();
        }
    }

    /// Ends [`ResourceWatcher::follow_single`].
    pub fn stop_following(&self, topic: ResourceKind) {
        if let Some(following) = lock(&self.single).remove(&topic) {
            following.abort();
        }
    }
}

/// The part of a subscription that can be fulfilled.
pub fn accepted_filter(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    SubscriptionFilter::builder()
        .resource_subscriptions(uris.filter(|uri| ResourceKind::from_uri(uri).is_some()).cloned())
        .build()
}
