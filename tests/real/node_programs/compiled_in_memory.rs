//! Breakpoints in what a program compiles in memory, at other lines than its source has.

use serde_json::json;

use super::conversation::NodeConversation;
use crate::support::requirements::installed_nodes;

/// Its lines are three further down in what is compiled of it.
const SOURCE: &str = "\
module.exports = (number) => {
  const doubled = number * 2;
  return doubled; // STOP
};
";
const COMPILER: &str = "\
const fs = require('node:fs');
exports.compile = (file) => {
  const text = fs.readFileSync(file, 'utf8');
  const map = { version: 3, sources: [file], names: [], mappings: ';;;AAAA;AACA;AACA;AACA' };
  const inline = Buffer.from(JSON.stringify(map)).toString('base64');
  return `'use strict';\\n\\n\\n${text}\\n//# sourceMappingURL=data:application/json;base64,${inline}`;
};
";
/// As test runners do.
const BY_FUNCTION: &str = "\
const vm = require('node:vm');
const { compile } = require('./compiler.js');
const file = `${__dirname}/source.ts`;
const module_ = { exports: {} };
vm.compileFunction(compile(file), ['module'], { filename: file })(module_);
const double = module_.exports;
";
/// As compilers do that are loaded before a program.
const BY_EXTENSION: &str = "\
const { compile } = require('./compiler.js');
require.extensions['.ts'] = (module, file) => module._compile(compile(file), file);
const double = require('./source.ts');
";
const AT_ONCE: &str = "console.log(double(21));\n";
const LATER: &str = "setTimeout(() => console.log(double(21)), 200);\n";

#[tokio::test]
async fn breakpoints_in_what_is_compiled_in_memory_stop_at_once_and_later() {
    for node in installed_nodes() {
        for compiler in [BY_FUNCTION, BY_EXTENSION] {
            for call in [AT_ONCE, LATER] {
                let folder = tempfile::tempdir().unwrap();
                let program = format!("{compiler}{call}");
                for (name, text) in [("source.ts", SOURCE), ("compiler.js", COMPILER), ("app.js", &program)] {
                    std::fs::write(folder.path().join(name), text).unwrap();
                }
                let arguments = json!({"runtimeExecutable": node, "program": "app.js", "cwd": folder.path()});
                let mut conversation = NodeConversation::begin("launch", arguments).await;
                conversation.set_breakpoints(&folder.path().join("source.ts"), "STOP").await;
                conversation.configure().await;
                let thread = conversation.event("stopped").await["threadId"].clone();
                let stack = conversation.request("stackTrace", json!({"threadId": thread})).await;
                let top = &stack["stackFrames"][0];
                assert_eq!(top["line"], 3, "{} {program}: {top}", node.display());
                let shown = json!({"expression": "doubled", "frameId": top["id"]});
                assert_eq!(conversation.request("evaluate", shown).await["result"], "42");
                conversation.request("continue", json!({"threadId": thread})).await;
                let (exit_code, output) = conversation.ends().await;
                assert!(exit_code == Some(0) && output.contains("42"), "{output}");
            }
        }
    }
}
