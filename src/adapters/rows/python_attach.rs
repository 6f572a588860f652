//! Why a running Python process cannot be attached to by its id, from what the system says about it: debugpy would wait a minute
//! for a process that never answers.
//!
//! debugpy lets gdb call into the process; from 3.14 on, with an adapter of the same version, it leaves a script there that the
//! process runs when it comes to its next Python code.

use std::fs::File;
use std::io;
use std::path::Path;

use tether_base::error::{Error, ErrorKind, Result};
use tether_process::{program_path, read_arguments, read_environment_value, read_name, read_tracer};

use crate::adapters::FoundAdapter;

/// The first version with a way into a running process of its own.
const REMOTE_DEBUG: (u32, u32) = (3, 14);
/// Turns that off, in the environment of the process.
const DISABLE_VARIABLE: &str = "PYTHON_DISABLE_REMOTE_DEBUG";
/// The same as an option of the interpreter, behind `-X`.
const DISABLE_OPTION: &str = "disable_remote_debug";

/// What is known of a process before it is attached to.
#[derive(Clone, Debug, Default)]
struct AttachFacts {
    pid: u32,
    /// The process that traces it, and its name.
    tracer: Option<(u32, String)>,
    /// It may not be traced: the value of `ptrace_scope`, 0 where there is none.
    refusal: Option<u32>,
    has_gdb: bool,
    /// Of the process.
    version: Option<(u32, u32)>,
    /// Of the adapter.
    adapter_version: Option<(u32, u32)>,
    /// It was started with its own way in turned off.
    disables_remote_debug: bool,
}

/// Errors: the process is traced already, may not be traced, has turned off its own way in, or gdb is missing.
pub fn require_attachable(pid: u32, found: &FoundAdapter) -> Result<()> {
    // One that is gone, or of another user, is reported where it is connected to.
    let Some(program) = program_path(pid) else { return Ok(()) };
    let scope = || std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?.trim().parse().ok();
    // Opening it needs the same right as tracing, and has no effect on the process.
    let is_refused =
        File::open(format!("/proc/{pid}/mem")).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    let search_path = found.search_path.clone().map(Into::into).or_else(|| std::env::var_os("PATH"));
    let option = |arguments: Vec<std::ffi::OsString>| {
        arguments.iter().any(|word| word.to_string_lossy().trim_start_matches("-X").starts_with(DISABLE_OPTION))
    };
    let interpreter = found.interpreter.as_ref().and_then(|path| path.canonicalize().ok());
    let facts = AttachFacts {
        pid,
        tracer: read_tracer(pid).map(|tracer| (tracer, read_name(tracer).unwrap_or_default())),
        refusal: is_refused.then(|| scope().unwrap_or(0)),
        has_gdb: tether_tools::find_on_path(&["gdb"], search_path.as_deref()).is_some(),
        version: python_version(&program),
        adapter_version: interpreter.and_then(|path| python_version(&path)),
        disables_remote_debug: read_environment_value(pid, DISABLE_VARIABLE)
            .is_ok_and(|it| it.is_some_and(|it| !it.is_empty()))
            || read_arguments(pid).is_ok_and(option),
    };
    facts.find_obstacle().map_or(Ok(()), Err)
}

