//! Launch: from parameters to session requests, their breakpoints, and the report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tether_base::error::{Error, Result};

use super::breakpoints::request_breakpoint;
use super::launch_config::{self, ConfigOverrides, ConfiguredLaunch};
use super::named_test_request::{TestRequest, prepare_named_test};
use super::started_programs::{StartedPrograms, StartedSession};
use super::swap_or_relaunch::{SwapAttempt, swap_code};
use crate::api::debug::DebugLaunchParams;
use crate::api::debug::results::LaunchReport;
use crate::api::debug::values::Seconds;
use crate::config::{
    DotnetChoice, EditorInputs, TestRunner, is_dotnet_project, means_extension_tests, resolve_dotnet_project,
};
use crate::debug::program::{DebugTarget, DebugTargetKind};
use crate::debug::{LaunchBreakpoints, SessionEntry, SessionRegistry, SessionRequest, display_path};
use crate::session_host::operations::convert;
use crate::session_host::operations::stop_report::report_start;
use crate::session_host::protocol::ReportParams;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::handlers::extension_tests::debug_launch::{ExtensionTestLaunch, WantedTests, plan_test_launch};
use crate::supervisor::hosted_sessions::{EmptyHost, HostedSession, ListedSession, SessionStart};
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::supervisor::window_follow;
use crate::window::Caller;

/// Where a session is started.
pub(in crate::supervisor) enum SessionPlace {
    /// In this process: of an editor that speaks to it.
    Here,
    /// In a new host.
    New,
    /// In the host to which its editor is connected.
    In(Arc<EmptyHost>),
}

impl SupervisorContext {
    /// Starts a session of one program.
    pub(in crate::supervisor) async fn start_session(
        &self,
        start: SessionStart,
        place: SessionPlace,
    ) -> Result<ListedSession> {
        if !matches!(place, SessionPlace::Here) {
            return Ok(ListedSession::Hosted(self.start_hosted(start, place).await?));
        }
        let managed = self.sessions.start_session(start.request).await?;
        if let Some(runner) = start.test_runner {
            self.here.remember_test_runner(&managed.id, runner);
        }
        Ok(ListedSession::Here(managed))
    }

    pub(super) async fn start_hosted(&self, start: SessionStart, place: SessionPlace) -> Result<Arc<HostedSession>> {
        match place {
            SessionPlace::In(host) => self.hosted.start_in(&host, start).await,
            SessionPlace::New | SessionPlace::Here => self.hosted.start_session(start).await,
        }
    }
}

impl OperationHandler for DebugLaunchParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<LaunchReport> {
        let (wait, budget) = (self.wait, self.budget);
        let refusal = match swap_code(context, &self).await? {
            SwapAttempt::Swapped(started) => {
                return launch_report(context, *started, (wait, budget), false, &[]).await;
            }
            SwapAttempt::LaunchAnew(refusal) => refusal,
        };
        let caller = LaunchCaller { progress: call, environment: call.environment };
        let (params, mut started, breakpoints) = launch_sessions(context, self, caller, SessionPlace::New).await?;
        started.notes.extend(refusal);
        launch_report(context, started, (params.wait, params.budget), false, &breakpoints).await
    }
}

/// Who launches.
pub(super) struct LaunchCaller<'a> {
    /// Is told how it goes on.
    pub progress: &'a dyn Caller,
    /// Where its environment differs from ours.
    pub environment: &'a BTreeMap<String, String>,
}

impl LaunchCaller<'_> {
    /// One whose environment is not known.
    pub fn without_environment(progress: &dyn Caller) -> LaunchCaller<'_> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        LaunchCaller { progress, environment: &NONE }
    }
}

/// That the program runs with an environment that is not the supervisor's.
fn environment_note(variables: &BTreeMap<String, String>) -> Option<String> {
    const MAX_NAMES: usize = 5;
    let mut names: Vec<&str> = variables.keys().take(MAX_NAMES).map(String::as_str).collect();
    let more = variables.len().saturating_sub(MAX_NAMES);
    let more = (more > 0).then(|| format!("{more} more"));
    names.extend(more.as_deref());
    (!names.is_empty())
        .then(|| format!("it runs with your environment, which differs from the supervisor's: {}", names.join(", ")))
}

