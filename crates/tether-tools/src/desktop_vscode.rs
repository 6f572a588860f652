//! Finds a desktop VS Code, or another product of its family: by setting, on PATH, or where installers put it.
//!
//! What is found is the launcher (`…/bin/code`), which starts the real Electron and ends. Does not depend on how it is
//! started. The places on macOS are from its documentation: nothing of that platform has been run.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use tether_base::path_lookup::{find_on_path, is_program};

/// One product, and where its installers put its launcher.
struct Product {
    name: &'static str,
    programs: &'static [&'static str],
    /// Absolute; `~` is the user's home.
    places: &'static [&'static str],
}

/// In the order in which they are preferred.
const PRODUCTS: &[Product] = &[
    Product {
        name: "VS Code",
        programs: &["code"],
        places: &[
            "/usr/share/code/bin/code",
            "/opt/visual-studio-code/bin/code",
            "/opt/VSCode-linux-x64/bin/code",
            "/opt/VSCode-linux-arm64/bin/code",
            "~/.local/share/code/bin/code",
            "~/VSCode-linux-x64/bin/code",
            "/snap/bin/code",
            "/var/lib/flatpak/exports/bin/com.visualstudio.code",
            "~/.local/share/flatpak/exports/bin/com.visualstudio.code",
            "/Applications/Visual Studio Code.app/Contents/Resources/app/bin/code",
            "~/Applications/Visual Studio Code.app/Contents/Resources/app/bin/code",
        ],
    },
    Product {
        name: "VS Code Insiders",
        programs: &["code-insiders"],
        places: &[
            "/usr/share/code-insiders/bin/code-insiders",
            "/opt/visual-studio-code-insiders/bin/code-insiders",
            "~/.local/share/code-insiders/bin/code-insiders",
            "/snap/bin/code-insiders",
            "/Applications/Visual Studio Code - Insiders.app/Contents/Resources/app/bin/code",
        ],
    },
    Product {
        name: "VSCodium",
        programs: &["codium", "vscodium"],
        places: &[
            "/usr/share/codium/bin/codium",
            "/opt/vscodium-bin/bin/codium",
            "/opt/VSCodium-linux-x64/bin/codium",
            "~/.local/share/codium/bin/codium",
            "/snap/bin/codium",
            "/var/lib/flatpak/exports/bin/com.vscodium.codium",
            "~/.local/share/flatpak/exports/bin/com.vscodium.codium",
            "/Applications/VSCodium.app/Contents/Resources/app/bin/codium",
        ],
    },
    Product {
        name: "Cursor",
        programs: &["cursor"],
        places: &[
            "/usr/share/cursor/bin/cursor",
            "/opt/cursor/bin/cursor",
            "~/.local/share/cursor/bin/cursor",
            "/Applications/Cursor.app/Contents/Resources/app/bin/cursor",
        ],
    },
];

/// The launcher: `setting` if there is one (it must then be a program), else the first on `path` (the value of PATH),
/// else the first in the usual places.
pub fn find_launcher(setting: Option<&Path>, path: Option<&OsStr>) -> Option<PathBuf> {
    match setting {
        Some(setting) => Some(setting.to_owned()).filter(|file| is_program(file)),
        None => find_below(Path::new("/"), std::env::home_dir().as_deref(), path),
    }
}

/// What was looked for, for messages.
pub fn describe_products() -> String {
    let names = PRODUCTS.iter().map(|product| format!("{} (`{}`)", product.name, product.programs[0]));
    names.collect::<Vec<_>>().join(", ")
}

fn find_below(root: &Path, home: Option<&Path>, path: Option<&OsStr>) -> Option<PathBuf> {
    let names = PRODUCTS.iter().flat_map(|product| product.programs);
    let mut by_path = names.filter_map(|name| desktop_on_path(name, path));
    let places = PRODUCTS.iter().flat_map(|product| product.places).filter_map(|place| match place.split_once("~/") {
        Some(("", below)) => home.map(|home| home.join(below)),
        _ => Some(root.join(place.trim_start_matches('/'))),
    });
    by_path.next().or_else(|| places.into_iter().find(|file| is_program(file)))
}

/// The program on PATH, unless it is the helper that a remote VS Code puts there: that one only talks to a window that
/// is open elsewhere.
fn desktop_on_path(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let desktop = std::env::split_paths(path?).filter(|folder| !is_remote_helper(folder));
    find_on_path(&[name], Some(&std::env::join_paths(desktop).ok()?))
}

fn is_remote_helper(folder: &Path) -> bool {
    let of_remote = |name: &OsStr| {
        name.to_str().is_some_and(|name| {
            name == "remote-cli" || (name.starts_with('.') && name.ends_with("-server")) || name == "code-server"
        })
    };
    folder.components().any(|part| matches!(part, Component::Normal(name) if of_remote(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn program(file: &Path) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "").unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_setting_wins_then_the_path_then_the_usual_places() {
        let root = tempfile::tempdir().unwrap();
        let at = |file: &str| root.path().join(file);
        let path = std::env::join_paths([at(".vscode-server/bin/abc/bin/remote-cli"), at("bin")]).unwrap();
        let check = |expect: Option<&str>| {
            let found = find_below(root.path(), Some(&at("home/me")), Some(&path));
            assert_eq!(found, expect.map(at));
        };
        check(None);
        program(&at("opt/cursor/bin/cursor"));
        check(Some("opt/cursor/bin/cursor"));
        program(&at("home/me/.local/share/codium/bin/codium"));
        check(Some("home/me/.local/share/codium/bin/codium"));
        program(&at("usr/share/code/bin/code"));
        check(Some("usr/share/code/bin/code"));
        program(&at("bin/code-insiders"));
        check(Some("bin/code-insiders"));
        program(&at(".vscode-server/bin/abc/bin/remote-cli/code"));
        check(Some("bin/code-insiders"));
        program(&at("bin/code"));
        check(Some("bin/code"));
        assert_eq!(find_launcher(Some(&at("opt/cursor/bin/cursor")), None), Some(at("opt/cursor/bin/cursor")));
        assert_eq!(find_launcher(Some(&at("nowhere")), Some(&path)), None);
    }
}
