//! Continues, steps and pauses.
//!
//! A resume is of one thread: the others that have stopped by themselves stay stopped. A pause suspends all threads once
//! more, which the next resume undoes for all of them.

use futures_util::future::join_all;

use super::breakpoints::JDK_PATTERNS;
use super::session::{FrameSpot, JavaSession};
use super::signatures::is_jdk_class;
use crate::adapters::request_failure::RequestFailure;
use crate::jdwp::commands::objects::EnableCollection;
use crate::jdwp::commands::threads::{PopFrames, ResumeThread};
use crate::jdwp::commands::virtual_machine::{ResumeAll, SuspendAll};
use crate::jdwp::values::ObjectId;
use crate::jdwp::{EventKind, EventModifier, SetEventRequest, StepDepth, SuspendPolicy};

impl JavaSession {
    /// Resumes a thread that has stopped; after a pause, all threads. Returns whether all threads run now.
    pub async fn continue_thread(&self, thread_id: i64) -> Result<bool, RequestFailure> {
        let named = self.thread(thread_id);
        let threads = self.with_tables(|tables| match named {
            Ok(thread) if tables.stopped.contains_key(&thread) && !tables.is_vm_suspended => vec![thread],
            _ => tables.stopped.keys().copied().collect(),
        });
        let is_vm_suspended = self.with_tables(|tables| std::mem::take(&mut tables.is_vm_suspended));
        if threads.is_empty() && !is_vm_suspended {
            return Err("notStopped".into());
        }
        for thread in &threads {
            self.clear_step(*thread).await;
        }
        self.resume_threads(&threads, is_vm_suspended).await?;
        Ok(self.with_tables(|tables| tables.stopped.is_empty()))
    }

    /// What is known of the stops is forgotten before the threads run.
    async fn resume_threads(&self, threads: &[ObjectId], is_vm_suspended: bool) -> Result<(), RequestFailure> {
        let mut released = Vec::new();
        for thread in threads {
            self.with_tables(|tables| {
                released.extend(tables.forget_stop(*thread));
                tables.invoking.remove(thread);
            });
        }
        if is_vm_suspended && threads.is_empty() {
            released = self.with_tables(|tables| tables.forget_stop(ObjectId(0)));
        }
        // An error means that the object is gone.
        let release = |object| async move { self.vm.request(&EnableCollection { object }).await };
        join_all(released.into_iter().map(release)).await;
        for thread in threads {
            self.vm.request(&ResumeThread { thread: *thread }).await?;
        }
        if is_vm_suspended {
            self.vm.request(&ResumeAll {}).await?;
        }
        Ok(())
    }

    /// Starts the program, which is suspended since its start.
    pub async fn start_program(&self) -> Result<(), RequestFailure> {
        let is_suspended = self.with_tables(|tables| {
            tables.vm_start = None;
            tables.known_frames.forget();
            std::mem::take(&mut tables.is_vm_suspended)
        });
        if is_suspended {
            self.vm.request(&ResumeAll {}).await?;
        }
        Ok(())
    }

    /// Steps a stopped thread by a line.
    pub async fn step_line(&self, thread_id: i64, depth: StepDepth) -> Result<(), RequestFailure> {
        let thread = self.thread(thread_id)?;
        self.with_tables(|tables| tables.smart_steps.remove(&thread));
        self.step_thread(thread_id, depth).await
    }

    /// As [`JavaSession::step_line`], as a part of another step, too.
    pub async fn step_thread(&self, thread_id: i64, depth: StepDepth) -> Result<(), RequestFailure> {
        let thread = self.thread(thread_id)?;
        if !self.with_tables(|tables| tables.is_suspended(thread)) {
            return Err("notStopped".into());
        }
        let request = self.request_step(thread, depth).await?;
        let (threads, is_vm_suspended) = self.with_tables(|tables| {
            tables.steps.insert(thread, request);
            let own: Vec<ObjectId> = tables.stopped.keys().copied().filter(|it| *it == thread).collect();
            (own, std::mem::take(&mut tables.is_vm_suspended))
        });
        self.resume_threads(&threads, is_vm_suspended).await
    }

    /// Goes on with a step of a thread that an event has suspended and whose stop is not reported.
    pub async fn continue_step(&self, thread: ObjectId, depth: StepDepth) -> Result<(), RequestFailure> {
        let request = self.request_step(thread, depth).await?;
        self.with_tables(|tables| tables.steps.insert(thread, request));
        Ok(self.vm.request(&ResumeThread { thread }).await?)
    }

    async fn request_step(&self, thread: ObjectId, depth: StepDepth) -> Result<i32, RequestFailure> {
        let ((), frame) = tokio::join!(self.clear_step(thread), self.read_frame(FrameSpot { thread, depth: 0 }));
        let frame = frame?;
        let mut modifiers = vec![EventModifier::Step { thread, by_lines: true, depth }];
        // From the user's code, a step passes over that of the JDK.
        if !is_jdk_class(&frame.class.signature) {
            modifiers.extend(JDK_PATTERNS.map(|it| EventModifier::ClassExclude(it.to_owned())));
        }
        modifiers.push(EventModifier::Count(1));
        let (kind, policy) = (EventKind::SingleStep, SuspendPolicy::EventThread);
        Ok(self.vm.request(&SetEventRequest { kind, policy, modifiers }).await?)
    }

    /// Suspends all threads, and reports that on one of them.
    pub async fn pause(&self, thread_id: i64) -> Result<(), RequestFailure> {
        if self.with_tables(|tables| std::mem::replace(&mut tables.is_vm_suspended, true)) {
            return Ok(());
        }
        self.vm.request(&SuspendAll {}).await?;
        let thread = match self.thread(thread_id) {
            Ok(thread) => thread,
            Err(_) => self.main_thread().await?,
        };
        self.report_all_stopped(thread, "pause").await;
        Ok(())
    }

    /// Discards a frame and those that it has called: its caller is before the call again.
    pub async fn restart_frame(&self, frame_id: i64) -> Result<(), RequestFailure> {
        let spot = self.frame_spot(frame_id)?;
        if !self.vm.capabilities.pop_frames {
            return Err("this virtual machine cannot discard frames".into());
        }
        let frame = self.read_frame(spot).await?;
        let popped = self.vm.request(&PopFrames { thread: spot.thread, frame: frame.id }).await;
        self.with_tables(|tables| tables.known_frames.forget());
        popped?;
        // The thread is before the call: a step into it is the beginning of the frame.
        let thread_id = self.with_tables(|tables| tables.thread_id(spot.thread));
        self.step_thread(thread_id, StepDepth::Into).await
    }
}
