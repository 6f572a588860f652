//! Finds the frames of a page, including out-of-process ones, and installs the injected script in each.
//!
//! ```text
//! page session ── frame tree ──► main frame ── iframe ── iframe of a webview …
//!        └─ iframe session (another process) ── frame tree ──► its frames; the element that shows it is in its parent
//! ```

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tether_cdp::CdpError;
use tether_cdp::types::{self, FrameInfo, FrameTree};

use super::element_refs::DocumentContext;
use super::injected_script::install_script;
use super::page_client::{PageClient, PageSession, noop_evaluation};
use super::page_error::PageError;
use super::targets::ScriptedFrame;

/// The name of the isolated worlds.
const WORLD_NAME: &str = "devtether";
/// Attempts for a page that navigates while its frames are listed.
const MAX_ATTEMPTS: usize = 3;
/// Deadline of each command to the page's own session.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Deadline of each command to an out-of-process frame; slower ones are left out until they respond.
const FRAME_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a slow frame is waited for in the background.
const SLOW_FRAME_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// A frame as the browser lists it.
struct ListedFrame {
    info: FrameInfo,
    session: String,
    /// The index of its parent in the list.
    parent: Option<usize>,
}

/// The frames of a page, parents before children; the first is the main frame. Frames that do not respond, or that
/// change meanwhile, are left out.
pub async fn find_frames(page: &PageSession) -> Result<Arc<Vec<ScriptedFrame>>, PageError> {
    let state = &page.client.state;
    for attempts_left in (0..MAX_ATTEMPTS).rev() {
        let version = {
            let targets = state.targets();
            if let Some(cached) = targets.frames.get(&page.id) {
                return Ok(Arc::clone(cached));
            }
            targets.frames_version
        };
        match find_and_enter_frames(page).await {
            Ok((frames, slow)) => {
                let frames = Arc::new(frames);
                state.targets().cache_frames(&page.id, Arc::clone(&frames), version);
                slow.into_iter().for_each(|session| retry_when_responsive(&page.client, session));
                return Ok(frames);
            }
            // The page navigated meanwhile.
            Err(PageError::Cdp(CdpError::ErrorResponse { .. })) if attempts_left > 0 => {}
            Err(error) => return Err(error),
        }
    }
    Err(PageError::Closed)
}

/// The frames, and the sessions that timed out for some of theirs.
async fn find_and_enter_frames(page: &PageSession) -> Result<(Vec<ScriptedFrame>, HashSet<String>), PageError> {
    let (listed, mut slow) = list_frames(page).await?;
    let entered = join_all(listed.iter().map(|frame| enter_frame(page, frame))).await;
    let main = entered.first().cloned().unwrap_or(Err(PageError::Closed))?;
    let parent_of = |frame: &ListedFrame| entered[frame.parent?].as_ref().ok();
    let owners = join_all(listed.iter().map(|frame| owner_number(&page.client, frame, parent_of(frame)))).await;
    for (index, frame) in listed.iter().enumerate() {
        let of_parent = frame.parent.map_or(&frame.session, |parent| &listed[parent].session);
        slow.extend(entered[index].as_ref().is_err_and(PageError::is_timeout).then(|| frame.session.clone()));
        slow.extend(owners[index].as_ref().is_err_and(PageError::is_timeout).then(|| of_parent.clone()));
    }
    let mut found = vec![ScriptedFrame { document: main, info: listed[0].info.clone(), owner: None }];
    // The index in `found` of each listed frame.
    let mut found_at = vec![None; listed.len()];
    found_at[0] = Some(0);
    for index in parents_first(&listed) {
        let parent = listed[index].parent.and_then(|parent| found_at[parent]);
        if let (Ok(document), Some(parent), Ok(number)) = (&entered[index], parent, &owners[index]) {
            found_at[index] = Some(found.len());
            let (document, info) = (document.clone(), listed[index].info.clone());
            found.push(ScriptedFrame { document, info, owner: Some((parent, *number)) });
        }
    }
    Ok((found, slow))
}

