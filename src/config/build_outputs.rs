//! What a build writes, as far as the workspace's files tell: such files are no changes, without any file of ours.
//! So are those of a browser's profile that is kept in the workspace: the window writes there all the time.
//!
//! A folder counts as written by the build only on evidence: it is a TypeScript project's `outDir`, or `outFiles` and
//! `main` name it and the workspace's own .gitignore leaves it out. A folder of sources must stay tracked: an edit that
//! nobody notices is worse than a build that is told to be its own cause.
//! Must not know how rules are applied.

use std::path::{Component, Path, PathBuf};

use crate::changes::IgnoreRules;

use crate::config::jsonc::{JsonDocument, JsonNode, JsonValue};
use crate::config::npm::package_json::PackageJson;
use crate::config::source_file::{Origin, normalize_path};

/// A rule of ignoring, in the syntax of `.gitignore`, relative to the folder that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildOutput {
    pub pattern: String,
    pub origin: Origin,
}

/// What is known of a workspace.
pub struct OutputEvidence<'a> {
    pub workspace: &'a Path,
    /// The folder that is watched.
    pub root: &'a Path,
    /// `outFiles` of the launch configuration, expanded, with the line of each.
    pub out_files: &'a [(String, usize)],
    /// The file of `out_files`.
    pub launch: &'a Path,
    pub package: Option<&'a PackageJson>,
    /// The browser's profile that is kept, and where that is said.
    pub profile: Option<(&'a Path, Origin)>,
    pub builds: bool,
}

/// The rules. A file that cannot be read gives none: whoever needs it for more says what is wrong with it.
pub fn find_build_outputs(evidence: &OutputEvidence<'_>) -> Vec<BuildOutput> {
    let mut rules = OutputFinder { evidence, found: Vec::new() };
    rules.find_typescript_outputs();
    if evidence.builds {
        rules.find_ignored_outputs();
    }
    if let Some((package, node)) = evidence.package.and_then(|package| Some((package, package.vscode_engine()?))) {
        // @vscode/test-cli and @vscode/test-electron put a whole VS Code there.
        rules.add_folder(&evidence.workspace.join(".vscode-test"), package.origin(evidence.workspace, node));
    }
    if let Some((profile, origin)) = &evidence.profile {
        // The window itself writes there, all the time.
        rules.add_folder(&normalize_path(&evidence.workspace.join(profile)), origin.clone());
    }
    rules.found
}

struct OutputFinder<'a> {
    evidence: &'a OutputEvidence<'a>,
    found: Vec<BuildOutput>,
}

impl OutputFinder<'_> {
    fn find_typescript_outputs(&mut self) {
        let workspace = self.evidence.workspace;
        let Ok(Some(document)) = JsonDocument::read(&workspace.join("tsconfig.json")) else { return };
        let Some(options) = document.root.get("compilerOptions") else { return };
        for name in ["outDir", "declarationDir"] {
            if let Some(node) = options.get(name) {
                self.add_configured_folder(node.text().unwrap_or_default(), document.origin(workspace, node));
            }
        }
        let incremental = ["incremental", "composite", "tsBuildInfoFile"].iter().find_map(|name| options.get(name));
        if let Some(node) = incremental.filter(|node| node.value != JsonValue::Bool(false)) {
            self.add_pattern("*.tsbuildinfo".to_owned(), document.origin(workspace, node));
        }
    }

    /// What `outFiles` and `main` name, where git is told to leave it out.
    fn find_ignored_outputs(&mut self) {
        let workspace = self.evidence.workspace;
        let git = IgnoreRules::load_gitignore(workspace);
        let launch = self.evidence.launch;
        let out_files = self.evidence.out_files.iter().filter(|(text, _)| !text.starts_with('!'));
        let out_files = out_files.map(|(text, line)| (fixed_folder(text), Origin::new(workspace, launch, Some(*line))));
        let main = self.evidence.package.and_then(|package| {
            let node: &JsonNode = package.main()?;
            Some((Path::new(node.text()?).parent()?.to_owned(), package.origin(workspace, node)))
        });
        for (folder, origin) in out_files.chain(main).collect::<Vec<_>>() {
            let folder = normalize_path(&workspace.join(folder));
            let inside = folder.strip_prefix(workspace).ok().filter(|rel| !rel.as_os_str().is_empty());
            if inside.is_some_and(|rel| !git.decide(rel, true).tracked) {
                self.add_folder(&folder, origin);
            }
        }
    }

    fn add_configured_folder(&mut self, path: &str, origin: Origin) {
        let folder = normalize_path(&self.evidence.workspace.join(path));
        // `outDir: "."` compiles beside the sources.
        if folder != self.evidence.workspace && folder.starts_with(self.evidence.workspace) {
            self.add_folder(&folder, origin);
        }
    }

    fn add_folder(&mut self, folder: &Path, origin: Origin) {
        let Ok(rel) = folder.strip_prefix(self.evidence.root) else { return };
        if let Some(rel) = rel.to_str().filter(|rel| !rel.is_empty()) {
            self.add_pattern(format!("/{}/", escape_pattern(rel)), origin);
        }
    }

    fn add_pattern(&mut self, pattern: String, origin: Origin) {
        if !self.found.iter().any(|known| known.pattern == pattern) {
            self.found.push(BuildOutput { pattern, origin });
        }
    }
}

