//! What the crates of `devtether` share, and what depends on nothing else of them.
//!
//! | module | owns |
//! |---|---|
//! | [`error`] | the one user-facing error: its subject, its cause, and the next command |
//! | [`display_text`] | escapes what outside people and programs say, before it is shown |
//! | [`clipped_text`] | shortens long texts |
//! | [`secret_values`] | masks values of variables in what is shown of a command, its output and its failure |
//! | [`secret_shapes`] | masks what looks like a secret in the values of variables |
//! | [`bounded_file`] | reads files that others may have written |
//! | [`file_age`] | whether a build is older than its source |
//! | [`file_owner`] | whether a file belongs to our user |
//! | [`path_lookup`] | finds programs on PATH |
//! | [`xdg`] | the folders of the user for state, configuration, data and caches |
//! | [`line_anchor`] | finds a line's code again in another text of its file |
//! | [`ring`] | bounded rings that readers follow with a cursor |
//! | [`clock`], [`sync`] | the wall clock; locking of mutexes, sets of tasks |

#![warn(missing_docs, unreachable_pub)]

pub mod bounded_file;
pub mod clipped_text;
pub mod clock;
pub mod display_text;
pub mod error;
pub mod file_age;
pub mod file_lock;
pub mod file_owner;
pub mod line_anchor;
pub mod path_lookup;
pub mod ring;
pub mod secret_shapes;
pub mod secret_values;
pub mod sync;
pub mod xdg;
