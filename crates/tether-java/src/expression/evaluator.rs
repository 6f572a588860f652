//! The context of one evaluation: the frame, and the objects that must not be collected meanwhile.

use futures_util::future::{BoxFuture, join_all};
use tether_backend::Answer;
use tether_jdwp::commands::objects::{DisableCollection, EnableCollection};
use tether_jdwp::values::{JdwpValue, ObjectId};

use crate::frames::{self, CodeFrame};
use crate::session::{FrameSpot, JavaSession};

/// Evaluates expressions in one frame.
pub(crate) struct Evaluator<'a> {
    pub session: &'a JavaSession,
    pub spot: FrameSpot,
    /// Whether it may run code of the program (calls, and what the loading of a class runs), and assign.
    pub runs_code: bool,
    /// The number of the suspension of its thread: no method is called after it.
    pub halt: Option<u64>,
    /// Read when it is needed; read anew after each call.
    frame: Option<CodeFrame>,
    kept: Vec<ObjectId>,
}

/// A future on the heap, made outside of its caller's stack frame. An expression has many levels, and each has a frame on the
/// stack, which would have room for every future that is awaited in it.
pub(crate) fn on_heap<'b, F: Future + Send + 'b>(make: impl FnOnce() -> F) -> BoxFuture<'b, F::Output> {
    Box::pin(make())
}

impl<'a> Evaluator<'a> {
    /// An evaluator in that frame.
    pub(crate) fn new(session: &'a JavaSession, spot: FrameSpot) -> Evaluator<'a> {
        let halt = session.with_tables(|tables| tables.suspends.halt_number(spot.thread));
        Evaluator { session, spot, runs_code: true, halt, frame: None, kept: Vec::new() }
    }

    /// The same, which only looks: what would run code of the program, or change it, fails.
    pub(crate) fn without_code(self) -> Evaluator<'a> {
        Evaluator { runs_code: false, ..self }
    }

    /// The frame.
    pub(crate) async fn frame(&mut self) -> Answer<CodeFrame> {
        if let Some(frame) = &self.frame {
            return Ok(frame.clone());
        }
        let frame = frames::read_frame(self.session, self.spot).await?;
        self.frame = Some(frame.clone());
        Ok(frame)
    }

    /// The ids of frames have changed.
    pub(crate) fn forget_frame(&mut self) {
        self.frame = None;
    }

    /// Keeps an object from being collected until the evaluation has ended.
    pub(crate) async fn keep(&mut self, value: JdwpValue) -> Answer<()> {
        if let Some(object) = value.as_object() {
            self.session.vm.request(&DisableCollection { object: object.id }).await?;
            self.kept.push(object.id);
        }
        Ok(())
    }

    /// Lets the objects be collected, but the result's, which is kept until the program runs on.
    pub(crate) async fn release(self, result: Option<JdwpValue>) {
        let result = result.and_then(JdwpValue::as_object).map(|object| object.id);
        let (mut kept, released): (Vec<ObjectId>, Vec<ObjectId>) =
            self.kept.into_iter().partition(|object| Some(*object) == result);
        // Keeping counts: each object is let go as often as it was kept.
        let session = self.session;
        let requests =
            released.into_iter().map(|object| async move { session.vm.request(&EnableCollection { object }).await });
        // An error means that the object or the program is gone.
        join_all(requests).await;
        session.with_tables(|tables| tables.kept.append(&mut kept));
    }
}
