//! Reads `Properties/launchSettings.json`: how a profile runs a project, as `dotnet run` reads it.
//!
//! Source: <https://learn.microsoft.com/en-us/aspnet/core/fundamentals/environments#launchsettingsjson>

use std::collections::BTreeMap;
use std::path::Path;

use tether_base::error::{Error, ErrorKind, Result};

use crate::config::jsonc::{JsonDocument, JsonNode};

/// Where the file lies, below a project's folder; the second is of Visual Basic.
const PLACES: [&str; 2] = ["Properties/launchSettings.json", "My Project/launchSettings.json"];
/// The `commandName` of a profile that runs the project itself.
const RUNS_PROJECT: &str = "Project";

/// How a profile runs the project.
#[derive(Debug, Default, PartialEq)]
pub struct LaunchProfile {
    pub name: String,
    pub args: Vec<String>,
    /// As written.
    pub working_directory: Option<String>,
    pub env: BTreeMap<String, String>,
}

/// The profile of this name; without one the first that runs the project, as `dotnet run` uses it. `None`: there is no file,
/// or no such profile in it. Errors: the named one is missing, or runs something else.
pub fn find_profile(project_folder: &Path, name: Option<&str>) -> Result<Option<LaunchProfile>> {
    let name = name.filter(|name| !name.is_empty());
    let path = PLACES.map(|place| project_folder.join(place)).into_iter().find(|path| path.is_file());
    let document = path.as_deref().map(JsonDocument::read).transpose()?.flatten();
    match (document, name) {
        (Some(document), Some(name)) => named_profile(&document, name).map(Some),
        (Some(document), None) => {
            let profiles = profiles_of(&document);
            let first = profiles.iter().find(|(_, profile)| profile.text_of("commandName") == Some(RUNS_PROJECT));
            Ok(first.map(|(name, profile)| read_profile(name, profile)))
        }
        (None, Some(name)) => {
            let path = path.unwrap_or_else(|| project_folder.join(PLACES[0]));
            Err(missing_profile(&path, name).because("there is no such file"))
        }
        (None, None) => Ok(None),
    }
}

fn profiles_of(document: &JsonDocument) -> &[(String, JsonNode)] {
    document.root.get("profiles").map(JsonNode::members).unwrap_or_default()
}

fn missing_profile(path: &Path, name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("cannot find the launch profile {name:?} in {}", path.display()))
}

fn named_profile(document: &JsonDocument, name: &str) -> Result<LaunchProfile> {
    let profiles = profiles_of(document);
    let Some((name, profile)) = profiles.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
        let known: Vec<&str> = profiles.iter().map(|(name, _)| name.as_str()).collect();
        return Err(missing_profile(&document.path, name).hint(format!("there are: {}", known.join(", "))));
    };
    match profile.text_of("commandName") {
        Some(RUNS_PROJECT) => Ok(read_profile(name, profile)),
        command => {
            let command = command.unwrap_or_default();
            let error =
                document.unusable(profile, format!("the profile {name:?} runs {command:?}, and not the project"));
            Err(error.hint("name a profile whose `commandName` is \"Project\", or a configuration of launch.json"))
        }
    }
}

fn read_profile(name: &str, profile: &JsonNode) -> LaunchProfile {
    let mut env = BTreeMap::from([("DOTNET_LAUNCH_PROFILE".to_owned(), name.to_owned())]);
    if let Some(urls) = profile.text_of("applicationUrl").filter(|urls| !urls.is_empty()) {
        env.insert("ASPNETCORE_URLS".to_owned(), urls.to_owned());
    }
    for (name, value) in profile.get("environmentVariables").map(JsonNode::members).unwrap_or_default() {
        if let Some(value) = value.text() {
            env.insert(name.clone(), expand_variables(value));
        }
    }
    LaunchProfile {
        name: name.to_owned(),
        args: split_arguments(profile.text_of("commandLineArgs").unwrap_or_default()),
        working_directory: profile.text_of("workingDirectory").filter(|text| !text.is_empty()).map(expand_variables),
        env,
    }
}

/// Replaces `%NAME%` by variables of our environment; one that is not set stays as it is.
fn expand_variables(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        match after.split_once('%').map(|(name, after)| (std::env::var(name), after)) {
            Some((Ok(value), after)) => {
                out.push_str(&value);
                rest = after;
            }
            _ => {
                out.push('%');
                rest = after;
            }
        }
    }
    out + rest
}

/// Splits a command line as .NET does: only double quotes hold a word together, and `\"` is a quote. (A shell's single
/// quotes and backslashes are plain characters.)
fn split_arguments(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&'"') => word.get_or_insert_default().extend(letters.next()),
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            letter if letter.is_whitespace() && !quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = r#"{
        // comments are allowed
        "profiles": {
            "IIS Express": {"commandName": "IISExpress"},
            "http": {
                "commandName": "Project",
                "commandLineArgs": "--name \"a b\" C:\\x \\\"q\\\" ''",
                "workingDirectory": "data",
                "applicationUrl": "http://localhost:5000",
                "environmentVariables": {"ASPNETCORE_ENVIRONMENT": "Development", "P": "%PATH%/x %NOT_SET_HERE% 100%"},
            },
            "Tool": {"commandName": "Executable", "executablePath": "/bin/sh"},
        },
    }"#;

    fn profile(name: Option<&str>) -> Result<Option<LaunchProfile>, String> {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join("Properties")).unwrap();
        std::fs::write(project.path().join(PLACES[0]), SETTINGS).unwrap();
        find_profile(project.path(), name).map_err(|error| error.to_string())
    }

    #[test]
    fn a_profile_is_read_as_dotnet_run_reads_it() {
        let found = profile(None).unwrap().unwrap();
        assert_eq!(found, profile(Some("HTTP")).unwrap().unwrap());
        assert_eq!(found.args, ["--name", "a b", "C:\\x", "\"q\"", "''"]);
        assert_eq!(found.working_directory.as_deref(), Some("data"));
        let path = std::env::var("PATH").unwrap();
        let expected = [
            ("ASPNETCORE_ENVIRONMENT", "Development".to_owned()),
            ("ASPNETCORE_URLS", "http://localhost:5000".to_owned()),
            ("DOTNET_LAUNCH_PROFILE", "http".to_owned()),
            ("P", format!("{path}/x %NOT_SET_HERE% 100%")),
        ];
        let expected: BTreeMap<String, String> = expected.map(|(name, value)| (name.to_owned(), value)).into();
        assert_eq!(found.env, expected);
    }

    #[test]
    fn a_profile_that_cannot_be_used_is_an_error_with_the_others() {
        let missing = profile(Some("https")).unwrap_err();
        assert!(missing.contains("\"https\"") && missing.contains("there are: IIS Express, http, Tool"), "{missing}");
        let other = profile(Some("Tool")).unwrap_err();
        assert!(other.contains("runs \"Executable\"") && other.contains("launch.json"), "{other}");
        let nowhere = tempfile::tempdir().unwrap();
        assert_eq!(find_profile(nowhere.path(), None).unwrap(), None);
        assert!(find_profile(nowhere.path(), Some("x")).unwrap_err().to_string().contains("no such file"));
    }
}
