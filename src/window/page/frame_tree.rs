//! The frames of a page, those in other processes included, and how they lie in each other.
//!
//! ```text
//! page session ── frame tree ──► main frame ── iframe ── iframe of a webview …
//!        └─ iframe session (another process) ── frame tree ──► its frames; the element that shows it is its parent's
//! ```

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::element_refs::{DocumentContext, lock_unpoisoned};
use super::page_client::{PageClient, PageError};
use super::{evaluate_expression, injected_script};
use crate::cdp;
use crate::cdp::types::{self, FrameInfo, FrameTree};

/// The name of the isolated worlds.
const WORLD: &str = "devtether";
/// How often a page is looked at that shows another document whenever it is.
const TRIES: usize = 3;
/// How long a page may take to say what frames it has, and each of them to let us in.
const PATIENCE: Duration = Duration::from_secs(10);
/// A frame in another process that takes longer is left out, until it answers.
const INNER_PATIENCE: Duration = Duration::from_secs(2);
/// A frame that was left out is waited for as long.
const THAWING: Duration = Duration::from_secs(60 * 60);

/// A frame that answers.
#[derive(Clone, Debug)]
pub struct ScriptedFrame {
    pub place: DocumentContext,
    /// Which frame it lies in (its place in the list), and under which number that knows the element that shows it.
    pub shown_by: Option<(usize, u32)>,
}

/// A frame as the browser lists it.
struct ListedFrame {
    frame: FrameInfo,
    session: String,
    parent: Option<usize>,
}

impl PageClient {
    /// The frames of a page, parents before children; the first is the main frame. Frames that do not answer, or that
    /// change while they are looked at, are left out.
    pub async fn frames(&self, page: &str) -> Result<Arc<Vec<ScriptedFrame>>, PageError> {
        for tries_left in (0..TRIES).rev() {
            let (known, version) = {
                let view = lock_unpoisoned(&self.shared.targets);
                (view.cached_frames(page), view.version)
            };
            if let Some(known) = known {
                return Ok(known);
            }
            match self.discover_frames(page).await {
                Ok((frames, slow)) => {
                    let frames = Arc::new(frames);
                    lock_unpoisoned(&self.shared.targets).cache_frames(page, Arc::clone(&frames), version);
                    slow.into_iter().for_each(|session| self.retry_when_responsive(session));
                    return Ok(frames);
                }
                // Another document has come in the middle of it.
                Err(PageError::Cdp(cdp::CdpError::ErrorResponse { .. })) if tries_left > 0 => {}
                Err(trouble) => return Err(trouble),
            }
        }
        Err(PageError::Closed)
    }

    /// The frames, and the sessions that were too slow for all of theirs to be among them.
    async fn discover_frames(&self, page: &str) -> Result<(Vec<ScriptedFrame>, HashSet<String>), PageError> {
        let (listed, mut slow) = self.list_frames(page).await?;
        let entered =
            join_all(listed.iter().map(|frame| self.install_in_frame(frame, frame_timeout(page, &frame.session))))
                .await;
        let main = entered.first().cloned().unwrap_or(Err(PageError::Closed))?;
        let owners = join_all(listed.iter().map(|frame| self.owner_element_number(frame, &listed, &entered))).await;
        for (index, frame) in listed.iter().enumerate() {
            let of_parent = frame.parent.map_or(&frame.session, |parent| &listed[parent].session);
            slow.extend(entered[index].as_ref().is_err_and(PageError::is_timeout).then(|| frame.session.clone()));
            slow.extend(owners[index].as_ref().is_err_and(PageError::is_timeout).then(|| of_parent.clone()));
        }
        let places: Vec<Option<DocumentContext>> = entered.into_iter().map(Result::ok).collect();
        let mut found = vec![ScriptedFrame { place: main, shown_by: None }];
        // Where a listed frame is in `found`.
        let mut at = vec![None; listed.len()];
        at[0] = Some(0);
        for index in parents_first(&listed) {
            let parent = listed[index].parent.and_then(|parent| at[parent]);
            let (Some(place), Some(parent), Ok(number)) = (places[index].clone(), parent, &owners[index]) else {
                continue;
            };
            at[index] = Some(found.len());
            found.push(ScriptedFrame { place, shown_by: Some((parent, *number)) });
        }
        Ok((found, slow))
    }

    /// The frames as the browser lists them, and the sessions that were too slow to tell theirs.
    async fn list_frames(&self, page: &str) -> Result<(Vec<ListedFrame>, HashSet<String>), PageError> {
        let sessions = lock_unpoisoned(&self.shared.targets).sessions_in(page);
        let trees =
            join_all(sessions.iter().map(|session| self.frame_tree(session, frame_timeout(page, session)))).await;
        let (mut listed, mut slow) = (Vec::new(), HashSet::new());
        for (session, tree) in sessions.into_iter().zip(trees) {
            match tree {
                Ok(tree) => flatten_tree(tree, &session, &mut listed),
                Err(trouble) if session == page => return Err(trouble),
                Err(trouble) => slow.extend(trouble.is_timeout().then_some(session)),
            }
        }
        set_parents(&mut listed);
        Ok((listed, slow))
    }

