//! Where a breakpoint stops when its module is loaded anew in the running program, after the file was edited: lines were added above,
//! and other code is on the old line. Nobody sends anything between.

use std::process::Command;

use devtether::debug::{Resume, inspect};

use crate::adapter_features::project::{Language, Project, ProjectFile, run};
use crate::adapter_features::sessions::FeatureSessions;

/// A program, the files that it loads anew, and these as they are then, beside them as `FILE.new`.
struct Reloading {
    app: ProjectFile,
    modules: &'static [(&'static str, ProjectFile, &'static str)],
}

const PYTHON: Reloading = Reloading {
    app: (
        "app.py",
        r#"
import importlib, os
import shop

def main():
    shop.total(1)
    os.replace("shop.py.new", "shop.py")
    importlib.reload(shop)
    shop.other(1)
    shop.total(1)
    print("up", flush=True)  # END

main()
"#,
    ),
    modules: &[(
        "",
        (
            "shop.py",
            r#"
def total(order):
    result = order * 2  # STOP
    return result
"#,
        ),
        r#"
def other(order):
    changed = order + 1
    return changed

def total(order):
    result = order * 2  # STOP
    return result
"#,
    )],
};

const JAVASCRIPT: Reloading = Reloading {
    app: (
        "app.js",
        r#"
const { renameSync } = require("node:fs");

async function main() {
  let shop = require("./shop.js");
  shop.total(1);
  renameSync("shop.js.new", "shop.js");
  delete require.cache[require.resolve("./shop.js")];
  shop = require("./shop.js");
  shop.other(1);
  shop.total(1);
  shop = await import("./shop.mjs");
  shop.total(1);
  renameSync("shop.mjs.new", "shop.mjs");
  shop = await import("./shop.mjs?v=2");
  shop.other(1);
  shop.total(1);
  console.log("up"); // END
}

main();
"#,
    ),
    modules: &[
        (
            "require: ",
            (
                "shop.js",
                r#"
exports.total = function total(order) {
  const result = order * 2; // STOP
  return result;
};
"#,
            ),
            r#"
exports.other = function other(order) {
  const changed = order + 1;
  return changed;
};

exports.total = function total(order) {
  const result = order * 2; // STOP
  return result;
};
"#,
        ),
        (
            "import: ",
            (
                "shop.mjs",
                r#"
export function total(order) {
  const result = order * 2; // STOP
  return result;
}
"#,
            ),
            r#"
export function other(order) {
  const changed = order + 1;
  return changed;
}

export function total(order) {
  const result = order * 2; // STOP
  return result;
}
"#,
        ),
    ],
};

const RUBY: Reloading = Reloading {
    app: (
        "app.rb",
        r#"
def main
  load "./shop.rb"
  total(1)
  File.rename("shop.rb.new", "shop.rb")
  load "./shop.rb"
  other(1)
  total(1)
  puts "up" # END
end

main
"#,
    ),
    modules: &[(
        "",
        (
            "shop.rb",
            r#"
def total(order)
  result = order * 2 # STOP
  result
end
"#,
        ),
        r#"
def other(order)
  changed = order + 1
  changed
end

def total(order)
  result = order * 2 # STOP
  result
end
"#,
    )],
};

const CPP: Reloading = Reloading {
    app: (
        "app.cpp",
        r#"
#include <cstdio>
#include <dlfcn.h>

static void call(void *shop, const char *name) {
  reinterpret_cast<int (*)(int)>(dlsym(shop, name))(1);
}

int main() {
  void *shop = dlopen("./libshop.so", RTLD_NOW);
  call(shop, "total");
  dlclose(shop);
  rename("shop.cpp.new", "shop.cpp");
  rename("libshop.so.new", "libshop.so");
  shop = dlopen("./libshop.so", RTLD_NOW);
  call(shop, "other");
  call(shop, "total");
  puts("up"); // END
}
"#,
    ),
    modules: &[(
        "",
        (
            "shop.cpp",
            r#"
extern "C" int total(int order) {
  int result = order * 2; // STOP
  return result;
}
"#,
        ),
        r#"
extern "C" int other(int order) {
  int changed = order + 1;
  return changed;
}

extern "C" int total(int order) {
  int result = order * 2; // STOP
  return result;
}
"#,
    )],
};