/// Sets the breakpoints of a launch, and starts its sessions. Returns the effective parameters, and the breakpoints' ids.
pub(super) async fn launch_sessions(
    context: &SupervisorContext,
    params: DebugLaunchParams,
    LaunchCaller { progress: caller, environment }: LaunchCaller<'_>,
    place: SessionPlace,
) -> Result<(DebugLaunchParams, StartedSession, Vec<u32>)> {
    let sessions = &context.sessions;
    let (params, mut plan) = plan_launch(context, params, caller).await?;
    for request in plan.requests_mut() {
        request.stops_at_uncaught = params.stop_on_uncaught.unwrap_or(request.stops_at_uncaught);
        request.debug_target.stops_at_test_failures =
            request.is_test_run && sessions.stops_at_uncaught(request.stops_at_uncaught);
        request.debug_target.caller_env.clone_from(environment);
    }
    let mut breakpoints = LaunchBreakpoints::begin(sessions);
    let started = async {
        let requested = params.breakpoints.iter().flatten().map(|it| request_breakpoint(&it.0));
        breakpoints.set(requested.collect::<Result<_>>()?).await?;
        plan.start_sessions(context, caller, place).await
    };
    let mut started = match started.await {
        Ok(started) => started,
        Err(error) => {
            breakpoints.undo().await;
            return Err(error);
        }
    };
    if params.config.is_some() || params.test.is_some() || params.programs.is_some() {
        let ids = context.list_sessions().iter().map(|it| it.id().to_owned()).collect();
        context.launch_memory.remember(&ids, started.first.id(), params.clone());
    }
    started.notes.extend(environment_note(environment));
    Ok((params, started, breakpoints.keep()))
}

/// What to start.
pub(super) enum RequestedLaunch {
    One(Box<SessionRequest>),
    /// As one session.
    Several(Vec<SessionRequest>),
    Test(Box<TestRequest>),
    Configured(Box<ConfiguredLaunch>),
    ExtensionTests(Box<ExtensionTestLaunch>),
}

impl RequestedLaunch {
    /// Of its programs.
    fn requests_mut(&mut self) -> impl Iterator<Item = &mut SessionRequest> {
        let requests = match self {
            RequestedLaunch::One(request) => std::slice::from_mut(&mut **request),
            RequestedLaunch::Test(test) => std::slice::from_mut(&mut test.request),
            RequestedLaunch::Several(requests) => requests.as_mut_slice(),
            RequestedLaunch::Configured(configured) => configured.requests_mut(),
            RequestedLaunch::ExtensionTests(tests) => std::slice::from_mut(&mut tests.request),
        };
        requests.iter_mut()
    }

    /// Starts it.
    async fn start_sessions(
        self,
        context: &SupervisorContext,
        caller: &dyn Caller,
        place: SessionPlace,
    ) -> Result<StartedSession> {
        let single = |first| StartedSession { first, notes: Vec::new() };
        Ok(match self {
            RequestedLaunch::One(request) => {
                let generation = context.window.watch().borrow().generation;
                let first = context.start_session(single_start(*request, None), place).await?;
                if first.request().follows_window() {
                    context.followers.record_attached(first.id(), generation);
                }
                single(first)
            }
            RequestedLaunch::Several(requests) => {
                let mut programs = StartedPrograms::of(context, place, requests.len());
                for request in requests {
                    programs.start(request).await?;
                }
                programs.finish(Vec::new()).await?
            }
            RequestedLaunch::Test(test) => {
                let TestRequest { request, runner, notes } = *test;
                let first = context.start_session(single_start(request, Some(runner)), place).await?;
                StartedSession { first, notes }
            }
            RequestedLaunch::Configured(configured) => configured.start_programs(context, caller, place).await?,
            RequestedLaunch::ExtensionTests(tests) => Box::pin(tests.start(context, caller, place)).await?,
        })
    }
}

