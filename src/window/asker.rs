//! Who asks something of the window: told what is being done, able to call it off, remembered while it waits.
//!
//! Must not know what is asked.

use tokio::sync::mpsc;

use super::actor::Message;
use super::handle::Window;
use super::shared::Shared;

/// Who waits for an operation.
pub trait Asker: Send + Sync {
    /// Told what is being done meanwhile.
    fn tell(&self, doing: &str);
    /// Whether it has called the operation off, rather than gone away: a front end that ends touches nothing.
    fn has_withdrawn(&self) -> bool;
}

/// Who waits for an operation, while it does.
pub type Progress<'a> = &'a dyn Asker;

/// Something under way that the end of the window would cut off; over when dropped.
pub struct Doing<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Drop for Doing<'_> {
    fn drop(&mut self) {
        self.shared.done(self.number);
    }
}

impl Window {
    /// Notes what is being done with the window, for the case that it ends meanwhile.
    pub fn doing(&self, what: String) -> Doing<'_> {
        let number = self.shared.note(what);
        Doing { shared: &self.shared, number }
    }
}

/// Tells the actor, when a wish is called off before it is fulfilled.
pub struct CallOff<'a> {
    wishes: &'a mpsc::Sender<Message>,
    asker: Progress<'a>,
}

impl<'a> CallOff<'a> {
    pub fn new(wishes: &'a mpsc::Sender<Message>, asker: Progress<'a>) -> Self {
        CallOff { wishes, asker }
    }
}

impl Drop for CallOff<'_> {
    fn drop(&mut self) {
        if self.asker.has_withdrawn() {
            // An inbox that is full of wishes: others want the work.
            let _ = self.wishes.try_send(Message::CalledOff);
        }
    }
}
