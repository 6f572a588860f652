//! The attributes of a configuration that becomes a window.
//!
//! Source: <https://github.com/microsoft/vscode-js-debug/blob/main/OPTIONS.md>

use super::{Row, honoured, no_effect, noted, refused};

const FOR_DEBUGGER: &str = "it is for a debugger: `tether debug launch --config` reads it";
const FOR_NO_DEBUGGER: &str = "sessions of the window take no settings from launch.json";
const STOPS_ALONE: &str = "the window is ended alone";
const OWN_STOP: &str = "a window is ended in tether's own way";

/// Of every type.
pub(super) const EVERY: &[Row] = &[
    honoured("name type request linux preLaunchTask outFiles env envFile"),
    no_effect("osx windows", "it is for another system"),
    no_effect(
        "presentation order internalConsoleOptions suppressMultipleSessionWarning",
        "it is of VS Code's menus and panels",
    ),
    no_effect("debugServer", "no debugger is started"),
    noted("postDebugTask", "nothing is run after a window"),
    noted("serverReadyAction", "nothing is opened when a program prints its address"),
    noted("cascadeTerminateToConfigurations", STOPS_ALONE).unless(&["[]"]),
];

pub(super) const EXTENSION_HOST: &[Row] = &[
    honoured("args"),
    refused("testConfiguration", "it runs tests and ends, so it is not a window"),
    noted("testConfigurationLabel", "it is of `testConfiguration`"),
    noted("runtimeExecutable", "tether looks for VS Code itself").unless(&["\"${execPath}\""]),
    noted("cwd", "VS Code runs in a folder of its own"),
    noted("debugWebWorkerHost", "what runs in a web worker cannot be debugged, and the window runs").unless(&["false"]),
    noted("autoAttachChildProcesses debugWebviews trace", FOR_NO_DEBUGGER).unless(&["false"]),
    noted("sourceMaps pauseForSourceMap showAsyncStacks", FOR_NO_DEBUGGER).unless(&["true"]),
    noted(
        "customDescriptionGenerator customPropertiesGenerator enableContentValidation enableDWARF localRoot nodeVersionHint \
         outputCapture remoteRoot rendererDebugOptions resolveSourceMapLocations runtimeSourcemapPausePatterns skipFiles \
         smartStep sourceMapPathOverrides sourceMapRenames timeout timeouts",
        FOR_NO_DEBUGGER,
    ),
];

const NO_EFFECT_IN_PROGRAMS: Row = no_effect(
    "customDescriptionGenerator customPropertiesGenerator enableContentValidation enableDWARF outputCapture \
     pauseForSourceMap resolveSourceMapLocations showAsyncStacks skipFiles smartStep sourceMapPathOverrides \
     sourceMapRenames sourceMaps timeout timeouts trace",
    FOR_DEBUGGER,
);

pub(super) const BROWSER: &[Row] = &[
    honoured("url file runtimeExecutable runtimeArgs userDataDir cwd"),
    NO_EFFECT_IN_PROGRAMS,
    no_effect("disableNetworkCache pathMapping perScriptSourcemaps urlFilter vueComponentPaths webRoot", FOR_DEBUGGER),
    no_effect("browserLaunchLocation", "the editor and the browser are on one machine"),
    noted("cleanUp", "the whole browser is ended").unless(&["\"wholeBrowser\""]),
    noted("includeDefaultArgs includeLaunchArgs", "the browser has tether's own arguments and `runtimeArgs`")
        .unless(&["true"]),
    noted("inspectUri", "the window is debugged at a port of its own"),
    noted("killBehavior", OWN_STOP),
    noted("port", "the window chooses its port").unless(&["0"]),
    noted("profileStartup", "no profile is taken").unless(&["false"]),
    noted("server", "no server is started: a task in `preLaunchTask` can be one"),
];

pub(super) const NODE: &[Row] = &[
    honoured("program args cwd runtimeExecutable runtimeArgs"),
    NO_EFFECT_IN_PROGRAMS,
    no_effect(
        "autoAttachChildProcesses localRoot nodeVersionHint remoteRoot runtimeSourcemapPausePatterns",
        FOR_DEBUGGER,
    ),
    noted("attachSimplePort", "the window is debugged at a port of its own").unless(&["null"]),
    noted("console", "the program runs without a terminal, and its output is read").unless(&["\"internalConsole\""]),
    noted("experimentalNetworking", "Node is started without it: `runtimeArgs` may have its flag")
        .unless(&["\"auto\"", "\"off\""]),
    noted("killBehavior", OWN_STOP),
    noted("profileStartup", "no profile is taken").unless(&["false"]),
    noted("restart", "a program that exits is not started again by itself").unless(&["false"]),
    noted("runtimeVersion", "the runtime is `runtimeExecutable`, or the `node` of PATH").unless(&["\"default\""]),
    noted("stopOnEntry", "the window runs: `tether debug launch --config` stops at its entry").unless(&["false"]),
];