/// A session of one program.
pub(in crate::supervisor) fn single_start(request: SessionRequest, test_runner: Option<TestRunner>) -> SessionStart {
    SessionStart { request, test_runner, awaits_programs: false }
}

/// Finds out what to launch, and stops the session that is to be restarted; starts nothing. Returns the effective
/// parameters too: those of a restart are the parameters of the first launch.
async fn plan_launch(
    supervisor: &SupervisorContext,
    it: DebugLaunchParams,
    caller: &dyn Caller,
) -> Result<(DebugLaunchParams, RequestedLaunch)> {
    let sessions = &supervisor.sessions;
    if it.programs.is_some() {
        return plan_programs(sessions, it);
    }
    let plan = match (&it.program, &it.config, &it.test, &it.restart) {
        (Some(program), None, None, None) => {
            RequestedLaunch::One(Box::new(program_request(sessions, &it, program, &DotnetChoice::default())?))
        }
        (None, config, test, None) if means_tests_of_extension(sessions.workspace(), &it) => {
            let wanted = WantedTests { config: config.as_deref(), ..WantedTests::named(test.as_deref()) };
            // Boxed, as the others below: in debug builds, one large future would overflow the stack of a worker thread.
            let planned = Box::pin(plan_test_launch(supervisor, &it, wanted, caller)).await?;
            RequestedLaunch::ExtensionTests(Box::new(planned))
        }
        (program, Some(name), None, None) => {
            let file = program.as_ref().map(|program| existing_path(sessions.workspace(), program)).transpose()?;
            let overrides = ConfigOverrides {
                given: EditorInputs::new(file, None),
                args: it.args.clone(),
                cwd: it.cwd.clone(),
                env: it.env.clone(),
                stop_on_entry: it.stop_on_entry,
                adapter: it.adapter.clone(),
                paths: None,
            };
            RequestedLaunch::Configured(Box::new(launch_config::prepare_config(sessions, name, &overrides)?))
        }
        (_, None, Some(name), None) => Box::pin(prepare_named_test(supervisor, &it, name, caller)).await?,
        (None, None, None, Some(id)) => return plan_restart(supervisor, &it, id, caller).await,
        _ => {
            let error = Error::usage("nothing to debug was named");
            let hint = "name one of: `program`, `programs`, `config`, `test`, `restart`; `program` may stand beside `config` (as `${file}`) \
                        and `test` (the file in which it stands), and `config` beside `test` of an extension";
            return Err(error.hint(hint));
        }
    };
    Ok((it, plan))
}

/// Whether the tests of an extension are meant, and not a configuration of launch.json, or a test of another runner.
fn means_tests_of_extension(workspace: &Path, it: &DebugLaunchParams) -> bool {
    let is_named = it.config.as_ref().is_some_and(|config| means_extension_tests(workspace, config));
    is_named || it.extension_tests == Some(true)
}

/// Several programs as one session, with the same folder and environment.
fn plan_programs(sessions: &SessionRegistry, it: DebugLaunchParams) -> Result<(DebugLaunchParams, RequestedLaunch)> {
    let programs = it.programs.as_deref().unwrap_or_default();
    let is_alone = it.program.is_none() && it.config.is_none() && it.test.is_none() && it.restart.is_none();
    if !is_alone || it.args.is_some() || programs.is_empty() {
        let error = Error::usage("cannot launch `programs`");
        let error = error.because("they stand alone, and each runs without arguments");
        return Err(error.hint("a compound of launch.json has arguments for each: `config`"));
    }
    let requests = programs.iter().map(|program| program_request(sessions, &it, program, &DotnetChoice::default()));
    let requests: Vec<SessionRequest> = requests.collect::<Result<_>>()?;
    requests.iter().try_for_each(|request| sessions.check_adapter(request).map(drop))?;
    Ok((it, RequestedLaunch::Several(requests)))
}

