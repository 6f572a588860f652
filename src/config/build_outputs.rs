//! Finds the build outputs of a workspace, as ignore rules for the change tracker; a browser profile kept in the
//! workspace is one of them, since the window writes to it while it runs.
//!
//! A folder is a build output only on evidence: it is the `outDir` of a TypeScript project, or `outFiles` or `main`
//! names it and the workspace's .gitignore ignores it. Source folders must stay tracked: a missed edit is worse than a
//! build that reports its own output as a change.
//! Does not depend on how the rules are applied.

use std::path::{Component, Path, PathBuf};

use tether_changes::IgnoreRules;

use crate::config::jsonc::{JsonDocument, JsonNode, JsonValue};
use crate::config::npm::package_json::PackageJson;
use crate::config::source_file::{Origin, normalize_path};
use crate::config::vscode::shell_quoting::escape_characters;

/// An ignore rule for files that a build writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildOutput {
    /// In the syntax of `.gitignore`, relative to the watched folder.
    pub pattern: String,
    /// The file and line from which the rule is derived.
    pub origin: Origin,
}

/// The settings of a workspace that name files a build may write.
pub struct OutputEvidence<'a> {
    /// The folder of the workspace; absolute.
    pub workspace: &'a Path,
    /// The watched folder; absolute.
    pub root: &'a Path,
    /// `outFiles` of the launch configuration, expanded, with the line of each.
    pub out_files: &'a [(String, usize)],
    /// The launch.json that has `out_files`.
    pub launch: &'a Path,
    /// The package.json of the workspace.
    pub package: Option<&'a PackageJson>,
    /// The browser profile that is kept between launches, and the origin of that setting.
    pub profile: Option<(&'a Path, Origin)>,
    /// The folders of the extensions under development, which may have ignore files of their own.
    pub extensions: &'a [&'a Path],
    /// Whether a dev server runs, which writes caches.
    pub serves: bool,
    /// Whether a build runs before a launch. Without one, `outFiles` and `main` are not read.
    pub builds: bool,
}

/// The build outputs of a workspace. A file that cannot be read yields none; the modules that need it report the error.
pub fn find_build_outputs(evidence: &OutputEvidence<'_>) -> Vec<BuildOutput> {
    let mut rules = OutputFinder { evidence, found: Vec::new() };
    rules.find_typescript_outputs();
    if evidence.builds {
        rules.find_ignored_outputs();
    }
    if evidence.serves {
        rules.find_server_caches();
    }
    if let Some((package, node)) = evidence.package.and_then(|package| Some((package, package.vscode_engine()?))) {
        // @vscode/test-cli and @vscode/test-electron download VS Code to this folder.
        rules.add_folder(&evidence.workspace.join(".vscode-test"), package.origin(evidence.workspace, node));
    }
    if let Some((profile, origin)) = &evidence.profile {
        // The window writes to its profile while it runs.
        rules.add_folder(&normalize_path(&evidence.workspace.join(profile)), origin.clone());
    }
    // Last: they may include again what is excluded above.
    evidence.extensions.iter().for_each(|extension| rules.add_nested_ignores(extension));
    rules.found
}

/// What dev servers write beside their sources.
const SERVER_CACHES: &[&str] = &[
    ".next",
    ".nuxt",
    ".output",
    ".svelte-kit",
    ".astro",
    ".angular",
    ".vite",
    ".cache",
    ".parcel-cache",
    ".docusaurus",
    ".react-router",
    ".vinxi",
    ".turbo",
    "next-env.d.ts",
];

/// How many TypeScript projects of a workspace are read.
const MAX_TYPESCRIPT_PROJECTS: usize = 50;

struct OutputFinder<'a> {
    evidence: &'a OutputEvidence<'a>,
    found: Vec<BuildOutput>,
}

