//! Stories: an agent acts at once on each word that it was told, with no wait of its own, and the word must be true.
//!
//! Each test is a promise. `DEVTETHER_STORY_RUNS=20 cargo test --test stories` plays each story 20 times. A missing tool
//! skips loudly on a laptop and fails where `CI` is set.

mod agent;
mod breakpoints;
mod ends;
mod failures;
mod freshness;
mod front_ends;
mod hints;
mod languages;
mod programs;
mod stops;
mod story;
#[path = "../support/mod.rs"]
mod support;
mod windows;
