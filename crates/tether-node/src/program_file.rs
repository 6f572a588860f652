//! The file that Node runs for a `program`: the ending of its name may be left out, and it may be a folder.

use std::path::{Path, PathBuf};

use super::package_manifest::read_manifest;

/// The endings that may be left out, the preferred one first.
const ENDINGS: [&str; 8] = ["js", "cjs", "mjs", "ts", "cts", "mts", "tsx", "jsx"];

/// The file or folder that a `program` names, the ending of whose name may be left out. `None`: there is none.
pub fn find_program(program: &Path) -> Option<PathBuf> {
    if program.exists() {
        return Some(program.to_owned());
    }
    let name = program.file_name()?;
    let with_ending = |ending: &&str| {
        let mut name = name.to_owned();
        name.push(".");
        name.push(ending);
        program.with_file_name(name)
    };
    ENDINGS.iter().map(with_ending).find(|file| file.is_file())
}

/// The file whose first line is the first that runs: in a folder, the one that its package names, or its index.
pub(crate) fn entry_file(program: &Path) -> PathBuf {
    let index = |folder: &Path| find_program(&folder.join("index")).filter(|file| file.is_file());
    let in_folder = |folder: &Path| {
        let manifest = read_manifest(folder);
        let main = manifest.as_ref().and_then(|it| it.get("main")?.as_str());
        let main = main.and_then(|main| find_program(&folder.join(main)));
        main.and_then(|main| if main.is_dir() { index(&main) } else { Some(main) }).or_else(|| index(folder))
    };
    let found = if program.is_dir() { in_folder(program) } else { None };
    found.unwrap_or_else(|| program.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_without_its_ending_and_by_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (file, text) in [
            ("src/index.js", ""),
            ("src/server.ts", ""),
            ("app/package.json", r#"{"main": "lib/start"}"#),
            ("app/lib/start.cjs", ""),
            ("wrong/package.json", r#"{"main": 1}"#),
        ] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), text).unwrap();
        }
        let check = |program: &str, found: Option<&str>, entry: &str| {
            let program = root.join(program);
            assert_eq!(find_program(&program), found.map(|file| root.join(file)));
            assert_eq!(entry_file(&program), root.join(entry));
        };
        check("src/server.ts", Some("src/server.ts"), "src/server.ts");
        check("src", Some("src"), "src/index.js");
        check("app", Some("app"), "app/lib/start.cjs");
        check("wrong", Some("wrong"), "wrong");
        assert_eq!(find_program(&root.join("src/server")), Some(root.join("src/server.ts")));
        assert_eq!(find_program(&root.join("src/none")), None);
    }
}
