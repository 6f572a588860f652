//! What can be read and subscribed to over MCP: the window's state, its last build, its console; the debug sessions.
//!
//! Owns the URIs and who is told of a change. Does not depend on how a resource is read from the supervisor.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ListResourcesResult, Resource, ResourceContents, SubscriptionFilter};
use rmcp::service::ServiceError;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::api::page::PageConsoleParams;
use crate::api::protocol::{DEBUG_DID_CHANGE_STATE, WINDOW_DID_CHANGE_CONSOLE, WINDOW_DID_CHANGE_STATE};
use crate::api::window::WindowStatusParams;
use crate::api::{OperationGroup, OperationParams, debug};
use crate::frontends::render;
use crate::wire::rpc::RpcIncoming;

/// One resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    State,
    Build,
    Console,
    Sessions,
}

impl ResourceKind {
    /// All resources, in the order in which they are listed.
    pub const ALL: [ResourceKind; 4] =
        [ResourceKind::State, ResourceKind::Build, ResourceKind::Console, ResourceKind::Sessions];

    /// The URI of the resource.
    pub fn uri(self) -> &'static str {
        match self {
            ResourceKind::State => "tether://window/state",
            ResourceKind::Build => "tether://window/build",
            ResourceKind::Console => "tether://window/console",
            ResourceKind::Sessions => "tether://debug/sessions",
        }
    }

    /// The topic of a URI.
    pub fn from_uri(uri: &str) -> Option<ResourceKind> {
        ResourceKind::ALL.into_iter().find(|topic| topic.uri() == uri)
    }

    fn description(self) -> (&'static str, &'static str, &'static str) {
        match self {
            ResourceKind::State => ("window state", "As the result of window_status", "application/json"),
            ResourceKind::Build => ("last build", "The last lines of the last build", "text/plain"),
            ResourceKind::Console => ("console", "The newest entries, as the text of window_console", "text/plain"),
            ResourceKind::Sessions => ("debug sessions", "As the result of debug_status", "application/json"),
        }
    }

    /// The JSON-RPC method whose result contains it.
    pub fn method(self) -> &'static str {
        match self {
            ResourceKind::State | ResourceKind::Build => WindowStatusParams::METHOD,
            ResourceKind::Console => PageConsoleParams::METHOD,
            ResourceKind::Sessions => debug::DebugStatusParams::METHOD,
        }
    }

    fn group(self) -> OperationGroup {
        match self {
            ResourceKind::State | ResourceKind::Build | ResourceKind::Console => OperationGroup::Window,
            ResourceKind::Sessions => OperationGroup::Debug,
        }
    }

    /// The contents, from the result of [`ResourceKind::method`].
    pub fn contents(self, answer: &Value) -> ResourceContents {
        let text = match self {
            ResourceKind::State | ResourceKind::Sessions => answer.to_string(),
            ResourceKind::Build => match answer.get("lastBuild") {
                None => "nothing has been built yet".to_owned(),
                Some(build) => build["tail"].as_str().unwrap_or_default().to_owned(),
            },
            ResourceKind::Console => render::render_text(PageConsoleParams::METHOD, answer),
        };
        ResourceContents::text(text, self.uri()).with_mime_type(self.description().2)
    }
}

/// The list of the resources of a part of the API.
pub fn list_resources(group: Option<OperationGroup>) -> ListResourcesResult {
    let offered = |topic: &ResourceKind| group.is_none_or(|group| group == topic.group());
    let resource = |topic: ResourceKind| {
        let (name, description, mime_type) = topic.description();
        Resource::new(topic.uri(), name).with_description(description).with_mime_type(mime_type)
    };
    ListResourcesResult::with_all_items(ResourceKind::ALL.into_iter().filter(offered).map(resource).collect())
}

/// How often each resource has changed since the start of this server.
#[derive(Clone, Copy, Debug, Default)]
struct ChangeCounts([u64; ResourceKind::ALL.len()]);

impl ChangeCounts {
    fn count(&mut self, topic: ResourceKind) -> &mut u64 {
        &mut self.0[topic as usize]
    }
}

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
                WINDOW_DID_CHANGE_STATE => {}
                WINDOW_DID_CHANGE_CONSOLE => {
                    self.changed.send_modify(|changed| *changed.count(ResourceKind::Console) += 1);
                    continue;
                }
                DEBUG_DID_CHANGE_STATE => {
                    self.changed.send_modify(|changed| *changed.count(ResourceKind::Sessions) += 1);
                    continue;
                }
                _ => continue,
            }
            let build = params.get("lastBuild").cloned();
            self.changed.send_modify(|changed| {
                *changed.count(ResourceKind::State) += 1;
                *changed.count(ResourceKind::Build) += u64::from(build != last_build);
            });
            last_build = build;
        }
        self.changed.send_modify(|changed| {
            *changed.count(ResourceKind::State) += 1;
            *changed.count(ResourceKind::Sessions) += 1;
        });
    }

    /// Calls `notify` for each change of one of `topics` from now on, until it fails; changes during a call are merged.
    pub async fn follow<T, E>(&self, topics: Vec<ResourceKind>, tell: impl Fn(ResourceKind) -> T)
    where
        T: Future<Output = Result<(), E>>,
    {
        let mut changes = self.changed.subscribe();
        let mut seen = *changes.borrow_and_update();
        while changes.changed().await.is_ok() {
            let mut now = *changes.borrow_and_update();
            for topic in topics.iter().copied().filter(|topic| now.count(*topic) != seen.count(*topic)) {
                if tell(topic).await.is_err() {
                    return;
                }
            }
            seen = now;
        }
    }

    fn single(&self) -> MutexGuard<'_, HashMap<ResourceKind, AbortHandle>> {
        self.single.lock().unwrap_or_else(PoisonError::into_inner)
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
        if let Some(before) = self.single().insert(topic, following.abort_handle()) {
            before.abort();
        }
    }

    /// Ends [`ResourceWatcher::follow_single`].
    pub fn stop_following(&self, topic: ResourceKind) {
        if let Some(following) = self.single().remove(&topic) {
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