impl AttachFacts {
    fn find_obstacle(&self) -> Option<Error> {
        let error = |kind| Error::new(kind, format!("cannot attach to process {} with debugpy", self.pid));
        if let Some((tracer, name)) = &self.tracer {
            let because = format!("process {tracer} ({name}) traces it already, and a process has one tracer");
            return Some(
                error(ErrorKind::Other).because(because).hint(format!("end process {tracer}, or let it detach")),
            );
        }
        if self.uses_remote_debug() {
            let because = format!("it was started with {DISABLE_VARIABLE} or `-X {DISABLE_OPTION}`");
            let hint = "start it without that, or launch it: `tether debug launch`";
            return self.disables_remote_debug.then(|| error(ErrorKind::Other).because(because).hint(hint));
        }
        match self.refusal {
            Some(0) => {
                let because =
                    "the system does not let your user trace it: it is of another user, or has changed its rights";
                return Some(
                    error(ErrorKind::Other)
                        .because(because)
                        .hint("attach as that user, or launch it: `tether debug launch`"),
                );
            }
            Some(scope) => {
                let because = format!(
                    "the system lets a process trace only its own children (kernel.yama.ptrace_scope is {scope})"
                );
                let hint = match scope {
                    3 => "a restart of the machine is needed to change 3: launch it instead, `tether debug launch`",
                    _ => {
                        "`sudo sysctl kernel.yama.ptrace_scope=0` allows it until the next start; or `tether debug launch`"
                    }
                };
                return Some(error(ErrorKind::Other).because(because).hint(hint));
            }
            None => {}
        }
        let missing = || error(ErrorKind::MissingTool).because("debugpy attaches with gdb, which is not installed");
        (!self.has_gdb).then(|| missing().hint("`tether adapters install gdb` installs it"))
    }

    /// Whether debugpy goes in without gdb.
    fn uses_remote_debug(&self) -> bool {
        self.version.is_some() && self.version >= Some(REMOTE_DEBUG) && self.version == self.adapter_version
    }
}

/// By the name of the interpreter: `python3.14`, also of a build for free threads, `python3.14t`.
fn python_version(program: &Path) -> Option<(u32, u32)> {
    let name = program.file_name()?.to_string_lossy().into_owned();
    let (major, minor) = name.strip_prefix("python")?.split_once('.')?;
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_obstacle_is_named_with_what_removes_it() {
        let base = AttachFacts { pid: 7, has_gdb: true, version: Some((3, 13)), ..AttachFacts::default() };
        let own =
            AttachFacts { version: Some((3, 14)), adapter_version: Some((3, 14)), has_gdb: false, ..base.clone() };
        let check = |facts: AttachFacts, expect: &[&str]| {
            let text = facts.find_obstacle().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(text.is_empty(), expect.is_empty(), "{text}");
            expect.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in {text}"));
        };
        check(base.clone(), &[]);
        check(own.clone(), &[]);
        let traced = |facts: &AttachFacts| AttachFacts { tracer: Some((9, "strace".to_owned())), ..facts.clone() };
        check(traced(&base), &["cannot attach to process 7", "process 9 (strace) traces it already", "end process 9"]);
        check(traced(&own), &["process 9 (strace)"]);
        check(
            AttachFacts { refusal: Some(1), ..base.clone() },
            &["ptrace_scope is 1", "sysctl kernel.yama.ptrace_scope=0"],
        );
        check(AttachFacts { refusal: Some(3), ..base.clone() }, &["ptrace_scope is 3", "a restart of the machine"]);
        check(AttachFacts { refusal: Some(0), ..base.clone() }, &["of another user"]);
        check(
            AttachFacts { has_gdb: false, ..base.clone() },
            &["gdb, which is not installed", "`tether adapters install gdb`"],
        );
        check(
            AttachFacts { disables_remote_debug: true, ..own.clone() },
            &["PYTHON_DISABLE_REMOTE_DEBUG", "-X disable_remote_debug"],
        );
        // gdb does not need it.
        check(AttachFacts { disables_remote_debug: true, ..base }, &[]);
        check(AttachFacts { adapter_version: Some((3, 11)), ..own }, &["gdb, which is not installed"]);
    }

    #[test]
    fn the_version_is_in_the_name_of_the_interpreter() {
        let check =
            |path: &str, expect: Option<(u32, u32)>| assert_eq!(python_version(Path::new(path)), expect, "{path}");
        check("/usr/bin/python3.14", Some((3, 14)));
        check("/usr/bin/python3.14t", Some((3, 14)));
        check("/usr/bin/python3", None);
        check("/usr/bin/node", None);
    }
}
