//! The attributes of the types `debugpy`, `java`, `go`, `rdbg` and `coreclr`, in the adapters that debug them.

use super::{Row, honoured, no_effect, noted, passed};

const NO_TERMINAL: &str = "the program runs without a terminal, and its output is read";
const OWN_ADAPTER: &str = "tether starts the adapter that `tether adapters` shows";
const OWN_LIMITS: &str = "tether has time limits of its own";

/// Source: <https://code.visualstudio.com/docs/python/debugging>
pub(super) const DEBUGPY: &[Row] = &[
    honoured(
        "args cwd env program module code gevent python pythonPath pythonArgs pyramid stopOnEntry subProcess sudo",
    )
    .launch(),
    honoured("connect host port").attach(),
    passed("autoReload breakOnSystemExit clientOS django jinja justMyCode pathMappings showReturnValue"),
    passed("flask rules steppingResumesAllThreads variablePresentation"),
    passed("guiEventLoop").launch(),
    passed("listen processId redirectOutput subProcess").attach(),
    no_effect("consoleName terminalQuoteCharacter", "there is no terminal"),
    no_effect("purpose", "it tells VS Code when to take the configuration by itself"),
    noted("autoStartBrowser", "no browser is opened").unless(&["false"]),
    noted("console", NO_TERMINAL).unless(&["\"internalConsole\""]),
    noted("debugAdapterPath", OWN_ADAPTER),
    noted("logToFile", "debugpy writes no log").unless(&["false"]),
    noted("redirectOutput", "the output of a launched program is always read").launch().unless(&["true"]),
];

/// tether's own adapter.
/// Source: <https://code.visualstudio.com/docs/java/java-debugging>
pub(super) const JAVA: &[Row] = &[
    honoured("cwd sourcePaths stopOnEntry"),
    honoured("args classPaths env jar javaExec mainClass modulePaths program vmArgs").launch(),
    honoured("host hostName port processId").attach(),
    noted("console", NO_TERMINAL).unless(&["\"internalConsole\""]),
    noted("encoding", "the JVM has its own encoding: `vmArgs` may have `-Dfile.encoding=…`"),
    noted("projectName", "tether knows no project of the Java extension: `classPaths` names the classes")
        .launch()
        .unless(&["\"\""]),
    noted("projectName", "tether knows no project of the Java extension: `sourcePaths` names the sources")
        .attach()
        .unless(&["\"\""]),
    noted("shortenCommandLine", "the class path is always in the command line").unless(&["\"none\"", "\"auto\""]),
    noted("stepFilters", "a step passes over the classes of the JDK, and over no others").unless(&["{}"]),
    noted("timeout", OWN_LIMITS),
];

/// Source: <https://github.com/go-delve/delve/blob/master/service/dap/types.go>
pub(super) const DELVE: &[Row] = &[
    honoured("cwd env mode program").launch(),
    honoured("cwd host port").attach(),
    passed(
        "backend followExec followExecRegex goroutineFilters hideSystemGoroutines maxArrayValues maxStringLen \
         showGlobalVariables showPprofLabels showRawStrings showRegisters stackTraceDepth stopOnEntry substitutePath",
    ),
    passed("args buildFlags coreFilePath dlvCwd noDebug output outputMode stderrTo stdinFrom stdoutTo traceDirPath")
        .launch(),
    passed("mode processId waitFor").attach(),
    no_effect("apiVersion", "it is of VS Code's older adapter for Go"),
    noted("debugAdapter", "only Delve's own adapter is used").unless(&["\"dlv-dap\""]),
    noted("host port", "tether starts Delve itself").launch(),
    noted("dlvLoadConfig", "only VS Code's older adapter reads it: `maxStringLen` and `maxArrayValues` are passed on"),
    noted("dlvFlags logDest logOutput showLog trace", "Delve is started without flags, and without its log")
        .unless(&["false", "[]"]),
    noted("console", NO_TERMINAL).launch().unless(&["\"internalConsole\""]),
    noted("console", "the program has its own terminal").attach(),
    noted("asRoot", "Delve runs as you").unless(&["false"]),
    noted("remotePath", "`substitutePath` maps the paths").unless(&["\"\""]),
];

/// Source: <https://github.com/ruby/vscode-rdbg>
pub(super) const RDBG: &[Row] = &[
    honoured("args command cwd env program script stopOnEntry useBundler").launch(),
    honoured("debugPort").attach(),
    passed("localfs localfsMap nonstop").attach(),
    noted("askParameters", "nobody is asked: the words after `--` are the arguments").unless(&["false"]),
    noted("rdbgPath", OWN_ADAPTER),
    noted("useTerminal", NO_TERMINAL).unless(&["false"]),
];

/// Source: <https://github.com/Samsung/netcoredbg>
pub(super) const NETCOREDBG: &[Row] = &[
    honoured("args cwd env program stopAtEntry stopOnEntry").launch(),
    passed("justMyCode enableStepFiltering"),
    passed("processId").attach(),
    noted("console", NO_TERMINAL).unless(&["\"internalConsole\""]),
];
