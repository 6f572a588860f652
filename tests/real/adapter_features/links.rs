//! Breakpoints that are set by a path over a link: of a folder in the workspace, and of a package elsewhere. Whether they are bound,
//! which path the adapter names, and that the user's own is shown.

use std::os::unix::fs::symlink;
use std::path::Path;

use devtether::debug::{Resume, inspect};
use devtether::vocabulary::StopKind;

use crate::adapter_features::project::{Language, Project, ProjectFile};
use crate::adapter_features::sessions::{FeatureSession, FeatureSessions, LONG};

/// A program below `real`, which is linked as `linked`, and a file of a package that lies elsewhere.
struct Linked {
    app: ProjectFile,
    package: ProjectFile,
    /// Where the package is linked, in the workspace.
    link: &'static str,
}

const PYTHON: Linked = Linked {
    app: (
        "real/app.py",
        r#"
import os, sys
# As an editable install has it.
sys.path.insert(0, os.path.realpath("libs/shop"))
import price

def main():
    value = price.total(3)  # CALL
    print("up", value, flush=True)

main()
"#,
    ),
    package: (
        "price.py",
        r#"
def total(order):
    result = order * 2  # STOP
    return result
"#,
    ),
    link: "libs/shop",
};

const JAVASCRIPT: Linked = Linked {
    app: (
        "real/app.js",
        r#"
const price = require("shop/price");

function main() {
  const value = price.total(3); // CALL
  console.log("up", value);
}

main();
"#,
    ),
    package: (
        "price.js",
        r#"
exports.total = function total(order) {
  const result = order * 2; // STOP
  return result;
};
"#,
    ),
    link: "node_modules/shop",
};

const RUBY: Linked = Linked {
    app: (
        "real/app.rb",
        r#"
require File.join(Dir.pwd, "libs/shop/price")

def main
  value = total(3) # CALL
  puts "up #{value}"
end

main
"#,
    ),
    package: (
        "price.rb",
        r#"
def total(order)
  result = order * 2 # STOP
  result
end
"#,
    ),
    link: "libs/shop",
};

const GO: Linked = Linked {
    app: (
        "real/app.go",
        r#"
package main

import (
	"fmt"

	"example.com/shop"
)

func main() {
	value := shop.Total(3) // CALL
	fmt.Println("up", value)
}
"#,
    ),
    package: (
        "price.go",
        r#"
package shop

func Total(order int) int {
	result := order * 2 // STOP
	return result
}
"#,
    ),
    link: "libs/shop",
};

const CPP: Linked = Linked {
    app: (
        "real/app.cpp",
        r#"
#include <cstdio>

int total(int order);

int main() {
  int value = total(3); // CALL
  printf("up %d\n", value);
}
"#,
    ),
    package: (
        "price.cpp",
        r#"
int total(int order) {
  int result = order * 2; // STOP
  return result;
}
"#,
    ),
    link: "libs/shop",
};

const JAVA: Linked = Linked {
    app: (
        "real/App.java",
        r#"
public class App {
  public static void main(String[] arguments) {
    int value = shop.Price.total(3); // CALL
    System.out.println("up " + value);
  }
}
"#,
    ),
    package: (
        "Price.java",
        r#"
package shop;

public class Price {
  public static int total(int order) {
    int result = order * 2; // STOP
    return result;
  }
}
"#,
    ),
    link: "real/shop",
};

const GO_MODULES: [ProjectFile; 2] = [
    (
        "real/go.mod",
        "module example.com/app\n\ngo 1.19\n\nrequire example.com/shop v0.0.0\n\nreplace example.com/shop => ../libs/shop\n",
    ),
    ("go.mod", "module example.com/shop\n\ngo 1.19\n"),
];

