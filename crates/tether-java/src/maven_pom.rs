//! Maven's project files, as far as they say what is on a class path: inheritance, properties, managed versions.
//!
//! Plugins and profiles are not run: what they change is not known here. Every file that is read is small, and their number is
//! limited. Source: <https://maven.apache.org/pom.html>

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use roxmltree::{Document, Node};
use tether_base::bounded_file::{self, Links};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 2 << 20;
/// How many parents of a file, and properties within properties, are followed.
const MAX_DEPTH: usize = 16;

/// What identifies a package: `group:artifact`.
pub(crate) type PackageName = (String, String);

/// A dependency as it is written; the version may be managed elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PomDependency {
    pub name: PackageName,
    pub version: Option<String>,
    pub scope: Option<String>,
    pub kind: Option<String>,
    pub classifier: Option<String>,
    pub is_optional: bool,
    /// `*` excludes all.
    pub exclusions: Vec<PackageName>,
}

/// A project file with what it inherits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pom {
    pub name: PackageName,
    pub version: String,
    pub modules: Vec<String>,
    pub dependencies: Vec<PomDependency>,
    pub managed: Vec<PomDependency>,
    properties: BTreeMap<String, String>,
}

/// The folder where Maven keeps the packages that it has fetched: that of the user's settings, or the usual one.
pub(crate) fn local_repository(home: &Path) -> PathBuf {
    let text = bounded_file::read_text(&home.join(".m2/settings.xml"), MAX_BYTES, Links::Follow).unwrap_or_default();
    let named = Document::parse(&text).ok().and_then(|settings| child_text(settings.root_element(), "localRepository"));
    let named = named.map(|path| PathBuf::from(path.replace("${user.home}", &home.to_string_lossy())));
    named.filter(|path| path.is_absolute()).unwrap_or_else(|| home.join(".m2/repository"))
}

/// Where the repository keeps a file of a package.
pub(crate) fn repository_file(repository: &Path, name: &PackageName, version: &str, ending: &str) -> Option<PathBuf> {
    let is_plain = |part: &str| !part.is_empty() && !part.contains('/') && part != "..";
    if ![name.0.as_str(), &name.1, version].into_iter().all(is_plain) {
        return None;
    }
    let folder = repository.join(name.0.replace('.', "/")).join(&name.1).join(version);
    Some(folder.join(format!("{}-{version}{ending}", name.1)))
}

/// Reads a project file with its parents; `None`: there is none, or it cannot be read.
pub(crate) fn read_pom(path: &Path, repository: &Path) -> Option<Pom> {
    read_with_imports(path, repository, MAX_DEPTH)
}

fn read_with_imports(path: &Path, repository: &Path, left: usize) -> Option<Pom> {
    let mut pom = read_chain(path, repository, MAX_DEPTH)?;
    for (name, value) in [("groupId", &pom.name.0), ("artifactId", &pom.name.1), ("version", &pom.version)] {
        pom.properties.insert(format!("project.{name}"), value.clone());
    }
    let properties = std::mem::take(&mut pom.properties);
    let fill = |text: &mut String| *text = fill_in(text, &properties);
    fill(&mut pom.name.0);
    fill(&mut pom.version);
    for it in pom.dependencies.iter_mut().chain(&mut pom.managed) {
        [&mut it.name.0, &mut it.name.1].into_iter().for_each(fill);
        [&mut it.version, &mut it.scope, &mut it.classifier].into_iter().flatten().for_each(fill);
    }
    // Those of another file that is imported come after its own.
    let imported = |it: &PomDependency| it.scope.as_deref() == Some("import");
    let imports: Vec<PomDependency> = pom.managed.extract_if(.., |it| imported(it)).collect();
    for it in imports {
        let file = repository_file(repository, &it.name, it.version.as_deref().unwrap_or_default(), ".pom");
        let read = file.zip(left.checked_sub(1)).and_then(|(file, left)| read_with_imports(&file, repository, left));
        pom.managed.extend(read.into_iter().flat_map(|read| read.managed));
    }
    pom.properties = properties;
    Some(pom)
}

