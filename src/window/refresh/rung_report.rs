//! What is known of a refresh: by which rung of the ladder, and what it has left of the window. Plain data.

use std::time::Duration;

use crate::vocabulary::RefreshRung;

/// How a window was made to run the code of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowRefresh {
    pub by: RefreshRung,
    /// Without the build.
    pub took: Duration,
}

/// What a rung reports of the window that it has refreshed.
pub struct RungReport {
    /// The inspector of the new extension host; `None` if it is as before.
    pub inspector_port: Option<u16>,
    /// What a user should know of it.
    pub notes: Vec<String>,
}
