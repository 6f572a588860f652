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

use super::core::{Core, Trouble};
use super::refs::{Place, lock};
use super::{evaluate, inside};
use crate::cdp;
use crate::cdp::types::{self, Frame, FrameTree};

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
pub struct FrameView {
    pub place: Place,
    /// Which frame it lies in (its place in the list), and under which number that knows the element that shows it.
    pub shown_by: Option<(usize, u32)>,
}

/// A frame as the browser lists it.
struct Listed {
    frame: Frame,
    session: String,
    parent: Option<usize>,
}

impl Core {
    /// The frames of a page, parents before children; the first is the main frame. Frames that do not answer, or that
    /// change while they are looked at, are left out.
    pub async fn frames(&self, page: &str) -> Result<Arc<Vec<FrameView>>, Trouble> {
        for tries_left in (0..TRIES).rev() {
            let (known, version) = {
                let view = lock(&self.shared.view);
                (view.frames(page), view.version)
            };
            if let Some(known) = known {
                return Ok(known);
            }
            match self.find_frames(page).await {
                Ok((frames, slow)) => {
                    let frames = Arc::new(frames);
                    lock(&self.shared.view).set_frames(page, Arc::clone(&frames), version);
                    slow.into_iter().for_each(|session| self.look_again_at(session));
                    return Ok(frames);
                }
                // Another document has come in the middle of it.
                Err(Trouble::Cdp(cdp::Error::Refused { .. })) if tries_left > 0 => {}
                Err(trouble) => return Err(trouble),
            }
        }
        Err(Trouble::Gone)
    }

    /// The frames, and the sessions that were too slow for all of theirs to be among them.
    async fn find_frames(&self, page: &str) -> Result<(Vec<FrameView>, HashSet<String>), Trouble> {
        let (listed, mut slow) = self.list_frames(page).await?;
        let entered = join_all(listed.iter().map(|frame| self.enter(frame, patience(page, &frame.session)))).await;
        let main = entered.first().cloned().unwrap_or(Err(Trouble::Gone))?;
        let owners = join_all(listed.iter().map(|frame| self.owner(frame, &listed, &entered))).await;
        for (index, frame) in listed.iter().enumerate() {
            let of_parent = frame.parent.map_or(&frame.session, |parent| &listed[parent].session);
            slow.extend(entered[index].as_ref().is_err_and(Trouble::timed_out).then(|| frame.session.clone()));
            slow.extend(owners[index].as_ref().is_err_and(Trouble::timed_out).then(|| of_parent.clone()));
        }
        let places: Vec<Option<Place>> = entered.into_iter().map(Result::ok).collect();
        let mut found = vec![FrameView { place: main, shown_by: None }];
        // Where a listed frame is in `found`.
        let mut at = vec![None; listed.len()];
        at[0] = Some(0);
        for index in order(&listed) {
            let parent = listed[index].parent.and_then(|parent| at[parent]);
            let (Some(place), Some(parent), Ok(number)) = (places[index].clone(), parent, &owners[index]) else {
                continue;
            };
            at[index] = Some(found.len());
            found.push(FrameView { place, shown_by: Some((parent, *number)) });
        }
        Ok((found, slow))
    }

    /// The frames as the browser lists them, and the sessions that were too slow to tell theirs.
    async fn list_frames(&self, page: &str) -> Result<(Vec<Listed>, HashSet<String>), Trouble> {
        let sessions = lock(&self.shared.view).sessions_in(page);
        let trees = join_all(sessions.iter().map(|session| self.frame_tree(session, patience(page, session)))).await;
        let (mut listed, mut slow) = (Vec::new(), HashSet::new());
        for (session, tree) in sessions.into_iter().zip(trees) {
            match tree {
                Ok(tree) => list(tree, &session, &mut listed),
                Err(trouble) if session == page => return Err(trouble),
                Err(trouble) => slow.extend(trouble.timed_out().then_some(session)),
            }
        }
        set_parents(&mut listed);
        Ok((listed, slow))
    }

    /// Has the frames of a session that was too slow looked for again as soon as it answers.
    fn look_again_at(&self, session: String) {
        if !lock(&self.shared.view).await_answer(&session) {
            return;
        }
        let core = self.clone();
        // Ends with the session, or the connection, if not before.
        tokio::spawn(async move {
            let _ = core.call(Some(&session), &evaluate::alive(), THAWING).await;
            lock(&core.shared.view).answered(&session);
            core.shared.stir();
        });
    }

    async fn frame_tree(&self, session: &str, patience: Duration) -> Result<FrameTree, Trouble> {
        Ok(self.call(Some(session), &types::GetFrameTree {}, patience).await?.frame_tree)
    }

    /// The isolated world of a frame's document, with the script in it.
    async fn enter(&self, listed: &Listed, patience: Duration) -> Result<Place, Trouble> {
        let world = types::CreateIsolatedWorld { frame_id: listed.frame.id.clone(), world_name: WORLD };
        let context = self.call(Some(&listed.session), &world, patience).await?.execution_context_id;
        let place = Place { session: listed.session.clone(), context };
        inside::install(self, &place, patience).await?;
        Ok(place)
    }

    /// Under which number a frame's parent knows the element that shows it.
    async fn owner(&self, listed: &Listed, all: &[Listed], entered: &[Result<Place, Trouble>]) -> Result<u32, Trouble> {
        let parent = listed.parent.ok_or(Trouble::Gone)?;
        let session = Some(all[parent].session.as_str());
        let execution_context_id = entered[parent].as_ref().map_err(|_| Trouble::Gone)?.context;
        let owner = types::GetFrameOwner { frame_id: listed.frame.id.clone() };
        let backend_node_id = self.call(session, &owner, INNER_PATIENCE).await?.backend_node_id;
        let resolve = types::ResolveNode { backend_node_id, execution_context_id };
        let object_id = self.call(session, &resolve, INNER_PATIENCE).await?.object.object_id.ok_or(Trouble::Gone)?;
        let function_declaration = "function() { return tether.numberOf(this) }";
        let number = types::CallFunctionOn { object_id, function_declaration, return_by_value: true };
        let number = self.call(session, &number, INNER_PATIENCE).await?.result.value;
        number.and_then(|number| u32::try_from(number.as_u64()?).ok()).ok_or(Trouble::Gone)
    }
}

fn patience(page: &str, session: &str) -> Duration {
    if page == session { PATIENCE } else { INNER_PATIENCE }
}

fn list(tree: FrameTree, session: &str, into: &mut Vec<Listed>) {
    into.push(Listed { frame: tree.frame, session: session.to_owned(), parent: None });
    tree.child_frames.into_iter().for_each(|child| list(child, session, into));
}

fn set_parents(listed: &mut [Listed]) {
    for index in 1..listed.len() {
        let parent = listed[index].frame.parent_id.clone();
        listed[index].parent = listed.iter().position(|other| parent.as_ref() == Some(&other.frame.id));
    }
}

/// All but the first, each after its parent.
fn order(listed: &[Listed]) -> Vec<usize> {
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
        let frame = |id: &str, parent: Option<&str>, session: &str| Listed {
            frame: Frame { id: id.into(), parent_id: parent.map(str::to_owned), url: String::new() },
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
        assert_eq!(order(&listed), [4, 3, 2, 1]);
    }
}
