//! The attributes of the types `node`, `chrome`, `msedge` and `extensionHost`, in tether's own adapter and in js-debug.
//!
//! Source: <https://github.com/microsoft/vscode-js-debug>; what only its `src/ui` reads is not in its server.

use super::{Row, honoured, no_effect, noted, passed};

const STOPS_ALONE: &str = "the other sessions go on; the programs of a compound are one session, which a stop ends";
const MAPS: &str = "the source maps of the workspace are read as they are; `--adapter js-debug` honours it";
const VALUES: &str = "values are shown as the engine describes them; `--adapter js-debug` honours it";
const RESTART: &str = "a program that exits is not launched again by itself; one that a watcher such as nodemon starts again is debugged. `--adapter js-debug` honours it";
const PATHS: &str = "paths are those of this machine; `--adapter js-debug` honours it";
const IN_JS_DEBUG: &str = "this adapter does not have it; `--adapter js-debug` honours it";
const OWN_RUNTIME: &str = "the runtime is `runtimeExecutable`, or the `node` of PATH";
const ONE_MACHINE: &str = "the editor and the browser are on one machine";

/// tether's own adapter, for programs and pages.
pub(super) const NODE_ADAPTER: &[Row] = &[
    honoured("cwd outFiles skipFiles"),
    noted("resolveSourceMapLocations sourceMapPathOverrides", MAPS),
    noted("sourceMaps", "the source maps of the workspace are always read").unless(&["true"]),
    noted("sourceMapRenames", "variables have the names of the script that runs; `--adapter js-debug` honours it")
        .unless(&["false"]),
    noted("pauseForSourceMap", "a script with a source map always waits for its breakpoints").unless(&["true"]),
    noted("smartStep", "a step also ends in code without a source; `--adapter js-debug` honours it").unless(&["false"]),
    noted("showAsyncStacks", "stacks always have their asynchronous callers").unless(&["true"]),
    noted("customDescriptionGenerator customPropertiesGenerator", VALUES),
    noted("outputCapture", "a launched program is heard at its pipes, and what is attached to at its console")
        .launch()
        .unless(&["\"std\""]),
    noted("outputCapture", "a launched program is heard at its pipes, and what is attached to at its console")
        .attach()
        .unless(&["\"console\""]),
    noted("enableContentValidation enableDWARF", IN_JS_DEBUG).unless(&["false"]),
    noted("timeout timeouts", "tether has time limits of its own"),
    noted("trace", "this adapter writes no log").unless(&["false"]),
    noted("cascadeTerminateToConfigurations", STOPS_ALONE).unless(&["[]"]),
    honoured("restart").attach(),
    noted("restart", RESTART).launch().unless(&["false"]),
];

/// tether's own adapter: Node programs and extension hosts.
pub(super) const NODE_ADAPTER_PROGRAMS: &[Row] = &[
    honoured("args attachSimplePort env program runtimeArgs runtimeExecutable stopOnEntry autoAttachChildProcesses")
        .launch(),
    honoured("address host port processId websocketAddress").attach(),
    no_effect("env", "the program runs already").attach(),
    no_effect("nodeVersionHint", "it tells js-debug how to start Node"),
    noted("autoAttachChildProcesses", "children of what is attached to are not debugged").attach().unless(&["false"]),
    noted("attachExistingChildren", "children of what is attached to are not debugged").unless(&["false"]),
    noted("continueOnAttach", "a program that waits for its debugger runs at once").unless(&["true"]),
    noted("experimentalNetworking", IN_JS_DEBUG).unless(&["\"auto\"", "\"off\""]),
    noted("remoteHostHeader runtimeSourcemapPausePatterns", IN_JS_DEBUG),
    noted("console", "the program runs without a terminal, and its output is read; `--adapter js-debug` honours it")
        .unless(&["\"internalConsole\""]),
    noted("killBehavior", "a program that is stopped gets SIGTERM, and SIGKILL later; `--adapter js-debug` honours it"),
    honoured("localRoot remoteRoot"),
    noted("profileStartup", "no profile is taken").unless(&["false"]),
    noted("runtimeVersion", OWN_RUNTIME).unless(&["\"default\""]),
];

/// tether's own adapter: pages of a browser that runs.
pub(super) const NODE_ADAPTER_PAGES: &[Row] = &[
    honoured("address host port url urlFilter webRoot"),
    no_effect("browserAttachLocation", ONE_MACHINE),
    noted("disableNetworkCache", "the cache of the page is left as it is; `--adapter js-debug` honours it")
        .unless(&["false"]),
    noted("inspectUri perScriptSourcemaps vueComponentPaths", IN_JS_DEBUG),
    noted("pathMapping", PATHS),
    noted("server", "no server is started: a task in `preLaunchTask` can be one"),
    noted("targetSelection", "the first page that matches is meant: `url` or `urlFilter` names another")
        .unless(&["\"automatic\""]),
];

/// js-debug, for programs and pages.
pub(super) const JS_DEBUG: &[Row] = &[
    passed(
        "cwd customDescriptionGenerator customPropertiesGenerator enableContentValidation enableDWARF outFiles \
         outputCapture pauseForSourceMap resolveSourceMapLocations restart showAsyncStacks skipFiles smartStep \
         sourceMapPathOverrides sourceMapRenames sourceMaps timeout timeouts trace",
    ),
    passed("env killBehavior runtimeArgs runtimeExecutable").launch(),
    noted("cascadeTerminateToConfigurations", STOPS_ALONE).unless(&["[]"]),
    noted("profileStartup", "nothing here shows the profile").unless(&["false"]),
];

/// js-debug: Node programs and extension hosts.
pub(super) const JS_DEBUG_PROGRAMS: &[Row] = &[
    passed(
        "attachExistingChildren autoAttachChildProcesses localRoot nodeVersionHint remoteRoot runtimeSourcemapPausePatterns",
    ),
    passed("args attachSimplePort console experimentalNetworking program stopOnEntry").launch(),
    passed("address continueOnAttach port remoteHostHeader websocketAddress").attach(),
    no_effect("env", "the program runs already").attach(),
    noted("processId", "js-debug attaches by `port`; `--adapter node` attaches to a process").attach(),
    noted("runtimeVersion", OWN_RUNTIME).unless(&["\"default\""]),
];

/// js-debug: pages.
pub(super) const JS_DEBUG_PAGES: &[Row] = &[
    passed(
        "address disableNetworkCache inspectUri pathMapping perScriptSourcemaps port url urlFilter vueComponentPaths webRoot",
    ),
    passed("cleanUp file includeDefaultArgs includeLaunchArgs userDataDir").launch(),
    passed("targetSelection").attach(),
    no_effect("browserAttachLocation browserLaunchLocation", ONE_MACHINE),
    noted("server", "no server is started: a task in `preLaunchTask` can be one"),
];