/// The frames as the browser lists them, and the sessions that timed out.
async fn list_frames(page: &PageSession) -> Result<(Vec<ListedFrame>, HashSet<String>), PageError> {
    let sessions = page.client.state.targets().frame_sessions(&page.id);
    let get_tree = |session| page.client.call(Some(session), &types::GetFrameTree {}, session_timeout(page, session));
    let trees = join_all(sessions.iter().map(|session| get_tree(session.as_str()))).await;
    let (mut listed, mut slow) = (Vec::new(), HashSet::new());
    for (session, tree) in sessions.into_iter().zip(trees) {
        match tree {
            Ok(tree) => flatten_tree(tree.frame_tree, &session, &mut listed),
            Err(error) if session == page.id => return Err(error),
            Err(error) => slow.extend(error.is_timeout().then_some(session)),
        }
    }
    set_parents(&mut listed);
    Ok((listed, slow))
}

/// Invalidates the cached frames as soon as a slow session responds.
fn retry_when_responsive(client: &PageClient, session: String) {
    if !client.state.targets().slow_sessions.insert(session.clone()) {
        return;
    }
    let client = client.clone();
    // Ends at the latest with the session or the connection.
    tokio::spawn(async move {
        let _ = client.call(Some(&session), &noop_evaluation(), SLOW_FRAME_TIMEOUT).await;
        client.state.targets().remove_slow_session(&session);
        client.state.notify_changed();
    });
}

/// The isolated world of a frame's document, with the script installed.
async fn enter_frame(page: &PageSession, frame: &ListedFrame) -> Result<DocumentContext, PageError> {
    let (client, timeout) = (&page.client, session_timeout(page, &frame.session));
    let world = types::CreateIsolatedWorld { frame_id: frame.info.id.clone(), world_name: WORLD_NAME };
    let context = client.call(Some(&frame.session), &world, timeout).await?.execution_context_id;
    let document = DocumentContext { session: frame.session.clone(), context };
    install_script(client, &document, timeout).await?;
    Ok(document)
}

/// The number, in the parent document, of the element that shows a frame.
async fn owner_number(
    client: &PageClient,
    frame: &ListedFrame,
    parent: Option<&DocumentContext>,
) -> Result<u32, PageError> {
    let DocumentContext { session, context: execution_context_id } = parent.cloned().ok_or(PageError::Closed)?;
    let session = Some(session.as_str());
    let owner = types::GetFrameOwner { frame_id: frame.info.id.clone() };
    let backend_node_id = client.call(session, &owner, FRAME_TIMEOUT).await?.backend_node_id;
    let resolve = types::ResolveNode { backend_node_id, execution_context_id };
    let resolved = client.call(session, &resolve, FRAME_TIMEOUT).await?;
    let object_id = resolved.object.object_id.ok_or(PageError::Closed)?;
    let function_declaration = "function() { return tether.numberOf(this) }";
    let number = types::CallFunctionOn { object_id, function_declaration, return_by_value: true };
    let number = client.call(session, &number, FRAME_TIMEOUT).await?.result.value;
    number.and_then(|number| u32::try_from(number.as_u64()?).ok()).ok_or(PageError::Closed)
}

fn session_timeout(page: &PageSession, session: &str) -> Duration {
    if page.id == session { PAGE_TIMEOUT } else { FRAME_TIMEOUT }
}

fn flatten_tree(tree: FrameTree, session: &str, into: &mut Vec<ListedFrame>) {
    into.push(ListedFrame { info: tree.frame, session: session.to_owned(), parent: None });
    tree.child_frames.into_iter().for_each(|child| flatten_tree(child, session, into));
}

fn set_parents(listed: &mut [ListedFrame]) {
    for index in 1..listed.len() {
        let parent = listed[index].info.parent_id.clone();
        listed[index].parent = listed.iter().position(|other| parent.as_ref() == Some(&other.info.id));
    }
}

/// The indices of all frames but the first, each after its parent.
fn parents_first(listed: &[ListedFrame]) -> Vec<usize> {
    let depth = |mut index: usize| {
        // Bounded, so that a cycle of parents ends; a tree is at most as deep as its number of frames.
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
    fn parents_are_found_across_sessions() {
        let frame = |id: &str, parent: Option<&str>, session: &str| ListedFrame {
            info: FrameInfo { id: id.into(), parent_id: parent.map(str::to_owned), name: None, url: String::new() },
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