/// Stops a session, and plans its launch anew, with what the caller gives anew.
async fn plan_restart(
    supervisor: &SupervisorContext,
    it: &DebugLaunchParams,
    id: &str,
    caller: &dyn Caller,
) -> Result<(DebugLaunchParams, RequestedLaunch)> {
    let before = supervisor.find_session(Some(id))?;
    let Some(launch) = supervisor.launch_memory.launch_params(id) else {
        before.request().require_environment(id)?;
        supervisor.followers.remove(id);
        before.stop(&supervisor.sessions, None).await?;
        let mut request =
            window_follow::renew_request(&supervisor.window, SessionRequest::clone(before.request())).await?;
        override_target(&mut request.debug_target, sessions_cwd(supervisor, it), it);
        return Ok((it.clone(), RequestedLaunch::One(Box::new(request))));
    };
    let launch = override_launch(launch, it);
    // Planned before the stop: a session that cannot be restarted keeps running.
    let (launch, plan) = Box::pin(plan_launch(supervisor, launch, caller)).await?;
    // One whose host has ended meanwhile needs no end.
    let _ = before.stop(&supervisor.sessions, None).await;
    Ok((launch, plan))
}

/// The folder that the caller gives, absolute.
fn sessions_cwd(supervisor: &SupervisorContext, it: &DebugLaunchParams) -> Option<PathBuf> {
    it.cwd.as_ref().map(|cwd| supervisor.sessions.workspace().join(cwd))
}

/// A launch as it was, with what a restart gives anew.
fn override_launch(launch: DebugLaunchParams, anew: &DebugLaunchParams) -> DebugLaunchParams {
    let DebugLaunchParams {
        breakpoints,
        wait,
        budget,
        args,
        cwd,
        env,
        stop_on_entry,
        stop_on_uncaught,
        stop_on_failure,
        ..
    } = anew.clone();
    DebugLaunchParams {
        stop_on_uncaught: stop_on_uncaught.or(launch.stop_on_uncaught),
        stop_on_failure: stop_on_failure.or(launch.stop_on_failure),
        breakpoints,
        wait,
        budget,
        args: args.or(launch.args),
        cwd: cwd.or(launch.cwd),
        env: launch.env.into_iter().chain(env).collect(),
        stop_on_entry: stop_on_entry.or(launch.stop_on_entry),
        ..launch
    }
}

fn override_target(target: &mut DebugTarget, cwd: Option<PathBuf>, anew: &DebugLaunchParams) {
    let DebugLaunchParams { args, env, stop_on_entry, .. } = anew.clone();
    target.cwd = cwd.unwrap_or(std::mem::take(&mut target.cwd));
    target.args = args.unwrap_or(std::mem::take(&mut target.args));
    target.env.extend(env);
    target.stop_on_entry = stop_on_entry.unwrap_or(target.stop_on_entry);
}

/// Returns the request that launches `program`, a path relative to the workspace; of a .NET project what it builds. Errors:
/// it is not there.
pub(in crate::supervisor) fn program_request(
    sessions: &SessionRegistry,
    it: &DebugLaunchParams,
    program: &str,
    choice: &DotnetChoice,
) -> Result<SessionRequest> {
    let workspace = sessions.workspace();
    let is_java = match (&it.language, &it.adapter) {
        (None, None) => program.contains('.') && is_class_name(program) && !workspace.join(program).exists(),
        (language, adapter) => [language, adapter].into_iter().flatten().any(|name| name.eq_ignore_ascii_case("java")),
    };
    let (name, kind) = match existing_path(workspace, program) {
        // A class is found on the class path.
        Err(_) if is_java && is_class_name(program) => {
            (program.to_owned(), DebugTargetKind::Module(program.to_owned()))
        }
        path => {
            let path = path?;
            if is_dotnet_project(&path) {
                return dotnet_request(sessions, it, &path, choice);
            }
            (display_path(workspace, &path), DebugTargetKind::Program(path))
        }
    };
    Ok(SessionRequest {
        name,
        debug_target: DebugTarget {
            kind,
            args: it.args.clone().unwrap_or_default(),
            cwd: it.cwd.as_ref().map_or_else(|| workspace.to_owned(), |cwd| workspace.join(cwd)),
            env: it.env.iter().cloned().collect(),
            stop_on_entry: it.stop_on_entry.unwrap_or_default(),
            ..DebugTarget::default()
        },
        adapter: it.adapter.clone(),
        language: if is_java { Some("java".to_owned()) } else { it.language.clone() },
        ..SessionRequest::default()
    })
}

