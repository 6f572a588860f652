//! Rules of this project that neither the compiler nor clippy checks: layers of the root package, headers, CDP, the
//! links of documents.
//!
//! Each rule is a function from files to complaints, tested on snippets beside it; here all of them run on the checkout.
//! `cargo test --test tidy -- --nocapture` prints the counts that the rules are about.

mod cdp_conformance;
mod cdp_protocol;
mod cdp_types;
mod documents;
mod file_rules;
mod layers;
mod machine_traces;
mod pinned_versions;
mod sources;

use cdp_protocol::CdpProtocol;
use cdp_types::{CdpTypes, ParsedEvent, parsed_events};
use documents::Documents;
use sources::{File, checkout, tracked, tracked_paths};

/// Fails with every complaint, one a line.
fn check(complain: impl Fn(&File) -> Vec<String>, concerns: impl Fn(&File) -> bool) {
    let files: Vec<File> = tracked(&checkout()).into_iter().filter(concerns).collect();
    assert!(!files.is_empty(), "the checkout was not found: no file concerns this rule");
    let complaints: Vec<String> = files.iter().flat_map(complain).collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// The Rust files that ship, without files that hold only tests.
fn product_files() -> Vec<File> {
    tracked(&checkout()).into_iter().filter(|file| file.is_product() && !file.is_test()).collect()
}

#[test]
fn modules_use_only_what_the_design_allows() {
    check(layers::complaints, File::is_product);
}

#[test]
fn every_file_starts_with_its_responsibility() {
    check(file_rules::header, File::is_rust);
}

#[test]
fn no_sleep_stands_in_for_an_event() {
    check(file_rules::sleeps, File::is_product);
}

#[test]
fn no_file_names_a_folder_of_this_machine() {
    check(machine_traces::machine_paths, |_| true);
}

#[test]
fn lock_files_name_no_registry_host() {
    check(machine_traces::registry_hosts, |file| file.path.ends_with(".json") || file.path.ends_with("npmrc"));
}

#[test]
fn npm_projects_use_the_typescript_that_is_pinned() {
    let pins: toml::Table = include_str!("../../crates/tether-tools/src/pins.toml").parse().unwrap();
    let pinned = &pins["typescript"]["version"];
    check(|file| pinned_versions::complaints(file, pinned.as_str().unwrap()), pinned_versions::is_npm_manifest);
}

/// Fails with every complaint of a rule about the documents as a whole.
fn check_documents(complain: impl Fn(&Documents) -> Vec<String>) {
    let files: Vec<File> = tracked(&checkout()).into_iter().filter(|file| file.path.ends_with(".md")).collect();
    let complaints = complain(&Documents::new(files, tracked_paths(&checkout())));
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn links_in_documents_lead_to_files_and_headings() {
    check_documents(Documents::broken_links);
}

#[test]
fn the_book_lists_each_of_its_pages() {
    check_documents(Documents::book_complaints);
}

#[test]
fn the_readme_is_short() {
    check(documents::long_readme, |file| file.path == "README.md");
}

/// The typed messages of `tether-cdp`, and the events that are parsed.
fn cdp_messages() -> (CdpTypes, Vec<ParsedEvent>) {
    let files = product_files();
    let mut types = CdpTypes::default();
    files
        .iter()
        .filter(|file| file.path.starts_with("crates/tether-cdp/"))
        .for_each(|file| types.add_file(file).unwrap());
    let events: Vec<ParsedEvent> = files.iter().flat_map(|file| parsed_events(file).unwrap()).collect();
    println!("CDP: {} commands, {} structs, {} events", types.commands.len(), types.structs.len(), events.len());
    assert!(!types.commands.is_empty() && !events.is_empty(), "the messages were not found");
    (types, events)
}

#[test]
fn cdp_messages_are_those_of_the_protocol() {
    let Some(protocol) = CdpProtocol::installed() else { return };
    let (types, events) = cdp_messages();
    let complaints = cdp_conformance::complaints(&types, &events, &protocol, true);
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    let speaks_cdp = |file: &File| {
        file.is_product()
            && ["crates/tether-cdp/", "src/window/", "crates/tether-node/"].iter().any(|it| file.path.starts_with(it))
    };
    check(|file| cdp_conformance::unknown_methods(file, &protocol), speaks_cdp);
}

/// Node has an older V8 than the newest browser.
#[test]
fn cdp_messages_for_node_are_those_that_it_has() {
    let Some(protocol) = CdpProtocol::of_node() else { return };
    let (types, events) = cdp_messages();
    let complaints = cdp_conformance::complaints(&types, &events, &protocol, false);
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
