//! The programs of the soak: each calls one function again and again, so that its breakpoint is hit for ever.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use tether_base::path_lookup::find_on_path;

/// How a program is launched, and used at a stop.
pub struct SoakProgram {
    pub name: &'static str,
    /// The file that is launched.
    pub program: &'static str,
    /// Its adapter, where it is not the first that fits.
    pub adapter: Option<&'static str>,
    /// A line of the function.
    pub breakpoint: &'static str,
    pub expression: &'static str,
}

const JAVASCRIPT: &str = "function total(n) {
  const result = { n, twice: n * 2 };
  result.sum = result.n + result.twice;
  return result;
}
let n = 1;
setInterval(() => {
  n = total(n).sum % 7;
  console.log(n);
}, 5);
";

const PYTHON: &str = "import time

def total(n):
    result = n * 2
    return result + n

n = 1
while True:
    n = total(n) % 7
    print(n, flush=True)
    time.sleep(0.005)
";

const JAVA: &str = "import java.util.ArrayList;
import java.util.List;

public class App {
    static int total(int n, List<Integer> all) {
        all.add(n);
        return n * 3;
    }

    public static void main(String[] arguments) throws Exception {
        int n = 1;
        while (true) {
            List<Integer> all = new ArrayList<>();
            n = total(n, all) % 7;
            System.out.println(n);
            Thread.sleep(5);
        }
    }
}
";

const RUBY: &str = "def total(n)
  result = n * 2
  result + n
end

n = 1
loop do
  n = total(n) % 7
  puts n
  sleep 0.005
end
";

const C: &str = "#include <stdio.h>
#include <unistd.h>

static int total(int n) {
    int result = n * 2;
    return result + n;
}

int main(void) {
    int n = 1;
    for (;;) {
        n = total(n) % 7;
        printf(\"%d\\n\", n);
        fflush(stdout);
        usleep(5000);
    }
}
";

const SERVER: &str = "const http = require('http');
let count = 0;
http.createServer((request, response) => response.end(String(++count))).listen(0, '127.0.0.1');
setInterval(() => console.log('alive', ++count), 50);
";

const WINDOW: &str = "[window]
kind = \"node\"
program = \"server.js\"
";

/// Writes the programs and the configuration of the window.
pub fn write_workspace(workspace: &Path, data: &Path) -> Result<()> {
    fs::create_dir(workspace).with_context(|| format!("cannot create {}", workspace.display()))?;
    let files = [
        ("app.js", JAVASCRIPT),
        ("other.js", JAVASCRIPT),
        ("app.py", PYTHON),
        ("App.java", JAVA),
        ("app.rb", RUBY),
        ("app.c", C),
        ("server.js", SERVER),
        ("devtools.toml", WINDOW),
    ];
    for (name, text) in files {
        fs::write(workspace.join(name), text)?;
    }
    // An interpreter that has debugpy.
    symlink(data.join("tools/python"), workspace.join(".venv"))?;
    Ok(())
}

/// Those whose tools are there. Compiles what has to be.
pub fn available_programs(workspace: &Path) -> Vec<SoakProgram> {
    let path = env::var_os("PATH");
    let is_there = |name: &str| find_on_path(&[name], path.as_deref()).is_some();
    let row =
        |name, program, breakpoint, expression| SoakProgram { name, program, adapter: None, breakpoint, expression };
    let mut programs = vec![row("Node", "app.js", "app.js:3", "result.twice + 1")];
    let js_debug = row("js-debug", "other.js", "other.js:3", "result.twice + 1");
    programs.push(SoakProgram { adapter: Some("js-debug"), ..js_debug });
    if workspace.join(".venv/bin/python").exists() {
        programs.push(row("Python", "app.py", "app.py:5", "result + 1"));
    }
    if is_there("javac") {
        programs.push(row("Java", "App.java", "App.java:7", "all.get(0) + 1"));
    }
    if is_there("rdbg") || is_there("ruby") {
        programs.push(row("Ruby", "app.rb", "app.rb:3", "result + 1"));
    }
    let compiled = Command::new("cc").args(["-g", "-O0", "-o", "app", "app.c"]).current_dir(workspace).status();
    if compiled.is_ok_and(|status| status.success()) {
        programs.push(row("native", "app", "app.c:6", "result + 1"));
    }
    programs
}