    /// Has the frames of a session that was too slow looked for again as soon as it answers.
    fn retry_when_responsive(&self, session: String) {
        if !lock_unpoisoned(&self.shared.targets).add_slow_session(&session) {
            return;
        }
        let core = self.clone();
        // Ends with the session, or the connection, if not before.
        tokio::spawn(async move {
            let _ = core.call(Some(&session), &evaluate_expression::noop_evaluation(), THAWING).await;
            lock_unpoisoned(&core.shared.targets).remove_slow_session(&session);
            core.shared.notify_changed();
        });
    }

    async fn frame_tree(&self, session: &str, patience: Duration) -> Result<FrameTree, PageError> {
        Ok(self.call(Some(session), &types::GetFrameTree {}, patience).await?.frame_tree)
    }

    /// The isolated world of a frame's document, with the script in it.
    async fn install_in_frame(&self, listed: &ListedFrame, patience: Duration) -> Result<DocumentContext, PageError> {
        let world = types::CreateIsolatedWorld { frame_id: listed.frame.id.clone(), world_name: WORLD };
        let context = self.call(Some(&listed.session), &world, patience).await?.execution_context_id;
        let place = DocumentContext { session: listed.session.clone(), context };
        injected_script::install_script(self, &place, patience).await?;
        Ok(place)
    }

    /// Under which number a frame's parent knows the element that shows it.
    async fn owner_element_number(
        &self,
        listed: &ListedFrame,
        all: &[ListedFrame],
        entered: &[Result<DocumentContext, PageError>],
    ) -> Result<u32, PageError> {
        let parent = listed.parent.ok_or(PageError::Closed)?;
        let session = Some(all[parent].session.as_str());
        let execution_context_id = entered[parent].as_ref().map_err(|_| PageError::Closed)?.context;
        let owner = types::GetFrameOwner { frame_id: listed.frame.id.clone() };
        let backend_node_id = self.call(session, &owner, INNER_PATIENCE).await?.backend_node_id;
        let resolve = types::ResolveNode { backend_node_id, execution_context_id };
        let object_id =
            self.call(session, &resolve, INNER_PATIENCE).await?.object.object_id.ok_or(PageError::Closed)?;
        let function_declaration = "function() { return tether.numberOf(this) }";
        let number = types::CallFunctionOn { object_id, function_declaration, return_by_value: true };
        let number = self.call(session, &number, INNER_PATIENCE).await?.result.value;
        number.and_then(|number| u32::try_from(number.as_u64()?).ok()).ok_or(PageError::Closed)
    }
}

fn frame_timeout(page: &str, session: &str) -> Duration {
    if page == session { PATIENCE } else { INNER_PATIENCE }
}

fn flatten_tree(tree: FrameTree, session: &str, into: &mut Vec<ListedFrame>) {
    into.push(ListedFrame { frame: tree.frame, session: session.to_owned(), parent: None });
    tree.child_frames.into_iter().for_each(|child| flatten_tree(child, session, into));
}

fn set_parents(listed: &mut [ListedFrame]) {
    for index in 1..listed.len() {
        let parent = listed[index].frame.parent_id.clone();
        listed[index].parent = listed.iter().position(|other| parent.as_ref() == Some(&other.frame.id));
    }
}

/// All but the first, each after its parent.
fn parents_first(listed: &[ListedFrame]) -> Vec<usize> {
    let depth = |mut index: usize| {
        // A circle would have no end; a real tree is never deeper than it has frames.
        (0..listed.len()).take_while(|_| listed[index].parent.map(|parent| index = parent).is_some()).count()
    };
    let mut order: Vec<usize> = (1..listed.len()).collect();
    order.sort_by_key(|index| depth(*index));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_find_their_parents_in_whatever_session_those_are() {
        let frame = |id: &str, parent: Option<&str>, session: &str| ListedFrame {
            frame: FrameInfo { id: id.into(), parent_id: parent.map(str::to_owned), url: String::new() },
            session: session.into(),
            parent: None,
        };
        let mut listed = [
            frame("main", None, "P"),
            frame("deep", Some("other"), "Q"),
            frame("other", Some("inner"), "Q"),
            frame("inner", Some("main"), "P"),
            frame("lost", Some("nobody"), "R"),
        ];
        set_parents(&mut listed);
        assert_eq!(listed.each_ref().map(|it| it.parent), [None, Some(2), Some(3), Some(0), None]);
        assert_eq!(parents_first(&listed), [4, 3, 2, 1]);
    }
}
