//! The house rules that the compiler cannot hold: who may use whom, and habits that nobody keeps unwatched.
//!
//! Each checker is a function from a file to complaints, tested on bad snippets beside it; here they are all put
//! to the real checkout. Must not know what the code does.

mod habits;
mod imports;
mod paths;
mod secrets;
mod sources;
mod versions;

use sources::{File, checkout, tracked};

/// Fails with every complaint, one a line.
fn check(complain: impl Fn(&File) -> Vec<String>, concerns: impl Fn(&File) -> bool) {
    let files: Vec<File> = tracked(&checkout()).into_iter().filter(concerns).collect();
    assert!(!files.is_empty(), "the checkout was not found: no file concerns this rule");
    let complaints: Vec<String> = files.iter().flat_map(complain).collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn rooms_use_only_the_rooms_that_the_design_lets_them_use() {
    check(imports::complaints, File::is_product);
}

#[test]
fn every_file_starts_by_saying_what_it_owns() {
    check(habits::header, File::is_rust);
}

#[test]
fn no_file_is_too_long_to_be_read_in_one_go() {
    check(habits::length, File::is_product);
}

#[test]
fn nothing_is_left_unfinished_or_switched_off() {
    check(habits::unfinished, File::is_rust);
}

#[test]
fn nothing_sleeps_to_wait_for_something() {
    check(habits::sleeps, File::is_product);
}

#[test]
fn every_unsafe_says_why_it_is_sound() {
    check(habits::unexplained_unsafe, File::is_rust);
}

#[test]
fn no_file_tells_about_the_machine_it_was_written_on() {
    check(secrets::machine_paths, |_| true);
}

#[test]
fn lock_files_name_no_registry_host() {
    check(secrets::registry_hosts, |file| file.path.ends_with(".json") || file.path.ends_with("npmrc"));
}

#[test]
fn the_examples_use_the_typescript_that_is_pinned() {
    let pins: toml::Table = include_str!("../../src/tools/pins.toml").parse().unwrap();
    let pinned = &pins["typescript"]["version"];
    check(|file| versions::complaints(file, pinned.as_str().unwrap()), versions::is_example_manifest);
}
