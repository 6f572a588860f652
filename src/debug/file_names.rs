//! The user's own name for each file. Breakpoints are compared and sent by canonical paths; what is shown is the path by which
//! the user has named the file.
//!
//! In this order: the path of the workspace's breakpoint in the file; the path in question, if it lies in the workspace; the link
//! of the workspace below which the file lies; the path itself.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tether_base::sync::lock;

use super::breakpoints::{BreakpointKind, BreakpointSpec, BreakpointStore, StoredBreakpoints};
use super::workspace_links::{WorkspaceLink, find_links};

/// The names of the files of a workspace; clones share them.
#[derive(Clone)]
pub struct FileNames {
    /// Shown paths are relative to it.
    workspace: Arc<Path>,
    breakpoints: BreakpointStore,
    /// None: not searched for since a session was started last.
    links: Arc<Mutex<Option<Arc<[WorkspaceLink]>>>>,
}

/// How a file is shown. Both paths are relative to the workspace, if they lie in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownFile {
    /// The user's name.
    pub name: String,
    /// Where that leads to over a link; none: there is no link in it.
    pub real_path: Option<String>,
}

/// Where a breakpoint is, as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownPlace {
    /// `app.py:12`, a function, or what it watches.
    pub text: String,
    /// As [`ShownFile::real_path`].
    pub real_path: Option<String>,
}

impl FileNames {
    /// Those of a (canonical) workspace.
    pub(super) fn of_workspace(workspace: &Path, breakpoints: BreakpointStore) -> FileNames {
        FileNames { workspace: Arc::from(workspace), breakpoints, links: Arc::default() }
    }

    /// The same, for a session with breakpoints of its own.
    pub(super) fn with_breakpoints(&self, breakpoints: BreakpointStore) -> FileNames {
        FileNames { breakpoints, ..self.clone() }
    }

    /// Searches the links of the workspace, if that is due. Without it, files below them have their own names.
    pub async fn prepare(&self) {
        if lock(&self.links).is_some() {
            return;
        }
        let workspace = Arc::clone(&self.workspace);
        let found = tokio::task::spawn_blocking(move || find_links(&workspace)).await.unwrap_or_default();
        *lock(&self.links) = Some(found.into());
    }

    /// A session is started: the links may be others since.
    pub(super) fn forget_links(&self) {
        *lock(&self.links) = None;
    }

    /// How a file is shown that an adapter, or the user, names by that path.
    pub fn show(&self, path: &str) -> ShownFile {
        let (name, canonical) = self.resolve(Path::new(path));
        self.shown(&name, canonical.as_deref())
    }

    /// The user's name for a file, as an absolute path.
    pub fn absolute_name(&self, path: &str) -> PathBuf {
        self.resolve(Path::new(path)).0
    }

    /// The user's name for the file of a line breakpoint, as an absolute path.
    pub fn breakpoint_file(&self, spec: &BreakpointSpec) -> Option<PathBuf> {
        match &spec.kind {
            BreakpointKind::Line { file, named, .. } => Some(name_of_breakpoint(file, named.as_deref()).to_owned()),
            _ => None,
        }
    }

    /// How the file of a line breakpoint is shown.
    pub fn show_breakpoint_file(&self, file: &Path, named: Option<&Path>) -> ShownFile {
        self.shown(name_of_breakpoint(file, named), Some(file))
    }

    /// Where a breakpoint is.
    pub fn show_place(&self, kind: &BreakpointKind) -> ShownPlace {
        let text = match kind {
            BreakpointKind::Line { file, named, line, .. } => {
                let ShownFile { name, real_path } = self.show_breakpoint_file(file, named.as_deref());
                return ShownPlace { text: format!("{name}:{line}"), real_path };
            }
            BreakpointKind::Function { name } => name.clone(),
            BreakpointKind::ClassLine { class_name, line } => format!("{class_name}:{line}"),
            BreakpointKind::Data { expression, .. } => expression.clone(),
        };
        ShownPlace { text, real_path: None }
    }

    fn shown(&self, name: &Path, canonical: Option<&Path>) -> ShownFile {
        let real_path = canonical.filter(|canonical| *canonical != name).map(|it| display_path(&self.workspace, it));
        ShownFile { name: display_path(&self.workspace, name), real_path }
    }

    /// The user's name, and the canonical path of a file that is there.
    fn resolve(&self, path: &Path) -> (PathBuf, Option<PathBuf>) {
        if !path.is_absolute() {
            return (path.to_owned(), None);
        }
        let Ok(canonical) = path.canonicalize() else { return (path.to_owned(), None) };
        let name = name_in_list(&self.breakpoints.current(), &canonical)
            .or_else(|| path.starts_with(&self.workspace).then(|| path.to_owned()))
            .or_else(|| self.name_below_link(&canonical))
            .unwrap_or_else(|| path.to_owned());
        (name, Some(canonical))
    }

    fn name_below_link(&self, canonical: &Path) -> Option<PathBuf> {
        let links = lock(&self.links).clone()?;
        // The innermost folder.
        let below = links.iter().filter_map(|link| Some((link, canonical.strip_prefix(&link.target).ok()?)));
        let (link, rest) = below.max_by_key(|(link, _)| link.target.as_os_str().len())?;
        Some(if rest.as_os_str().is_empty() { link.path.clone() } else { link.path.join(rest) })
    }
}