impl OutputFinder<'_> {
    /// The outputs of the TypeScript project of the workspace, and of those that its `references` name (`tsc -b`).
    fn find_typescript_outputs(&mut self) {
        let workspace = self.evidence.workspace;
        let mut projects = vec![workspace.join("tsconfig.json")];
        let mut next = 0;
        while let Some(project) = projects.get(next).cloned() {
            next += 1;
            for referenced in self.find_project_outputs(&project) {
                if projects.len() < MAX_TYPESCRIPT_PROJECTS
                    && referenced.starts_with(workspace)
                    && !projects.contains(&referenced)
                {
                    projects.push(referenced);
                }
            }
        }
    }

    /// Adds the outputs of one TypeScript project, and returns the projects that it references.
    fn find_project_outputs(&mut self, project: &Path) -> Vec<PathBuf> {
        let workspace = self.evidence.workspace;
        let folder = project.parent().unwrap_or(workspace);
        let Ok(Some(document)) = JsonDocument::read(project) else { return Vec::new() };
        if let Some(options) = document.root.get("compilerOptions") {
            for name in ["outDir", "declarationDir"] {
                if let Some(node) = options.get(name) {
                    let output = normalize_path(&folder.join(node.text().unwrap_or_default()));
                    // `outDir: "."` writes the outputs beside the sources.
                    if !folder.starts_with(&output) && output.starts_with(workspace) {
                        self.add_folder(&output, document.origin(workspace, node));
                    }
                }
            }
            let incremental = ["incremental", "composite", "tsBuildInfoFile"].iter().find_map(|name| options.get(name));
            if let Some(node) = incremental.filter(|node| node.value != JsonValue::Bool(false)) {
                self.add_pattern("*.tsbuildinfo".to_owned(), document.origin(workspace, node));
            }
        }
        let paths = document.root.items_of("references").iter().filter_map(|reference| reference.text_of("path"));
        let paths = paths.map(|path| normalize_path(&folder.join(path)));
        // A reference names a folder, or the file itself.
        paths.map(|path| if is_json(&path) { path } else { path.join("tsconfig.json") }).collect()
    }

    /// The folders of `outFiles` and `main`, where .gitignore ignores them.
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
            if inside.is_some_and(|rel| !git.decide_tracking(rel, true).tracked) {
                self.add_folder(&folder, origin);
            }
        }
    }

    /// The caches that .gitignore ignores.
    fn find_server_caches(&mut self) {
        let workspace = self.evidence.workspace;
        let git = IgnoreRules::load_gitignore(workspace);
        for name in SERVER_CACHES {
            if !git.decide_tracking(Path::new(name), !name.contains(".d.")).tracked
                && let Ok(below) = workspace.join(name).strip_prefix(self.evidence.root)
                && let Some(below) = below.to_str()
            {
                let pattern = format!("/{}", escape_characters(below, "*?[]\\ "));
                self.add_pattern(pattern, Origin::new(workspace, &workspace.join(".gitignore"), None));
            }
        }
    }

    /// The rules of the ignore file of an extension below the watched folder.
    fn add_nested_ignores(&mut self, extension: &Path) {
        let folder = normalize_path(&self.evidence.workspace.join(extension));
        let Ok(below) = folder.strip_prefix(self.evidence.root) else { return };
        let Some(below) = below.to_str().filter(|below| !below.is_empty()) else { return };
        for rule in IgnoreRules::read_nested(&folder, &escape_characters(below, "*?[]\\ ")) {
            self.add_pattern(rule.pattern, Origin::new(self.evidence.workspace, &rule.file, rule.line));
        }
    }

    fn add_folder(&mut self, folder: &Path, origin: Origin) {
        let Ok(rel) = folder.strip_prefix(self.evidence.root) else { return };
        if let Some(rel) = rel.to_str().filter(|rel| !rel.is_empty()) {
            self.add_pattern(format!("/{}/", escape_characters(rel, "*?[]\\ ")), origin);
        }
    }

    fn add_pattern(&mut self, pattern: String, origin: Origin) {
        if !self.found.iter().any(|known| known.pattern == pattern) {
            self.found.push(BuildOutput { pattern, origin });
        }
    }
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

