//! Which frames of a stack are the user's, and the others as one line: of Node, VS Code, a language's runtime.
//!
//! Decided by name and path alone. Does not depend on the adapter.

use super::frame::StackFrameInfo;
use super::scoped_id::ScopedId;

/// A frame of a summary.
#[derive(Clone, Debug, PartialEq)]
pub enum SummaryFrame {
    /// One of the user's code, or of a library of it.
    Frame(Box<StackFrameInfo>),
    /// Several of a runtime.
    Folded {
        /// The innermost.
        first: ScopedId,
        /// How many.
        count: usize,
        /// Whose: "Node", "VS Code", "the Rust runtime".
        owners: Vec<&'static str>,
    },
}

impl SummaryFrame {
    /// How many frames it stands for.
    pub fn count(&self) -> usize {
        match self {
            SummaryFrame::Frame(_) => 1,
            SummaryFrame::Folded { count, .. } => *count,
        }
    }
}

/// Whose a frame is: the paths that begin with, contain or are one of these, and the names that begin with one.
struct Runtime {
    owner: &'static str,
    path_starts: &'static [&'static str],
    path_parts: &'static [&'static str],
    name_starts: &'static [&'static str],
    name_parts: &'static [&'static str],
}

const RUNTIMES: &[Runtime] = &[
    Runtime {
        owner: "Node",
        path_starts: &["<node_internals>", "node:"],
        path_parts: &["/<node_internals>/"],
        name_starts: &[],
        name_parts: &[],
    },
    Runtime {
        owner: "VS Code",
        path_starts: &["vscode-file://"],
        path_parts: &["/out/vs/", "/out/bootstrap-fork.js", "/out/server-main.js"],
        name_starts: &[],
        name_parts: &[],
    },
    Runtime {
        owner: "the Rust runtime",
        path_starts: &["/rustc/"],
        path_parts: &["/lib/rustlib/src/rust/library/"],
        name_starts: &[
            "rust_begin_unwind",
            "rust_panic",
            "__rust_",
            "__rustc",
            "std::panicking::",
            "core::panicking::",
            "std::rt::",
            "std::sys::",
            "core::ops::function::FnOnce::call_once",
        ],
        name_parts: &[],
    },
    Runtime {
        owner: "the C runtime",
        path_starts: &[],
        path_parts: &["/sysdeps/"],
        name_starts: &["__libc_", "_start", "__clone", "clone3", "start_thread", "__cxa_", "__gxx_", "_Unwind_"],
        name_parts: &[],
    },
    Runtime {
        owner: "Python",
        path_starts: &["<frozen "],
        path_parts: &["/debugpy/", "/runpy.py"],
        name_starts: &[],
        name_parts: &[],
    },
    Runtime {
        owner: "the JDK",
        path_starts: &[],
        path_parts: &[],
        name_starts: &["java.", "javax.", "jdk.internal.", "sun.", "com.sun."],
        // The classes that it makes of lambdas.
        name_parts: &["$$Lambda"],
    },
    Runtime {
        owner: "the test runner",
        path_starts: &[],
        path_parts: &["/gems/minitest-", "/gems/test-unit-", "/gems/rspec-"],
        name_starts: &[],
        name_parts: &[],
    },
    Runtime { owner: "Go", path_starts: &[], path_parts: &[], name_starts: &["runtime."], name_parts: &[] },
];

/// The runtime that a frame belongs to; `None`: it is the user's, or a library's.
pub fn frame_owner(frame: &StackFrameInfo) -> Option<&'static str> {
    let path = frame.path().or_else(|| frame.source.as_ref()?.name.as_deref()).unwrap_or_default();
    let is_of = |runtime: &&Runtime| {
        runtime.path_starts.iter().any(|start| path.starts_with(start))
            || runtime.path_parts.iter().any(|part| path.contains(part))
            || runtime.name_starts.iter().any(|start| frame.name.starts_with(start))
            || runtime.name_parts.iter().any(|part| frame.name.contains(part))
    };
    RUNTIMES.iter().find(is_of).map(|runtime| runtime.owner)
}

/// The first frame that is not of a runtime.
pub fn first_own_frame(frames: &[StackFrameInfo]) -> Option<usize> {
    frames.iter().position(|frame| frame_owner(frame).is_none() && frame.line > 0)
}