/// The folder of a glob: what comes before its first wildcard.
fn fixed_folder(glob: &str) -> PathBuf {
    let is_fixed = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let path = Path::new(glob);
    let folder: PathBuf = path.components().take_while(is_fixed).collect();
    // A glob without wildcards names a file.
    if folder == path { folder.parent().unwrap_or(Path::new("")).to_owned() } else { folder }
}

/// The name as a pattern that means nothing but itself.
fn escape_pattern(name: &str) -> String {
    name.chars().flat_map(|c| [Some('\\').filter(|_| "*?[]\\ ".contains(c)), Some(c)]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `files` in a workspace, what `outFiles` says, whether there is a build; the rules that follow.
    fn check(files: &[(&str, &str)], out_files: &[&str], builds: bool, expect: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path();
        for (name, text) in files {
            std::fs::write(workspace.join(name), text).unwrap();
        }
        let out_files: Vec<(String, usize)> =
            out_files.iter().map(|text| (text.replace("<ws>", workspace.to_str().unwrap()), 4)).collect();
        let package = PackageJson::read(workspace).unwrap();
        let launch = workspace.join(".vscode/launch.json");
        let package = package.as_ref();
        let (root, out_files) = (workspace, &out_files[..]);
        let evidence = OutputEvidence { workspace, root, out_files, launch: &launch, package, profile: None, builds };
        let told: Vec<String> =
            find_build_outputs(&evidence).iter().map(|rule| format!("{} {}", rule.pattern, rule.origin)).collect();
        assert_eq!(told, expect, "{files:?} {out_files:?}");
    }

    #[test]
    fn only_what_is_known_to_be_written_by_the_build_is_left_out() {
        let git = (".gitignore", "out\n/lib/\n");
        check(&[], &["<ws>/out/**/*.js"], true, &[]);
        check(&[git], &["<ws>/out/**/*.js", "!**/node_modules/**"], true, &["/out/ .vscode/launch.json:4"]);
        check(&[git], &["<ws>/out/**/*.js"], false, &[]);
        check(&[git], &["<ws>/**/*.js", "<ws>/../out/*.js", "/elsewhere/out/*.js"], true, &[]);
        check(&[git, ("package.json", "{\n\"main\": \"./lib/a/main.js\"}")], &[], true, &["/lib/a/ package.json:2"]);
        check(&[git, ("package.json", "{\"main\": \"./extension.js\"}")], &[], true, &[]);
        check(&[("package.json", "{\"main\": \"./src/main.js\"}")], &["<ws>/src/**/*.js"], true, &[]);
        let tsconfig = |options: &str| format!("{{ // the options\n  \"compilerOptions\": {{\n{options}, }} }}");
        let check_ts =
            |options: &str, expect: &[&str]| check(&[("tsconfig.json", &tsconfig(options))], &[], false, expect);
        check_ts("\"outDir\": \"my [out]\"", &["/my\\ \\[out\\]/ tsconfig.json:3"]);
        check_ts("\"outDir\": \"./\", \"incremental\": true", &["*.tsbuildinfo tsconfig.json:3"]);
        check_ts("\"outDir\": \"../out\"", &[]);
        let extension = ("package.json", "{\n\"engines\": {\"vscode\": \"^1.90.0\"}}");
        check(&[extension], &[], false, &["/.vscode-test/ package.json:2"]);
    }

    #[test]
    fn a_profile_in_the_workspace_is_left_out_and_one_elsewhere_is_none_of_its_business() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path();
        let check = |root: &str, profile: &str, expect: &[&str]| {
            let (root, profile) = (workspace.join(root), profile.replace("<ws>", workspace.to_str().unwrap()));
            let origin = Origin::new(workspace, &workspace.join("devtools.toml"), Some(3));
            let evidence = OutputEvidence {
                workspace,
                root: &root,
                out_files: &[],
                launch: workspace,
                package: None,
                profile: Some((Path::new(&profile), origin)),
                builds: false,
            };
            let told: Vec<String> =
                find_build_outputs(&evidence).iter().map(|it| format!("{} {}", it.pattern, it.origin)).collect();
            assert_eq!(told, expect, "{profile}");
        };
        check("", ".profile", &["/.profile/ devtools.toml:3"]);
        check("", "<ws>/a/../my profile", &["/my\\ profile/ devtools.toml:3"]);
        check("src", "src/profile", &["/profile/ devtools.toml:3"]);
        check("src", ".profile", &[]);
        check("", ".", &[]);
        check("", "../profile", &[]);
        check("", "/elsewhere", &[]);
    }
}