const JAVA: Reloading = Reloading {
    app: (
        "App.java",
        r#"
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import javax.tools.ToolProvider;

public class App {
  static void call(String folder, String... names) throws Exception {
    ToolProvider.getSystemJavaCompiler().run(null, null, null, "-g", "-d", folder, "Shop.java");
    URL[] classes = {Path.of(folder).toUri().toURL()};
    try (URLClassLoader loader = new URLClassLoader(classes, null)) {
      Class<?> shop = loader.loadClass("Shop");
      for (String name : names) {
        shop.getMethod(name, int.class).invoke(null, 1);
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    call("first", "total");
    Files.move(Path.of("Shop.java.new"), Path.of("Shop.java"), StandardCopyOption.REPLACE_EXISTING);
    call("second", "other", "total");
    System.out.println("up"); // END
  }
}
"#,
    ),
    modules: &[(
        "new class loader: ",
        (
            "Shop.java",
            r#"
public class Shop {
  public static int total(int order) {
    int result = order * 2; // STOP
    return result;
  }
}
"#,
        ),
        r#"
public class Shop {
  public static int other(int order) {
    int changed = order + 1; changed += 1;
    return changed;
  }

  public static int total(int order) {
    int result = order * 2; // STOP
    return result;
  }
}
"#,
    )],
};

/// Where the breakpoint stops after the file was loaded anew.
pub async fn stop_after_reload(adapter: &'static str) -> String {
    let language = Language::of(adapter);
    let Reloading { app, modules } = match language {
        Language::Python => PYTHON,
        Language::JavaScript => JAVASCRIPT,
        Language::Ruby => RUBY,
        Language::Cpp => CPP,
        Language::Java => JAVA,
        Language::Go => return "– (a Go program cannot load code anew)".to_owned(),
    };
    let mut files = vec![app];
    files.extend(modules.iter().map(|(_, file, _)| *file));
    let project = Project::with_files(adapter, &files);
    for (_, (name, _), later) in modules {
        std::fs::write(project.path(&format!("{name}.new")), later).unwrap();
    }
    if language == Language::Cpp {
        build_libraries(&project);
    }
    let program = project.program("", &[app.0]);
    let stage = FeatureSessions::of(&project.workspace);
    let mut set = vec![project.set(&stage, app.0, "END").await];
    for (_, (name, _), _) in modules {
        set.push(project.set(&stage, name, "STOP").await);
    }
    let end = project.line(app.0, "END");
    let session = stage.start(project.request(&program)).await;
    let mut stops: Vec<(String, String)> = Vec::new();
    let (_, mut function, mut line) = session.stopped().await;
    loop {
        let stack = inspect::read_stack(&session.managed.session, None, None, Some(1)).await.unwrap();
        let path = stack.frames[0].path().unwrap_or_default().to_owned();
        if path.ends_with(app.0) && line == end {
            break;
        }
        stops.push((path, function));
        (_, function, line) = session.then(Resume::Continue).await;
    }
    session.managed.stop(Some(false)).await;
    stage.end().await;
    let cells = modules.iter().map(|(what, (name, _), _)| {
        let own = stops.iter().filter(|(path, _)| path.split('?').next().is_some_and(|path| path.ends_with(name)));
        let functions: Vec<&str> = own.map(|(_, function)| function.as_str()).collect();
        assert!(functions[0].contains("total"), "{adapter}: {stops:?}");
        let is_in = |function: &str| functions[1..].iter().any(|it| it.contains(function));
        let place = match (is_in("other"), is_in("total")) {
            (false, false) => "nowhere",
            (true, false) => "the old line, other code",
            (false, true) => "its code",
            (true, true) => "its code, and the old line",
        };
        format!("{what}{place}")
    });
    cells.collect::<Vec<_>>().join("; ")
}

/// Both versions of the library, each built from `shop.cpp`.
fn build_libraries(project: &Project) {
    let source = project.path("shop.cpp");
    let first = std::fs::read(&source).unwrap();
    for (text, library) in
        [(std::fs::read(project.path("shop.cpp.new")).unwrap(), "libshop.so.new"), (first, "libshop.so")]
    {
        std::fs::write(&source, text).unwrap();
        let mut build = Command::new("c++");
        build.args(["-g", "-O0", "-shared", "-fPIC", "-o", library]).arg(&source).current_dir(&project.workspace);
        run(&mut build);
    }
}
