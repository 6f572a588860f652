//! The attributes of the types `lldb-dap`, `lldb`, `gdb` and `cppdbg`, in the adapters for C, C++ and Rust.

use super::{Row, honoured, no_effect, noted, passed, refused};

const OWN_ADAPTER: &str = "tether starts the adapter that `tether adapters` shows";
const OF_CPPTOOLS: &str = "only VS Code's own debugger for C++ has it";

/// lldb-dap with a configuration of its own type.
/// Source: <https://github.com/llvm/llvm-project/tree/main/lldb/tools/lldb-dap>
pub(super) const LLDB_DAP: &[Row] = &[
    passed(
        "program stopOnEntry sourcePath sourceMap debuggerRoot targetTriple platformName initCommands preRunCommands \
         postRunCommands stopCommands exitCommands terminateCommands timeout enableAutoVariableSummaries \
         displayExtendedBacktrace enableSyntheticChildDebugging commandEscapePrefix customFrameFormat customThreadFormat",
    ),
    passed("args cwd env disableASLR disableSTDIO shellExpandArguments detachOnError launchCommands runInTerminal console stdio")
        .launch(),
    passed("pid waitFor attachCommands targetId coreFile gdb-remote-port gdb-remote-hostname").attach(),
    noted(
        "debugAdapterHostname debugAdapterPort debugAdapterExecutable debugAdapterArgs debugAdapterEnv",
        OWN_ADAPTER,
    ),
];

/// CodeLLDB with a configuration of its own type.
/// Source: <https://github.com/vadimcn/codelldb/blob/master/MANUAL.md>
pub(super) const CODELLDB: &[Row] = &[
    passed(
        "program stopOnEntry sourceMap expressions initCommands preRunCommands postRunCommands gracefulShutdown \
         preTerminateCommands exitCommands sourceLanguages reverseDebugging relativePathBase breakpointMode \
         targetCreateCommands processCreateCommands",
    ),
    passed("args cwd env noDebug stdio terminal console").launch(),
    passed("pid waitFor").attach(),
    refused("cargo", "tether does not run cargo: build it in `preLaunchTask`, and name the executable in `program`"),
];

/// gdb with a configuration of its own type.
/// Source: <https://sourceware.org/gdb/current/onlinedocs/gdb.html/Debugger-Adapter-Protocol.html>
pub(super) const GDB: &[Row] = &[
    passed("program adaSourceCharset"),
    honoured("env environment").launch(),
    passed("args cwd stopOnEntry stopAtBeginningOfMainSubprogram").launch(),
    passed("pid target coreFile").attach(),
    honoured("processId").attach(),
];

/// `cppdbg` in the adapters with LLDB.
pub(super) const CPPDBG_IN_LLDB: &[Row] = &[
    noted("MIMode", "LLDB debugs it; `--adapter gdb` chooses gdb").unless(&["\"lldb\""]),
    passed("sourceMap initCommands preRunCommands postRunCommands exitCommands"),
];

/// `cppdbg` in gdb.
pub(super) const CPPDBG_IN_GDB: &[Row] =
    &[noted("MIMode", "gdb debugs it; `--adapter lldb-dap` or `--adapter codelldb` chooses LLDB").unless(&["\"gdb\""])];

/// `cppdbg` in each of them.
/// Source: <https://code.visualstudio.com/docs/cpp/launch-json-reference>
pub(super) const CPPDBG: &[Row] = &[
    passed("program"),
    passed("args cwd").launch(),
    honoured("env environment stopAtEntry stopOnEntry").launch(),
    honoured("processId pid").attach(),
    honoured("miDebuggerServerAddress"),
    honoured("coreDumpPath"),
    refused("pipeTransport", "the program would run on this machine, and not where the pipe leads"),
    no_effect("targetArchitecture", "the debugger reads it from the program"),
    no_effect("avoidWindowsConsoleRedirection", "it is for another system"),
    no_effect("ignoreRunWithoutDebuggingWarnings", "it is of a dialog of VS Code"),
    noted("miDebuggerPath miDebuggerArgs", OWN_ADAPTER).unless(&["\"\""]),
    noted("externalConsole", "the program runs without a terminal, and its output is read").unless(&["false"]),
    noted(
        "setupCommands postRemoteConnectCommands customLaunchSetupCommands",
        "they are commands of gdb's machine interface, which is not used",
    )
    .unless(&["[]"]),
    noted("launchCompleteCommand", "the program always runs").unless(&["\"exec-run\""]),
    noted("sourceFileMap", "sources are looked for at the paths of the debug information").unless(&["{}"]),
    noted("useExtendedRemote stopAtConnect hardwareBreakpoints filterStdout filterStderr", OF_CPPTOOLS)
        .unless(&["false"]),
    noted(
        "debugServerPath debugServerArgs serverStarted serverLaunchTimeout",
        "no server is started: a task in `preLaunchTask` can be one",
    ),
    noted("deploySteps", "nothing is copied or run before the launch but `preLaunchTask`").unless(&["[]"]),
    noted(
        "additionalSOLibSearchPath debuginfod logging showDisplayString svdPath symbolLoadInfo unknownBreakpointHandling \
         variables visualizerFile",
        OF_CPPTOOLS,
    ),
];
