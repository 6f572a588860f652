//! Conversion between the types of `window` and `debug`, which do not depend on the API, and those of the API.

pub(super) mod debug;
pub(super) mod page;
pub(super) mod page_actions;
pub(super) mod window;