/// The folder of a glob: its components before the first wildcard.
fn fixed_folder(glob: &str) -> PathBuf {
    let is_fixed = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let path = Path::new(glob);
    let folder: PathBuf = path.components().take_while(is_fixed).collect();
    // A glob without wildcards is the path of a file.
    if folder == path { folder.parent().unwrap_or(Path::new("")).to_owned() } else { folder }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the rules of a workspace with `files`, these `outFiles`, and a build if `builds`.
    fn check(files: &[(&str, &str)], out_files: &[&str], builds: bool, expect: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path();
        std::fs::create_dir(workspace.join("ext")).unwrap();
        for (name, text) in files {
            std::fs::write(workspace.join(name), text).unwrap();
        }
        let out_files: Vec<(String, usize)> =
            out_files.iter().map(|text| (text.replace("<ws>", workspace.to_str().unwrap()), 4)).collect();
        let package = PackageJson::read(workspace).unwrap();
        let launch = workspace.join(".vscode/launch.json");
        let package = package.as_ref();
        let evidence = OutputEvidence {
            workspace,
            root: workspace,
            out_files: &out_files,
            launch: &launch,
            package,
            profile: None,
            extensions: &[Path::new("ext")],
            serves: true,
            builds,
        };
        let rules: Vec<String> =
            find_build_outputs(&evidence).iter().map(|rule| format!("{} {}", rule.pattern, rule.origin)).collect();
        assert_eq!(rules, expect, "{files:?} {out_files:?}");
    }

    #[test]
    fn only_folders_with_evidence_of_a_build_are_ignored() {
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
    fn outputs_of_referenced_typescript_projects_are_ignored() {
        let root = |references: &str| format!("{{\"files\": [],\n\"references\": [{references}]}}");
        let client = "{\"compilerOptions\": {\n\"outDir\": \"out\",\n\"composite\": true}, \"references\": [{\"path\": \"..\"}]}";
        let check = |references: &str, name: &str, expect: &[&str]| {
            check(&[("tsconfig.json", &root(references)), (name, client)], &[], false, expect);
        };
        let expect = |file: &str| [format!("/ext/out/ {file}:2"), format!("*.tsbuildinfo {file}:3")];
        let [folder, info] = expect("ext/tsconfig.json");
        check("{\"path\": \"./ext\"}, {\"path\": \"none\"}", "ext/tsconfig.json", &[&folder, &info]);
        let [folder, info] = expect("ext/tsconfig.lib.json");
        check("{\"path\": \"ext/tsconfig.lib.json\"}", "ext/tsconfig.lib.json", &[&folder, &info]);
        check("{\"path\": \"../ext\"}", "ext/tsconfig.json", &[]);
    }

    #[test]
    fn caches_of_a_dev_server_count_where_git_ignores_them_and_rules_of_an_extension_below_its_folder() {
        check(&[(".gitignore", "/.next/\n")], &[], false, &["/.next .gitignore"]);
        let nested = [(".devtoolsignore", "out\n"), ("ext/.devtoolsignore", "# ours\nlogs/\n/a.txt\n!keep\n")];
        let expect = [
            "/ext/**/logs/ ext/.devtoolsignore:2",
            "/ext/a.txt ext/.devtoolsignore:3",
            "!/ext/**/keep ext/.devtoolsignore:4",
        ];
        check(&nested, &[], false, &expect);
    }

    #[test]
    fn a_profile_in_the_watched_folder_is_ignored_and_one_elsewhere_yields_no_rule() {
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
                extensions: &[],
                serves: false,
                builds: false,
            };
            let rules: Vec<String> =
                find_build_outputs(&evidence).iter().map(|it| format!("{} {}", it.pattern, it.origin)).collect();
            assert_eq!(rules, expect, "{profile}");
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
