//! Tests in Go: the packages that define a test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::config::named_test::patterns::exact_pattern;
use crate::config::named_test::test_files::{is_word, read_source};
use crate::config::named_test::test_run::{NamedTest, TestRun};

/// With which the names of functions begin that `go test` runs.
const KINDS: [&str; 4] = ["Test", "Benchmark", "Example", "Fuzz"];

/// The runs of this name, such as `TestTwice/a lot`.
pub fn search(test: &NamedTest<'_>) -> Vec<TestRun> {
    let function = test.name.split('/').next().unwrap_or_default();
    if !KINDS.iter().any(|kind| function.starts_with(kind)) || !is_word(function) {
        return Vec::new();
    }
    let func = format!("func {function}(");
    let files = test.files(|name| name.ends_with("_test.go"), |text| text.contains(&func));
    let packages: BTreeSet<PathBuf> = files.iter().filter_map(|file| Some(file.parent()?.to_owned())).collect();
    let parts: Vec<String> = test.name.split('/').map(exact_pattern).collect();
    packages.into_iter().map(|package| TestRun::Go { package, pattern: parts.join("/") }).collect()
}

/// All tests of a file; `None`: there are none.
pub fn whole_file(file: &Path) -> Option<TestRun> {
    let text = read_source(file)?;
    let names = text.lines().filter_map(|line| line.strip_prefix("func ")?.split('(').next());
    let tests: Vec<&str> = names.filter(|name| name.starts_with(KINDS[0]) && is_word(name)).collect();
    let package = file.parent()?.to_owned();
    (!tests.is_empty()).then(|| TestRun::Go { package, pattern: format!("^({})$", tests.join("|")) })
}
