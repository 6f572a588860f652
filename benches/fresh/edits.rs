//! Many edits in a row, each followed at once by a question that only the new code answers right.

use std::time::Duration;

use super::client::median;
use super::project::{Project, Refresh};

/// Prints each edit, and how many were answered right.
pub fn measure(count: usize) {
    let projects: [(&str, &dyn Fn() -> Project); 3] = [
        ("Extension Development Host", &|| Project::extension(Refresh::Auto)),
        ("page with a service worker", &Project::page_with_worker),
        ("Node", &Project::node),
    ];
    for (name, start) in projects {
        let mut project = start();
        println!("{name}\n  edit  answer  rung                   build ended →  save →");
        let (mut right, mut times) = (0, Vec::new());
        for edit in 1..=count {
            let answer = project.edit_and_ask();
            let is_right = answer.value == project.version();
            right += usize::from(is_right);
            let word = if is_right { "right" } else { "WRONG" };
            let times_of = |it: Duration| format!("{} ms", it.as_millis());
            let (build, save) = (times_of(answer.from_build), times_of(answer.from_save));
            println!("  {edit:>4}  {word:<6}  {:<21}  {build:>13}  {save:>8}", answer.by);
            times.push(answer.from_build);
        }
        let (slowest, median) = (times.iter().max().copied().unwrap_or_default(), median(times));
        println!("  {right} of {count} right; build ended → answer: median {median:.2?}, slowest {slowest:.2?}");
    }
}
