//! Reads an SDK-style project file and the `Directory.Build.props` above it: the properties that say what it builds.
//!
//! Source: <https://learn.microsoft.com/en-us/dotnet/core/project-sdk/msbuild-props>

use std::path::{Path, PathBuf};

use roxmltree::{Document, Node};
use tether_base::error::{Error, ErrorKind, Result};

use super::msbuild_condition::MsbuildProperties;
use crate::config::source_file::{normalize_path, read_own_text};

const BUILD_PROPS: &str = "Directory.Build.props";

/// A project as it is built with one configuration.
#[derive(Debug)]
pub struct ProjectFile {
    pub path: PathBuf,
    pub properties: MsbuildProperties,
    configuration: String,
    /// The folder of the nearest `Directory.Build.props`.
    props_folder: Option<PathBuf>,
}

impl ProjectFile {
    /// Reads a project. Errors: it is missing, or not XML.
    pub fn read(path: &Path, configuration: &str, framework: Option<&str>) -> Result<ProjectFile> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let mut properties = MsbuildProperties::default();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        properties.set("MSBuildProjectName", name);
        properties.set("MSBuildProjectDirectory", folder.to_string_lossy());
        properties.set("ProjectDir", format!("{}/", folder.display()));
        properties.set("Configuration", configuration);
        properties.set("Platform", "AnyCPU");
        if let Some(framework) = framework {
            properties.set("TargetFramework", framework);
        }
        let props_folder = folder.ancestors().find(|above| above.join(BUILD_PROPS).is_file()).map(Path::to_owned);
        if let Some(props) = &props_folder {
            read_properties(&props.join(BUILD_PROPS), &mut properties)?;
        }
        if !read_properties(path, &mut properties)? {
            let error = Error::new(ErrorKind::NotFound, format!("cannot debug {}", path.display()));
            return Err(error.because("there is no such file"));
        }
        // As on the command line of MSBuild, what was chosen overrides what is written.
        properties.set("Configuration", configuration);
        if let Some(framework) = framework {
            properties.set("TargetFramework", framework);
        }
        Ok(ProjectFile { path: path.to_owned(), properties, configuration: configuration.to_owned(), props_folder })
    }

    /// The frameworks that it is built for.
    pub fn target_frameworks(&self) -> Vec<String> {
        let several = self.properties.get("TargetFrameworks").map(|list| list.split(';').collect::<Vec<_>>());
        let all = several.unwrap_or_else(|| self.properties.get("TargetFramework").into_iter().collect());
        all.into_iter().map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
    }

    /// The assembly of a framework, where the SDK puts it.
    pub fn assembly(&self, framework: &str) -> PathBuf {
        let get = |name: &str| self.properties.get(name);
        let name = get("AssemblyName").or(get("MSBuildProjectName")).unwrap_or_default();
        let folder = if self.properties.is_true("UseArtifactsOutput") {
            self.artifacts_folder(framework)
        } else {
            self.output_folder(framework)
        };
        normalize_path(&folder.join(format!("{name}.dll")))
    }

    fn output_folder(&self, framework: &str) -> PathBuf {
        let get = |name: &str| self.properties.get(name).map(|path| path.replace('\\', "/"));
        let project = self.path.parent().unwrap_or(Path::new("/"));
        let base = get("BaseOutputPath").unwrap_or_else(|| "bin/".to_owned());
        let output =
            get("OutputPath").unwrap_or_else(|| format!("{}/{}", base.trim_end_matches('/'), self.configuration));
        let mut folder = project.join(output);
        if !self.properties.is_false("AppendTargetFrameworkToOutputPath") {
            folder.push(framework);
        }
        if let Some(runtime) =
            get("RuntimeIdentifier").filter(|_| !self.properties.is_false("AppendRuntimeIdentifierToOutputPath"))
        {
            folder.push(runtime);
        }
        folder
    }

    /// `artifacts/bin/App/debug`, or `debug_net8.0` when there are several frameworks.
    fn artifacts_folder(&self, framework: &str) -> PathBuf {
        let get = |name: &str| self.properties.get(name);
        let root = self.props_folder.as_deref().or(self.path.parent()).unwrap_or(Path::new("/"));
        let artifacts = root.join(get("ArtifactsPath").unwrap_or("artifacts").replace('\\', "/"));
        let mut pivot = self.configuration.to_lowercase();
        if get("TargetFrameworks").is_some() {
            pivot = format!("{pivot}_{framework}");
        }
        if let Some(runtime) = get("RuntimeIdentifier") {
            pivot = format!("{pivot}_{runtime}");
        }
        artifacts.join("bin").join(get("MSBuildProjectName").unwrap_or_default()).join(pivot)
    }
}

