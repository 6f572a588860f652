//! A joined editor as a member of its session: listed there, owner of its breakpoints, and gone with both when it leaves,
//! whatever ends its conversation.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::FutureExt;
use tether_base::clipped_text::first_chars;
use tether_base::display_text::escape_line;
use tracing::info;

use crate::debug::breakpoints::BreakpointOwner;
use crate::debug::host::managed_session::ManagedSession;
use crate::debug::host::registry::SessionRegistry;
use crate::debug::session::snapshot::JoinedEditor;

/// How much of an editor's name is kept, in characters.
const MAX_NAME_CHARS: usize = 60;

/// One editor; dropping it leaves the session without waiting for that.
pub struct EditorMembership {
    sessions: SessionRegistry,
    /// The editor as the owner of its breakpoints.
    pub owner: BreakpointOwner,
    joined: Option<ManagedSession>,
    has_left: bool,
}

impl EditorMembership {
    /// An editor that has joined no session yet.
    pub fn new(sessions: SessionRegistry) -> EditorMembership {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let editor = NEXT.fetch_add(1, Ordering::Relaxed);
        let owner = BreakpointOwner { editor, name: format!("editor {editor}").into(), host: sessions.0.host.clone() };
        EditorMembership { sessions, owner, joined: None, has_left: false }
    }

    /// Sets the editor's own name for itself; two of the same name stay distinguishable.
    pub fn set_name(&mut self, name: &str) {
        let name = escape_line(name);
        let name = first_chars(&name, MAX_NAME_CHARS);
        self.owner.name = format!("{name} (editor {})", self.owner.editor).into();
    }

    /// Lists the editor in a session.
    pub fn join(&mut self, managed: &ManagedSession) {
        info!("{}: {} joins", managed.id, self.owner.name);
        let editor = JoinedEditor { id: self.owner.editor, name: self.owner.name.clone() };
        managed.session.shared.snapshot.send_modify(|snapshot| snapshot.editors.push(editor));
        self.joined = Some(managed.clone());
    }

    /// Leaves the session, which goes on, and removes the editor's breakpoints everywhere.
    pub async fn leave(mut self) {
        self.has_left = true;
        leave_session(self.sessions.clone(), self.owner.clone(), self.joined.take()).await;
    }
}

impl Drop for EditorMembership {
    fn drop(&mut self) {
        if !self.has_left {
            let leaving = leave_session(self.sessions.clone(), self.owner.clone(), self.joined.take());
            // The receiver exists as long as the supervisor.
            let _ = self.sessions.0.tasks.send(leaving.boxed());
        }
    }
}

async fn leave_session(sessions: SessionRegistry, owner: BreakpointOwner, joined: Option<ManagedSession>) {
    if let Some(managed) = joined {
        info!("{}: {} leaves", managed.id, owner.name);
        let editors = &managed.session.shared.snapshot;
        editors.send_modify(|snapshot| snapshot.editors.retain(|it| it.id != owner.editor));
    }
    sessions.remove_editor(&owner).await;
}
