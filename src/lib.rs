//! `devtether`: keeps the window under development, and its debug sessions, alive and fresh
//! while everything around it restarts.
//!
//! The map of the house, from the doors down. Data flows down; only events and snapshots flow up.
//!
//! | room | owns |
//! |---|---|
//! | [`error`] | the one user-facing error |

pub mod error;