/// The request that launches what a .NET project builds; what the caller names overrides its launch profile.
fn dotnet_request(
    sessions: &SessionRegistry,
    it: &DebugLaunchParams,
    project: &Path,
    choice: &DotnetChoice,
) -> Result<SessionRequest> {
    let workspace = sessions.workspace();
    let launch = resolve_dotnet_project(project, choice)?;
    let profile_env = launch.env.into_iter().map(|(name, value)| (name, Some(value)));
    Ok(SessionRequest {
        name: display_path(workspace, project),
        debug_target: DebugTarget {
            kind: DebugTargetKind::Program(launch.program),
            args: it.args.clone().unwrap_or(launch.args),
            cwd: it.cwd.as_ref().map_or(launch.cwd, |cwd| workspace.join(cwd)),
            env: profile_env.chain(it.env.iter().cloned()).collect(),
            stop_on_entry: it.stop_on_entry.unwrap_or_default(),
            ..DebugTarget::default()
        },
        adapter: it.adapter.clone(),
        language: it.language.clone(),
        ..SessionRequest::default()
    })
}

/// `com.example.Main`, `Main`
fn is_class_name(program: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && word.chars().all(|c| c.is_alphanumeric() || "_$".contains(c))
    };
    let mut words = program.rsplit('.');
    // Packages are lower-case: a file that is missing is seldom taken for a class.
    words.next().is_some_and(|class| is_word(class) && class.starts_with(char::is_uppercase))
        && words.all(|package| is_word(package) && package.starts_with(char::is_lowercase))
}

pub(in crate::supervisor) fn existing_path(workspace: &Path, file: &str) -> Result<PathBuf> {
    let path = workspace.join(file);
    path.canonicalize().map_err(|cause| {
        let error = Error::usage(format!("cannot debug {}", path.display())).because(cause);
        error.hint("name a file that is there, relative to the workspace")
    })
}

/// Waits for a stop if `wait` is given, and reports the first session that was started; which breakpoints of a program that was
/// attached to are not bound, too, with `reports_unbound`.
pub(super) async fn launch_report(
    context: &SupervisorContext,
    StartedSession { first, notes }: StartedSession,
    (wait, budget): (Option<Seconds>, Option<u32>),
    reports_unbound: bool,
    breakpoints: &[u32],
) -> Result<LaunchReport> {
    let params = ReportParams { wait, budget, reports_unbound };
    let mut stopped = match &first {
        ListedSession::Here(managed) => report_start(&context.here, managed, &params).await?,
        ListedSession::Hosted(hosted) => hosted.report(&params).await?,
    };
    stopped.notes.extend(first.note().into_iter().chain(notes));
    let mut set = context.sessions.list_breakpoints().await;
    set.retain(|it| breakpoints.contains(&it.spec.id));
    let breakpoints = set.iter().map(|it| convert::breakpoint_report(it, context.sessions.file_names())).collect();
    let status = first.known_status();
    let (pid, adapter_pid) = (status.pid, status.adapter_pid);
    let executable = || Some(tether_process::program_path(pid?)?.to_string_lossy().into_owned());
    let runtime = status.vm_name.clone().or_else(executable);
    Ok(LaunchReport { stopped, adapter: status.adapter, pid, adapter_pid, runtime, breakpoints })
}
