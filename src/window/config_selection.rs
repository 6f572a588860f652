//! The selection of a launch configuration by a start, for as long as the start runs.
//!
//! Held by its caller, and by the actor while it builds and launches: a caller may leave. Does not know which configurations
//! exist.

use std::sync::Arc;

use tether_base::error::Result;
use tracing::warn;

use super::caller::HeldSelection;
use super::context::WindowContext;

/// A selected configuration. When the last reference is dropped, the former one is selected again, unless the window runs
/// from this one by then.
pub struct ConfigSelection {
    context: Arc<WindowContext>,
    selected: Option<String>,
    before: Option<String>,
}

impl ConfigSelection {
    /// Selects a configuration.
    pub fn select(context: &Arc<WindowContext>, name: &str) -> Result<Arc<ConfigSelection>> {
        let before = context.active_config().selected;
        let selected = Some(name.to_owned());
        context.update_active_config(|active| active.selected.clone_from(&selected))?;
        Ok(Arc::new(ConfigSelection { context: Arc::clone(context), selected, before }))
    }
}

impl HeldSelection for ConfigSelection {}

impl Drop for ConfigSelection {
    fn drop(&mut self) {
        let restored = self.context.update_active_config(|active| {
            // Another call may have selected another one.
            if active.selected == self.selected && active.running != self.selected {
                active.selected = self.before.take();
            }
        });
        if let Err(error) = restored {
            warn!("{error}");
        }
    }
}
