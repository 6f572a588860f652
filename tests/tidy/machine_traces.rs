//! What must not get into a commit: paths of the machine it was written on, hosts of the registries it used.
//!
//! Names no such path or host itself: they are learned from where the test runs, and from the files' own fields.

use std::env;
use std::path::Path;

use crate::sources::{File, checkout};

/// Folders that every machine has tell nothing about one.
const EVERYWHERE: [&str; 8] = ["/", "/tmp", "/home", "/usr/src", "/srv", "/opt", "/var/tmp", "/mnt"];

/// The home folder, and the place of the checkout, of whoever runs the tests.
pub fn machine_paths(file: &File) -> Vec<String> {
    let home = env::var("HOME").ok();
    let around = checkout().parent().and_then(|parent| parent.to_str().map(str::to_owned));
    let temporary = env::temp_dir();
    let tells = |path: &String| !EVERYWHERE.contains(&path.as_str()) && temporary != Path::new(path);
    let private: Vec<String> = [home, around].into_iter().flatten().filter(tells).collect();
    mentions_any(file, &private)
}

fn mentions_any(file: &File, private: &[String]) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    let bad = lines.filter(|(_, line)| private.iter().any(|path| mentions(line, path)));
    bad.map(|(at, _)| format!("{}:{}: names a folder of this machine", file.path, at + 1)).collect()
}

/// Whether `line` holds `path` as a path from the root, and not as the middle or the beginning of another.
fn mentions(line: &str, path: &str) -> bool {
    let part_of_a_name = |c: char| c.is_alphanumeric() || "-_.~*}".contains(c);
    line.match_indices(path).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + path.len()..]);
        !before.ends_with(part_of_a_name) && !after.starts_with(|c: char| part_of_a_name(c) && c != '.')
    })
}

/// A lock file resolves by name: an address in it ties the project to one registry.
pub fn registry_hosts(file: &File) -> Vec<String> {
    let is_address = |line: &str| line.contains("\"resolved\"") || line.trim_start().starts_with("registry");
    let bad = file.text.lines().enumerate().filter(|(_, line)| is_address(line) && line.contains("://"));
    bad.map(|(at, _)| format!("{}:{}: names a registry's host", file.path, at + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_folder_is_found_as_a_whole_path_only() {
        for (line, found) in [
            ("cd /home/ada/x", true),
            ("\"/home/ada\"", true),
            ("see /home/ada.", true),
            ("/home/adam", false),
            ("$D/home/ada", false),
            ("/srv/home/ada", false),
        ] {
            let complaints = mentions_any(&File::of("README.md", line), &["/home/ada".to_owned()]);
            assert_eq!(!complaints.is_empty(), found, "{line}");
        }
    }

    #[test]
    fn a_registrys_host_is_found_in_lock_files_and_npmrc() {
        for (line, found) in [
            ("  \"resolved\": \"https://registry.invalid/a/-/a-1.tgz\",", true),
            ("registry=https://registry.invalid/", true),
            ("  \"integrity\": \"sha512-abc\",", false),
            ("  \"url\": \"https://opencollective.invalid/a\"", false),
        ] {
            assert_eq!(!registry_hosts(&File::of("package-lock.json", line)).is_empty(), found, "{line}");
        }
    }
}