fn read_chain(path: &Path, repository: &Path, left: usize) -> Option<Pom> {
    let text = bounded_file::read_text(path, MAX_BYTES, Links::Follow).ok()?;
    let document = Document::parse(&text).ok()?;
    let root = document.root_element();
    let parent = child(root, "parent");
    let mut inherited = Pom::default();
    if let (Some(parent), Some(left)) = (parent, left.checked_sub(1)) {
        let text = |name| child_text(parent, name).unwrap_or_default();
        let (name, version) = ((text("groupId"), text("artifactId")), text("version"));
        let relative = child_text(parent, "relativePath").unwrap_or_else(|| "../pom.xml".to_owned());
        let beside = path.parent().map(|folder| folder.join(relative));
        let beside = beside.map(|it| if it.is_dir() { it.join("pom.xml") } else { it });
        let beside = beside.filter(|it| it.is_file()).and_then(|it| read_chain(&it, repository, left));
        let kept = || read_chain(&repository_file(repository, &name, &version, ".pom")?, repository, left);
        inherited = beside.filter(|pom| pom.name.1 == name.1).or_else(kept).unwrap_or_default();
        inherited.name.0 = name.0;
        inherited.properties.insert("project.parent.version".to_owned(), version.clone());
        inherited.version = version;
    }
    let dependencies = |of: Option<Node<'_, '_>>| -> Vec<PomDependency> {
        let listed = of.and_then(|of| child(of, "dependencies"));
        listed.into_iter().flat_map(|it| it.children()).filter(Node::is_element).map(read_dependency).collect()
    };
    let (own, managed) = (dependencies(Some(root)), dependencies(child(root, "dependencyManagement")));
    let mut properties = inherited.properties;
    for it in child(root, "properties").into_iter().flat_map(|it| it.children()).filter(Node::is_element) {
        properties.insert(it.tag_name().name().to_owned(), it.text().unwrap_or_default().trim().to_owned());
    }
    let modules = child(root, "modules").into_iter().flat_map(|it| it.children()).filter(Node::is_element);
    Some(Pom {
        name: (
            child_text(root, "groupId").unwrap_or(inherited.name.0),
            child_text(root, "artifactId").unwrap_or_default(),
        ),
        version: child_text(root, "version").unwrap_or(inherited.version),
        modules: modules.filter_map(|it| Some(it.text()?.trim().to_owned())).collect(),
        dependencies: own.into_iter().chain(inherited.dependencies).collect(),
        managed: managed.into_iter().chain(inherited.managed).collect(),
        properties,
    })
}

fn read_dependency(node: Node<'_, '_>) -> PomDependency {
    let name_of = |node| {
        let text = |name| child_text(node, name).unwrap_or_default();
        (text("groupId"), text("artifactId"))
    };
    let exclusions = child(node, "exclusions").into_iter().flat_map(|it| it.children()).filter(Node::is_element);
    PomDependency {
        name: name_of(node),
        version: child_text(node, "version"),
        scope: child_text(node, "scope"),
        kind: child_text(node, "type"),
        classifier: child_text(node, "classifier"),
        is_optional: child_text(node, "optional").as_deref() == Some("true"),
        exclusions: exclusions.map(name_of).collect(),
    }
}

/// A text with its `${names}` replaced, also those within them; what is not known stays.
fn fill_in(text: &str, properties: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for _ in 0..MAX_DEPTH {
        let Some((before, rest)) = text.split_once("${") else { break };
        let Some((name, after)) = rest.split_once('}') else { break };
        let name = name.strip_prefix("pom.").map_or(name.to_owned(), |name| format!("project.{name}"));
        let Some(value) = properties.get(&name) else { break };
        text = format!("{before}{value}{after}");
    }
    text
}

fn child<'a, 'b>(node: Node<'a, 'b>, name: &str) -> Option<Node<'a, 'b>> {
    node.children().find(|it| it.is_element() && it.tag_name().name() == name)
}

fn child_text(node: Node<'_, '_>, name: &str) -> Option<String> {
    Some(child(node, name)?.text().unwrap_or_default().trim().to_owned())
}
