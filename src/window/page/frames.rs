//! The frames of a page, those in other processes included, and how they lie in each other.
//!
//! ```text
//! page session ── frame tree ──► main frame ── iframe ── iframe of a webview …
//!        └─ iframe session (another process) ── frame tree ──► its frames; the element that shows it is its parent's
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::core::{Core, Trouble};
use super::inside;
use super::refs::{Place, lock};
use crate::cdp;
use crate::cdp::types::{self, Frame, FrameTree};

/// The name of the isolated worlds.
const WORLD: &str = "devtether";
/// How often a page is looked at that shows another document whenever it is.
const TRIES: usize = 3;
/// How long a page may take to say what frames it has, and each of them to let us in.
const PATIENCE: Duration = Duration::from_secs(10);
/// A frame in another process that takes longer is left out.
const INNER_PATIENCE: Duration = Duration::from_secs(2);

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
                Ok(frames) => {
                    let frames = Arc::new(frames);
                    lock(&self.shared.view).set_frames(page, Arc::clone(&frames), version);
                    return Ok(frames);
                }
                // Another document has come in the middle of it.
                Err(Trouble::Cdp(cdp::Error::Refused { .. })) if tries_left > 0 => {}
                Err(trouble) => return Err(trouble),
            }
        }
        Err(Trouble::Gone)
    }

    async fn find_frames(&self, page: &str) -> Result<Vec<FrameView>, Trouble> {
        let sessions = lock(&self.shared.view).sessions_in(page);
        let trees = join_all(sessions.iter().map(|session| self.frame_tree(session, patience(page, session)))).await;
        let mut listed = Vec::new();
        for (session, tree) in sessions.iter().zip(trees) {
            match tree {
                Ok(tree) => list(tree, session, &mut listed),
                Err(trouble) if session == page => return Err(trouble),
                Err(_) => {}
            }
        }
        set_parents(&mut listed);
        let entered = join_all(listed.iter().map(|frame| self.enter(frame, patience(page, &frame.session)))).await;
        let main = entered.first().cloned().unwrap_or(Err(Trouble::Gone))?;
        let places: Vec<Option<Place>> = entered.into_iter().map(Result::ok).collect();
        let owners = join_all(listed.iter().map(|frame| self.owner(frame, &listed, &places))).await;
        let mut found = vec![FrameView { place: main, shown_by: None }];
        // Where a listed frame is in `found`.
        let mut at = vec![None; listed.len()];
        at[0] = Some(0);
        for index in order(&listed) {
            let parent = listed[index].parent.and_then(|parent| at[parent]);
            let (Some(place), Some(parent), Some(number)) = (places[index].clone(), parent, owners[index]) else {
                continue;
            };
            at[index] = Some(found.len());
            found.push(FrameView { place, shown_by: Some((parent, number)) });
        }
        Ok(found)
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
    async fn owner(&self, listed: &Listed, all: &[Listed], places: &[Option<Place>]) -> Option<u32> {
        let parent = places[listed.parent?].as_ref()?;
        let session = Some(all[listed.parent?].session.as_str());
        let owner = types::GetFrameOwner { frame_id: listed.frame.id.clone() };
        let backend_node_id = self.call(session, &owner, INNER_PATIENCE).await.ok()?.backend_node_id;
        let resolve = types::ResolveNode { backend_node_id, execution_context_id: parent.context };
        let object_id = self.call(session, &resolve, INNER_PATIENCE).await.ok()?.object.object_id?;
        let function_declaration = "function() { return tether.numberOf(this) }";
        let number = types::CallFunctionOn { object_id, function_declaration, return_by_value: true };
        let number = self.call(session, &number, INNER_PATIENCE).await.ok()?.result.value?;
        number.as_u64().and_then(|number| u32::try_from(number).ok())
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