/// What became of the two breakpoints.
pub async fn stop_over_links(adapter: &'static str) -> String {
    let language = Language::of(adapter);
    let Linked { app, package, link } = match language {
        Language::Python => PYTHON,
        Language::JavaScript => JAVASCRIPT,
        Language::Ruby => RUBY,
        Language::Go => GO,
        Language::Cpp => CPP,
        Language::Java => JAVA,
    };
    let project = Project::with_files(adapter, &[app, GO_MODULES[0]]);
    let elsewhere = Project::with_files(adapter, &[package, GO_MODULES[1]]);
    symlink("real", project.path("linked")).unwrap();
    std::fs::create_dir_all(project.path(link).parent().unwrap()).unwrap();
    symlink(&elsewhere.workspace, project.path(link)).unwrap();
    let own = app.0.replacen("real/", "linked/", 1);
    let linked = format!("{link}/{}", package.0);
    let sources = [own.strip_prefix("linked/").unwrap(), &format!("../{linked}")].map(str::to_owned);
    let program = project.program("linked", &sources.each_ref().map(String::as_str));
    let stage = FeatureSessions::of(&project.workspace);
    let call = project.set(&stage, &own, "CALL").await;
    let stop = project.set(&stage, &linked, "STOP").await;
    let session = stage.start(project.request(&program)).await;
    let folder = one_of_both(&project, &stage, &session, (call, &own)).await;
    let has_stopped = session.managed.session.snapshot().stops().is_empty();
    if !has_stopped && session.managed.session.hit_count(call) > 0 {
        session.resume(Resume::Continue).await;
    }
    let package = one_of_both(&project, &stage, &session, (stop, &linked)).await;
    if !session.managed.session.snapshot().stops().is_empty() {
        below_link(&project, &stage, &session, &linked).await;
    }
    session.managed.stop(Some(false)).await;
    stage.end().await;
    if folder == package { folder } else { format!("folder: {folder}; package: {package}") }
}

/// Whether the program stops at this breakpoint, and by which path its adapter names the file.
async fn one_of_both(
    project: &Project,
    stage: &FeatureSessions,
    session: &FeatureSession,
    (id, file): (u32, &str),
) -> String {
    let waited = session.managed.session.wait_for_stop(LONG).await;
    let hits = session.managed.session.hit_count(id);
    let Some((_, stop)) = waited.stop.filter(|_| hits > 0) else {
        let unreached = inspect::unreached_breakpoints(&session.managed);
        let reason = unreached.into_iter().find(|it| it.spec_id == id).map(|it| it.reason);
        return format!("– ({})", reason.unwrap_or_else(|| format!("{hits} hits")));
    };
    assert_eq!(stop.kind, StopKind::BreakpointHit);
    let stack = inspect::read_stack(&session.managed.session, None, None, None).await.unwrap();
    let path = stack.frames[0].path().unwrap();
    let names = stage.sessions.file_names_of(&session.managed);
    let (named, real) = (project.path(file), project.path(file).canonicalize().unwrap());
    assert_eq!(names.show(path).name, file, "the user's name of {path}");
    assert_eq!(Path::new(&names.absolute_name(path)), named);
    match Path::new(path) {
        path if path == named => "yes, by the path of the link".to_owned(),
        path if path == real => "yes, by the real path".to_owned(),
        other => panic!("{other:?}"),
    }
}

/// A stop in a file in which there is no breakpoint.
async fn below_link(project: &Project, stage: &FeatureSessions, session: &FeatureSession, file: &str) {
    stage.sessions.remove_breakpoints(|_| true).await.unwrap();
    session.then(Resume::Over).await;
    let names = stage.sessions.file_names_of(&session.managed);
    names.prepare().await;
    let stack = inspect::read_stack(&session.managed.session, None, None, None).await.unwrap();
    let path = stack.frames[0].path().unwrap();
    let shown = names.show(path);
    assert_eq!(shown.name, file, "{path}");
    assert_eq!(shown.real_path.as_deref(), project.path(file).canonicalize().unwrap().to_str());
}