/// At most `most` frames and folds. The frame with the index `shown` is never folded.
pub fn fold_frames(frames: Vec<StackFrameInfo>, shown: usize, most: usize) -> Vec<SummaryFrame> {
    let mut folded: Vec<SummaryFrame> = Vec::new();
    for (index, frame) in frames.into_iter().enumerate() {
        let is_full = folded.len() == most;
        match (frame_owner(&frame).filter(|_| index != shown), folded.last_mut()) {
            (Some(owner), Some(SummaryFrame::Folded { count, owners, .. })) => {
                *count = count.saturating_add(1);
                if !owners.contains(&owner) {
                    owners.push(owner);
                }
            }
            _ if is_full => break,
            (Some(owner), _) => {
                folded.push(SummaryFrame::Folded { first: frame.id, count: 1, owners: vec![owner] });
            }
            (None, _) => folded.push(SummaryFrame::Frame(Box::new(frame))),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use tether_dap::types::DapSource;

    fn frame(id: i64, name: &str, path: &str) -> StackFrameInfo {
        let source = DapSource { path: Some(path.to_owned()).filter(|path| !path.is_empty()), ..DapSource::default() };
        StackFrameInfo {
            id: ScopedId { target: 0, id },
            name: name.to_owned(),
            source: Some(source),
            line: 1,
            column: 1,
            subtle: false,
        }
    }

    #[test]
    fn frames_of_runtimes_are_told_from_those_of_the_user_and_of_libraries() {
        let check = |name: &str, path: &str, expected: Option<&str>| {
            assert_eq!(frame_owner(&frame(1, name, path)), expected, "{name} {path}");
        };
        check("total", "/w/src/app.ts", None);
        check("next", "/w/node_modules/express/lib/router.js", None);
        check("runtime.goexit", "/usr/lib/go-1.19/src/runtime/asm_amd64.s", Some("Go"));
        check("main", "/w/src/runtime/main.rs", None);
        check("processTicksAndRejections", "<node_internals>/internal/process/task_queues", Some("Node"));
        check(
            "executeContributedCommand",
            "/opt/code-server/lib/vscode/out/vs/workbench/api/node/extensionHostProcess.js",
            Some("VS Code"),
        );
        check("std::panicking::begin_panic_handler", "", Some("the Rust runtime"));
        check("unwrap", "/rustc/59807616e1/library/core/src/option.rs", Some("the Rust runtime"));
        check("app::main", "/w/src/main.rs", None);
        check("__libc_start_main_impl", "", Some("the C runtime"));
        check(
            "Minitest::Assertions#assert()",
            "/usr/lib/ruby/gems/3.1.0/gems/minitest-5.15.0/lib/minitest/assertions.rb",
            Some("the test runner"),
        );
        check("OrdersTest#test_adds()", "/w/test/orders_test.rb", None);
        check("_run_code", "<frozen runpy>", Some("Python"));
        check("java.lang.Integer.parseInt", "", Some("the JDK"));
        check("org.example.App.main", "/w/src/App.java", None);
        check("run", "/usr/lib/python3/dist-packages/flask/app.py", None);
    }

    #[test]
    fn neighbours_of_runtimes_become_one_and_the_shown_frame_stays() {
        let node = "<node_internals>/a";
        let frames = vec![
            frame(1, "throw", node),
            frame(2, "total", "/w/app.js"),
            frame(3, "load", node),
            frame(4, "run", "/x/out/vs/a.js"),
            frame(5, "main", "/w/main.js"),
            frame(6, "start", node),
        ];
        assert_eq!(first_own_frame(&frames), Some(1));
        let fold = |first, count, owners: &[&'static str]| SummaryFrame::Folded {
            first: ScopedId { target: 0, id: first },
            count,
            owners: owners.to_vec(),
        };
        let own = |index: usize| SummaryFrame::Frame(Box::new(frames[index].clone()));
        let expected = [fold(1, 1, &["Node"]), own(1), fold(3, 2, &["Node", "VS Code"]), own(4), fold(6, 1, &["Node"])];
        assert_eq!(fold_frames(frames.clone(), 1, 10), expected);
        assert_eq!(fold_frames(frames.clone(), 0, 10)[0], own(0), "what is shown is not folded");
        assert_eq!(fold_frames(frames.clone(), 1, 3), expected[..3], "no more than asked for");
        assert_eq!(first_own_frame(&frames[2..4]), None);
    }
}