/// The name by which the workspace's newest breakpoint in a file was set.
fn name_in_list(list: &StoredBreakpoints, canonical: &Path) -> Option<PathBuf> {
    let own = list.breakpoints.iter().rev().filter(|spec| spec.owner.is_none());
    own.filter_map(|spec| match &spec.kind {
        BreakpointKind::Line { file, named, .. } if file == canonical => {
            Some(name_of_breakpoint(file, named.as_deref()).to_owned())
        }
        _ => None,
    })
    .next()
}

/// The name is the user's only as long as it leads to the file.
fn name_of_breakpoint<'a>(file: &'a Path, named: Option<&'a Path>) -> &'a Path {
    named.filter(|named| named.canonicalize().is_ok_and(|it| it == file)).unwrap_or(file)
}

/// The path relative to the workspace when it is in it.
pub fn display_path(workspace: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(workspace).ok().filter(|rest| !rest.as_os_str().is_empty());
    inside.unwrap_or(path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::debug::breakpoints::BreakpointConditions;

    /// A workspace with `real/app.py`, `linked` → `real`, and `libs/shop` → a folder elsewhere with `price.py`.
    struct Linked {
        workspace: PathBuf,
        elsewhere: PathBuf,
        _folders: [tempfile::TempDir; 2],
    }

    impl Linked {
        fn new() -> Linked {
            let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
            let [workspace, elsewhere] = folders.each_ref().map(|it| it.path().canonicalize().unwrap());
            for folder in ["real", "libs"] {
                std::fs::create_dir(workspace.join(folder)).unwrap();
            }
            std::fs::write(workspace.join("real/app.py"), "a\nb\n").unwrap();
            std::fs::write(elsewhere.join("price.py"), "a\nb\n").unwrap();
            symlink("real", workspace.join("linked")).unwrap();
            symlink(&elsewhere, workspace.join("libs/shop")).unwrap();
            Linked { workspace, elsewhere, _folders: folders }
        }

        fn path(&self, file: &str) -> String {
            self.workspace.join(file).to_string_lossy().into_owned()
        }

        fn price(&self) -> String {
            self.elsewhere.join("price.py").to_string_lossy().into_owned()
        }
    }

    fn shown(name: &str, real_path: Option<&str>) -> ShownFile {
        ShownFile { name: name.to_owned(), real_path: real_path.map(str::to_owned) }
    }

    #[tokio::test]
    async fn a_file_has_the_name_by_which_the_user_has_set_a_breakpoint_in_it() {
        let linked = Linked::new();
        let store = BreakpointStore::in_memory();
        let names = FileNames::of_workspace(&linked.workspace, store.clone());
        let (by_link, real) = (linked.path("linked/app.py"), linked.path("real/app.py"));
        assert_eq!(names.show(&real), shown("real/app.py", None));
        assert_eq!(names.show(&by_link), shown("linked/app.py", Some("real/app.py")), "as the program was started");
        let set = async |path: &str| store.set_line(Path::new(path), 1, BreakpointConditions::default()).await.unwrap();
        let spec = set(&by_link).await;
        assert_eq!(
            (spec.file(), names.breakpoint_file(&spec)),
            (Some(Path::new(&real)), Some(PathBuf::from(&by_link)))
        );
        for path in [&by_link, &real] {
            assert_eq!(names.show(path), shown("linked/app.py", Some("real/app.py")), "{path}");
        }
        let place = ShownPlace { text: "linked/app.py:1".into(), real_path: Some("real/app.py".into()) };
        assert_eq!(names.show_place(&spec.kind), place);
        // The name that was given last; what leads to another file now is no name of it.
        assert_eq!(set(&linked.path("real/../real/app.py")).await.id, spec.id);
        assert_eq!(names.show(&by_link), shown("real/app.py", None));
        let spec = set(&by_link).await;
        std::fs::remove_file(linked.workspace.join("linked")).unwrap();
        assert_eq!(names.show_place(&spec.kind).text, "real/app.py:1");
    }

    #[tokio::test]
    async fn a_file_outside_of_the_workspace_has_the_name_of_the_link_that_leads_to_it() {
        let linked = Linked::new();
        let names = FileNames::of_workspace(&linked.workspace, BreakpointStore::in_memory());
        let price = linked.price();
        assert_eq!(names.show(&price), shown(&price, None), "not searched yet");
        names.prepare().await;
        assert_eq!(names.show(&price), shown("libs/shop/price.py", Some(&price)));
        assert_eq!(names.show("/usr/lib/none.py"), shown("/usr/lib/none.py", None));
        assert_eq!(names.show("<string>"), shown("<string>", None));
        names.forget_links();
        assert_eq!(names.show(&price), shown(&price, None));
    }

    #[test]
    fn paths_are_relative_where_they_lie_in_the_workspace() {
        let check = |path: &str, expect: &str| assert_eq!(display_path(Path::new("/w s"), Path::new(path)), expect);
        check("/w s/a/b.py", "a/b.py");
        check("/w s", "/w s");
        check("/w special/b.py", "/w special/b.py");
        check("<string>", "<string>");
    }
}
