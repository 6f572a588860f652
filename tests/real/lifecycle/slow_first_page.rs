//! A page whose own scripts take longer than a start waits for them.

use crate::support::requirements::has_program;
use crate::support::{browser, eventually};

/// Longer than a start waits for the first page.
const PAGE: &str = "<script type=module>
const end = performance.now() + 9000;
while (performance.now() < end);
document.body.append('the module has run');
</script>";

#[test]
fn a_module_that_takes_longer_than_the_start_waits_is_not_terminated() {
    if !has_program("chromium") {
        return;
    }
    let sandbox = browser(PAGE);
    sandbox.json(&["start"]);
    // A snapshot of the page that is busy fails.
    eventually("the module has run", || {
        sandbox.tether(&["snapshot"]).stdout.contains("the module has run").then_some(())
    });
}
