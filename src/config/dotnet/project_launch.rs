//! From a project file to the assembly that is to be debugged, its arguments and its environment.
//!
//! Builds nothing. Does not depend on any debugger.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tether_base::error::{Error, ErrorKind, Result};

use super::launch_settings::find_profile;
use super::project_file::ProjectFile;

const DEFAULT_CONFIGURATION: &str = "Debug";
/// The extensions of project files.
const PROJECT_EXTENSIONS: [&str; 3] = ["csproj", "fsproj", "vbproj"];

/// What a caller has chosen of a project.
#[derive(Clone, Debug, Default)]
pub struct DotnetChoice {
    /// `net8.0`; without one the only framework, or the only one that is built.
    pub target_framework: Option<String>,
    /// `Debug` if there is none.
    pub configuration: Option<String>,
    /// The name of a profile of launchSettings.json; without one the first that runs the project.
    pub launch_profile: Option<String>,
}

/// How a project is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotnetLaunch {
    /// The assembly, which exists.
    pub program: PathBuf,
    pub args: Vec<String>,
    /// Absolute.
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
}

/// Whether a path is that of a project file.
pub fn is_dotnet_project(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    extension.is_some_and(|extension| PROJECT_EXTENSIONS.contains(&extension.as_str()))
}

/// Finds out how a project is run. Errors: it is no project, is not built, or the choice is not in it.
pub fn resolve_dotnet_project(path: &Path, choice: &DotnetChoice) -> Result<DotnetLaunch> {
    let given = |choice: &Option<String>| choice.clone().filter(|text| !text.is_empty());
    let configuration = given(&choice.configuration).unwrap_or_else(|| DEFAULT_CONFIGURATION.to_owned());
    let folder = path.parent().unwrap_or(Path::new("/"));
    let profile = find_profile(folder, choice.launch_profile.as_deref())?.unwrap_or_default();
    let project = ProjectFile::read(path, &configuration, None)?;
    if project.properties.get("OutputType").is_some_and(|output| output.eq_ignore_ascii_case("Library")) {
        let error = Error::usage(format!("cannot debug {}", path.display()));
        return Err(error.because("it builds a library (`OutputType`)").hint("name a project that builds a program"));
    }
    let program = find_assembly(&project, &configuration, given(&choice.target_framework))?;
    let cwd = profile.working_directory.map(|text| project.properties.expand(&text).unwrap_or(text));
    Ok(DotnetLaunch {
        program,
        args: profile.args,
        cwd: folder.join(cwd.unwrap_or_default().replace('\\', "/")),
        env: profile.env,
    })
}

fn find_assembly(project: &ProjectFile, configuration: &str, chosen: Option<String>) -> Result<PathBuf> {
    let path = &project.path;
    let error = || Error::usage(format!("cannot debug {}", path.display()));
    let known = project.target_frameworks();
    let frameworks = match chosen {
        Some(chosen) if known.is_empty() || known.contains(&chosen) => vec![chosen],
        Some(chosen) => {
            let cause = format!("it is not built for {chosen:?}");
            return Err(error().because(cause).hint(format!("its target frameworks are: {}", known.join(", "))));
        }
        None if known.is_empty() => {
            let error = error().because("it has no `TargetFramework` that can be read without running MSBuild");
            return Err(error.hint("name its assembly: `tether debug launch bin/Debug/net8.0/NAME.dll`"));
        }
        None => known,
    };
    let assemblies = frameworks
        .iter()
        .map(|framework| Ok((framework, ProjectFile::read(path, configuration, Some(framework))?.assembly(framework))));
    let assemblies = assemblies.collect::<Result<Vec<_>>>()?;
    let built: Vec<_> = assemblies.iter().filter(|(_, assembly)| assembly.is_file()).collect();
    match built.as_slice() {
        [(_, assembly)] => Ok(assembly.clone()),
        [] => {
            let missing: Vec<String> = assemblies.iter().map(|(_, assembly)| assembly.display().to_string()).collect();
            let error = Error::new(ErrorKind::NotFound, format!("cannot debug {}", path.display()));
            let error = error.because(format!("it is not built: there is no {}", missing.join(", and no ")));
            Err(error.hint(format!("`dotnet build {:?} -c {configuration}` builds it", path.display().to_string())))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|(framework, _)| framework.as_str()).collect();
            let error = error().because(format!("it is built for several frameworks: {}", names.join(", ")));
            Err(error.hint(format!("name one as `targetFramework`, or debug an assembly: {}", several[0].1.display())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(built: &[&str], choice: DotnetChoice) -> Result<DotnetLaunch, String> {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let frameworks = "<TargetFrameworks>net8.0;net9.0</TargetFrameworks>";
        write("App.csproj", &format!("<Project><PropertyGroup>{frameworks}</PropertyGroup></Project>"));
        write(
            "Properties/launchSettings.json",
            r#"{"profiles": {"p": {"commandName": "Project", "commandLineArgs": "a", "workingDirectory": "$(ProjectDir)/data"}}}"#,
        );
        built.iter().for_each(|path| write(path, ""));
        let launch =
            resolve_dotnet_project(&home.path().join("App.csproj"), &choice).map_err(|error| error.to_string())?;
        let relative = |path: &Path| path.strip_prefix(home.path()).unwrap().to_owned();
        Ok(DotnetLaunch { program: relative(&launch.program), cwd: relative(&launch.cwd), ..launch })
    }

    #[test]
    fn the_only_built_framework_is_debugged_with_its_profile() {
        let launch = resolve(&["bin/Debug/net9.0/App.dll"], DotnetChoice::default()).unwrap();
        assert_eq!((launch.program.to_str(), launch.args), (Some("bin/Debug/net9.0/App.dll"), vec!["a".to_owned()]));
        assert_eq!((launch.cwd.to_str(), launch.env["DOTNET_LAUNCH_PROFILE"].as_str()), (Some("data"), "p"));
        let release = DotnetChoice { configuration: Some("Release".into()), ..DotnetChoice::default() };
        let launch = resolve(&["bin/Debug/net9.0/App.dll", "bin/Release/net8.0/App.dll"], release).unwrap();
        assert_eq!(launch.program.to_str(), Some("bin/Release/net8.0/App.dll"));
    }

    #[test]
    fn a_choice_that_is_missing_or_not_built_is_an_error_with_the_next_step() {
        let check = |built: &[&str], framework: Option<&str>, words: &[&str]| {
            let choice = DotnetChoice { target_framework: framework.map(str::to_owned), ..DotnetChoice::default() };
            let error = resolve(built, choice).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        };
        check(&[], None, &["not built", "bin/Debug/net8.0/App.dll", "`dotnet build"]);
        check(&[], Some("net7.0"), &["\"net7.0\"", "are: net8.0, net9.0"]);
        check(&[], Some("net8.0"), &["bin/Debug/net8.0/App.dll"]);
        let both = ["bin/Debug/net8.0/App.dll", "bin/Debug/net9.0/App.dll"];
        check(&both, None, &["several frameworks: net8.0, net9.0", "`targetFramework`"]);
        assert!(
            resolve(&both, DotnetChoice { target_framework: Some("net8.0".into()), ..DotnetChoice::default() }).is_ok()
        );
    }
}
