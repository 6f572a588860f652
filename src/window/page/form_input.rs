//! Fills in forms: fields, options, boxes, pasted text, files of the workspace.
//!
//! A text field gets its text as an input method inserts it; what a picker of the system sets is set as that does.

use std::time::Duration;

use serde_json::json;
use tether_base::error::{Error, Result};
use tether_base::sync::run_blocking;
use tether_cdp::page_control::{InterceptFileChooser, SetFileInputFiles};
use tether_cdp::types::DispatchDragEvent;
use tokio::time::timeout;

use super::action_error::ActionError;
use super::element_point::{ActionContext, CLICKABLE, REACHABLE, ReferencedElement};
use super::element_refs::ElementHandle;
use super::evaluation_place::isolated_element;
use super::frame_tree::find_frames;
use super::injected_script::{ElementCheck, call_script};
use super::input_action::ActionTarget;
use super::input_batch::insert_text;
use super::keyboard::KeyChord;
use super::mouse::{click_events, move_event, press_event, release_event};
use super::page_client::{EVENT_TIMEOUT, OBJECT_GROUP};
use crate::vocabulary::MouseButton;
use crate::workspace::output_files::real_workspace_file;

impl ActionContext<'_> {
    /// Sets a field to a value; returns its role and name.
    pub async fn fill(&self, name: &str, value: &str) -> Result<Option<String>, ActionError> {
        let element = ReferencedElement::resolve(&self.page.client, name)?;
        let left = self.time_left();
        let text = serde_json::to_string(value).unwrap_or_default();
        let call = format!("fill({}, {text}, {})", element.handle.number, left.as_millis());
        let ElementCheck { what, target, .. } = element.check(&call, left).await?;
        match what.as_deref() {
            Some("click") => self.toggle(name, value == "true").await,
            Some("text") if value.is_empty() => {
                let delete = KeyChord::parse("Delete").map(|chord| chord.events()).unwrap_or_default();
                self.page.send_events(&delete).await?;
                Ok(target)
            }
            Some("text") => {
                self.record_typing(value).await;
                insert_text(self.page, value.replace("\r\n", "\n")).await?;
                Ok(target)
            }
            _ => Ok(target),
        }
    }

    /// Selects options by their labels or values; returns role and name of the element.
    pub async fn select(&self, name: &str, values: &[String]) -> Result<Option<String>, ActionError> {
        let element = ReferencedElement::resolve(&self.page.client, name)?;
        let left = self.time_left();
        let values = serde_json::to_string(values).unwrap_or_default();
        let call = format!("selectValues({}, {values}, {})", element.handle.number, left.as_millis());
        Ok(element.check(&call, left).await?.target)
    }

    /// Checks or unchecks a box by a click, unless it is so; errors when that did not do it.
    pub async fn toggle(&self, name: &str, checked: bool) -> Result<Option<String>, ActionError> {
        let element = ReferencedElement::resolve(&self.page.client, name)?;
        let call = format!("isChecked({})", element.handle.number);
        let is_checked = async || element.call::<Option<bool>>(&call, EVENT_TIMEOUT).await;
        let Some(before) = is_checked().await? else {
            return Err(Error::usage(format!("{name} cannot be checked")).because("it has no checked state").into());
        };
        let (point, target) = self.locate_element(name, CLICKABLE).await?;
        if before == checked {
            return Ok(target);
        }
        self.page.send_events(&click_events(point, MouseButton::Left, 1)).await?;
        match is_checked().await? {
            Some(now) if now != checked => {
                let state = if checked { "unchecked" } else { "checked" };
                Err(Error::other(format!("{name} is still {state}"))
                    .because("the page did not follow the click")
                    .into())
            }
            _ => Ok(target),
        }
    }

    /// Pastes into the focused element, as from a clipboard with this text.
    pub async fn paste(&self, text: &str) -> Result<(), ActionError> {
        self.record_typing(text).await;
        let call = format!("paste({})", serde_json::to_string(text).unwrap_or_default());
        let frames = find_frames(self.page).await?;
        for frame in frames.iter() {
            match call_script::<Option<bool>>(&self.page.client, &frame.document, &call, EVENT_TIMEOUT).await {
                Ok(Some(true)) => return Ok(insert_text(self.page, text.to_owned()).await?),
                Ok(Some(false)) => return Ok(()),
                // It is not in this frame, or the frame is gone.
                _ => {}
            }
        }
        Err(Error::other("nothing can be pasted")
            .because("no element has the focus")
            .hint("give the `ref` of one")
            .into())
    }

    /// Gives files to a file input, or to the element that opens the dialog for files.
    pub async fn upload(&self, name: &str, files: &[String]) -> Result<Option<String>, ActionError> {
        let files = self.workspace_files(files).await?;
        let element = ReferencedElement::resolve(&self.page.client, name)?;
        let call = format!("fileInput({})", element.handle.number);
        let input: Option<u32> = element.call(&call, EVENT_TIMEOUT).await?;
        let removed = || ActionError::DocumentGone(name.to_owned());
        match input.ok_or_else(removed)? {
            0 => self.upload_by_dialog(name, files).await,
            number => {
                let handle = ElementHandle { number, ..element.handle.clone() };
                let client = &self.page.client;
                let object_id = Some(isolated_element(client, &handle, OBJECT_GROUP, EVENT_TIMEOUT).await?);
                let set = SetFileInputFiles { files, object_id, backend_node_id: None };
                client.call(Some(&handle.document.session), &set, EVENT_TIMEOUT).await?;
                Ok(None)
            }
        }
    }

    /// Clicks, and answers the dialog for files that this opens.
    async fn upload_by_dialog(&self, name: &str, files: Vec<String>) -> Result<Option<String>, ActionError> {
        let client = &self.page.client;
        let session = client.state.resolve_ref(name)?.document.session;
        client.state.targets().file_chooser = None;
        client.call(Some(&session), &InterceptFileChooser { enabled: true }, EVENT_TIMEOUT).await?;
        let clicked = async {
            let (point, target) = self.locate_element(name, CLICKABLE).await?;
            self.page.send_events(&click_events(point, MouseButton::Left, 1)).await?;
            let opened = client.state.wait_for_targets(|targets| targets.file_chooser.take());
            let no_dialog = |_| Error::other(format!("{name} takes no files")).because("it opened no dialog for files");
            let (session, node) = timeout(self.time_left(), opened).await.map_err(no_dialog)?;
            let set = SetFileInputFiles { files, object_id: None, backend_node_id: Some(node) };
            client.call(Some(&session), &set, EVENT_TIMEOUT).await?;
            Ok(target)
        };
        let outcome = clicked.await;
        client.cdp.send_nowait(Some(&session), &InterceptFileChooser { enabled: false });
        outcome
    }

    /// Drops files on an element.
    pub async fn drop_files(&self, at: &ActionTarget, files: &[String]) -> Result<Option<String>, ActionError> {
        let files = self.workspace_files(files).await?;
        let (point, target) = self.locate(at, REACHABLE).await?;
        let data = json!({"items": [], "files": files, "dragOperationsMask": 1});
        for kind in ["dragEnter", "dragOver", "drop"] {
            let event = DispatchDragEvent { kind, x: point.x, y: point.y, data: data.clone() };
            self.page.call(&event, EVENT_TIMEOUT).await?;
        }
        Ok(target)
    }

    /// Presses the left button, and releases it after a time.
    pub async fn long_press(&self, at: &ActionTarget, hold: Duration) -> Result<Option<String>, ActionError> {
        let (point, target) = self.locate(at, CLICKABLE).await?;
        self.page.send_events(&[move_event(point), press_event(point, MouseButton::Left, 1)]).await?;
        let lost = self.page.client.state.wait_for_targets(|targets| targets.session_error(&self.page.id));
        let is_lost = timeout(hold, lost).await.is_ok();
        if !is_lost {
            self.page.send_events(&[release_event(point, MouseButton::Left, 1)]).await?;
        }
        Ok(target)
    }

    /// The absolute paths of files of the workspace.
    async fn workspace_files(&self, files: &[String]) -> Result<Vec<String>> {
        let no_workspace = || Error::usage("files can only be given to a page of a workspace");
        let workspace = self.page.client.history().workspace().ok_or_else(no_workspace)?.to_owned();
        let files = files.to_vec();
        run_blocking(move || {
            let real = files.iter().map(|file| real_workspace_file(&workspace, file));
            real.map(|path| Ok(path?.display().to_string())).collect()
        })
        .await
    }
}