/// Adds the properties of a file to those that are known. Returns whether there is such a file.
fn read_properties(path: &Path, properties: &mut MsbuildProperties) -> Result<bool> {
    let Some(text) = read_own_text(path)? else { return Ok(false) };
    let unreadable = |cause: roxmltree::Error| Error::usage(format!("cannot read {}", path.display())).because(cause);
    let document = Document::parse(&text).map_err(unreadable)?;
    let this_folder = path.parent().unwrap_or(Path::new("/"));
    properties.set("MSBuildThisFileDirectory", format!("{}/", this_folder.display()));
    let is_group = |node: &Node<'_, '_>| node.is_element() && node.tag_name().name() == "PropertyGroup";
    for group in document.root_element().children().filter(is_group) {
        if !applies(&group, properties) {
            continue;
        }
        for property in group.children().filter(Node::is_element) {
            let value = property.text().unwrap_or_default().trim();
            // A value that calls a function of MSBuild is not known: the default is assumed.
            if applies(&property, properties)
                && let Some(value) = properties.expand(value)
            {
                properties.set(property.tag_name().name(), value);
            }
        }
    }
    Ok(true)
}

fn applies(node: &Node<'_, '_>, properties: &MsbuildProperties) -> bool {
    node.attribute("Condition").is_none_or(|condition| properties.holds(condition))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The assembly of a project with these properties, relative to its folder.
    fn assembly(properties: &str, props: Option<&str>) -> String {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("src/App");
        std::fs::create_dir_all(&folder).unwrap();
        let wrap = |groups: &str| format!("\u{feff}<Project Sdk=\"Microsoft.NET.Sdk\">{groups}</Project>");
        let project = folder.join("App.csproj");
        std::fs::write(&project, wrap(properties)).unwrap();
        if let Some(props) = props {
            std::fs::write(home.path().join(BUILD_PROPS), wrap(props)).unwrap();
        }
        let first = ProjectFile::read(&project, "Debug", None).unwrap();
        let framework = first.target_frameworks().remove(0);
        let assembly = ProjectFile::read(&project, "Debug", Some(&framework)).unwrap().assembly(&framework);
        assembly.strip_prefix(home.path()).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn the_assembly_is_where_the_sdk_puts_it() {
        let check = |properties: &str, expect: &str| assert_eq!(assembly(properties, None), expect, "{properties}");
        let group =
            |more: &str| format!("<PropertyGroup><TargetFramework>net8.0</TargetFramework>{more}</PropertyGroup>");
        check(&group(""), "src/App/bin/Debug/net8.0/App.dll");
        check(&group("<AssemblyName>$(MSBuildProjectName).Web</AssemblyName>"), "src/App/bin/Debug/net8.0/App.Web.dll");
        check(&group("<RuntimeIdentifier>linux-x64</RuntimeIdentifier>"), "src/App/bin/Debug/net8.0/linux-x64/App.dll");
        check(&group("<OutputPath>..\\out\\</OutputPath>"), "src/out/net8.0/App.dll");
        check(&group("<BaseOutputPath>build\\</BaseOutputPath>"), "src/App/build/Debug/net8.0/App.dll");
        let flat = "<AppendTargetFrameworkToOutputPath>false</AppendTargetFrameworkToOutputPath>";
        check(&group(flat), "src/App/bin/Debug/App.dll");
        let conditional = "<PropertyGroup Condition=\"'$(Configuration)'=='Release'\"><AssemblyName>R</AssemblyName></PropertyGroup>\
                           <PropertyGroup Condition=\"'$(TargetFramework)'=='net8.0'\"><AssemblyName>N8</AssemblyName></PropertyGroup>";
        check(&(group("") + conditional), "src/App/bin/Debug/net8.0/N8.dll");
        let function = "<AssemblyName>$([System.String]::Copy(a))</AssemblyName>";
        check(&group(function), "src/App/bin/Debug/net8.0/App.dll");
        let several = "<PropertyGroup><TargetFrameworks>net9.0; net8.0</TargetFrameworks></PropertyGroup>";
        check(several, "src/App/bin/Debug/net9.0/App.dll");
    }

    #[test]
    fn directory_build_props_are_read_first() {
        let props = "<PropertyGroup><TargetFramework>net9.0</TargetFramework><UseArtifactsOutput>true</UseArtifactsOutput></PropertyGroup>";
        assert_eq!(assembly("", Some(props)), "artifacts/bin/App/debug/App.dll");
        let own = "<PropertyGroup><UseArtifactsOutput>false</UseArtifactsOutput></PropertyGroup>";
        assert_eq!(assembly(own, Some(props)), "src/App/bin/Debug/net9.0/App.dll");
    }
}
