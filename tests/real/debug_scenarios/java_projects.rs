//! Java: projects of several modules as Maven and Gradle lay them out; classes of one name from several folders.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::run_command;
use crate::support::scenario_sandbox::ScenarioSandbox;

const APP: &str = "\
package com.example;

import com.example.core.Order;
import com.example.tax.Tax;

public class App {
  public static void main(String[] arguments) throws Exception {
    java.util.Properties settings = new java.util.Properties();
    settings.load(App.class.getResourceAsStream(\"/settings.properties\"));
    System.out.println(Order.total(Tax.of(20)) + settings.getProperty(\"unit\"));
  }
}
";

const ORDER: &str = "\
package com.example.core;

public class Order {
  public static int total(int tax) {
    int total = 20 + tax;
    return total; // TOTAL
  }
}
";

const TAX: &str =
    "package com.example.tax;\n\npublic class Tax { public static int of(int net) { return net / 10; } }\n";

fn javac(stage: &ScenarioSandbox, source: &str, into: &str, class_path: &[&str]) {
    let class_path = class_path.iter().map(|path| stage.sandbox.path(path));
    let class_path = std::env::join_paths(class_path).unwrap();
    let mut command = Command::new("javac");
    command.arg("-g").arg("-d").arg(stage.sandbox.path(into)).arg("-cp").arg(class_path);
    command.arg(stage.sandbox.path(source)).env("LC_ALL", "C.UTF-8");
    run_command(command).ok();
}

/// The archive of `Tax`, in that folder of the user's.
fn archive_tax(stage: &ScenarioSandbox, archive: &Path) {
    stage.sandbox.write("made/Tax.java", TAX);
    javac(stage, "made/Tax.java", "made/classes", &[]);
    std::fs::create_dir_all(archive.parent().unwrap()).unwrap();
    let mut command = Command::new("jar");
    command.arg("--create").arg("--file").arg(archive).arg("-C").arg(stage.sandbox.path("made/classes")).arg("com");
    run_command(command).ok();
    std::fs::remove_dir_all(stage.sandbox.path("made")).unwrap();
}

/// Launches the application's source, and stops in the other module.
fn stops_in_the_other_module(stage: &ScenarioSandbox, app: &str, order: &str) {
    let line = ORDER.lines().position(|line| line.ends_with("// TOTAL")).unwrap() + 1;
    stage.json(&["break", "set", &format!("{order}:{line}")]);
    let stopped = stage.json(&["debug", "launch", app, "--wait", "60"]);
    assert_eq!(stopped["stopReason"]["location"]["sourcePath"], order, "{stopped:#}");
    assert_eq!(ScenarioSandbox::local(&stopped, "total"), "22");
    let frames = stopped["snapshot"]["frames"].as_array().unwrap();
    assert_eq!(frames.last().unwrap()["file"], app, "{stopped:#}");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{ended:#}");
    let output = stage.json(&["debug", "output"])["entries"].to_string();
    assert!(output.contains("22 euros") && output.contains("x:absent:1"), "{output}");
    stage.nothing_is_left();
}

fn in_home(mut stage: ScenarioSandbox) -> ScenarioSandbox {
    let home = stage.sandbox.home().to_owned();
    stage.sandbox.more_variables.push(("HOME", home.into_os_string()));
    stage
}

#[test]
fn a_maven_module_runs_with_the_modules_and_the_archives_that_its_pom_names() {
    let app = "app/src/main/java/com/example/App.java";
    let order = "core/src/main/java/com/example/core/Order.java";
    let Some(stage) = ScenarioSandbox::with("java", "app/src/main/java/com/example/App.java", APP) else { return };
    let stage = in_home(stage);
    stage.sandbox.write(order, ORDER);
    let parent = "<parent><groupId>com.example</groupId><artifactId>all</artifactId><version>1.0</version></parent>";
    stage.sandbox.write(
        "pom.xml",
        "<project><groupId>com.example</groupId><artifactId>all</artifactId><version>1.0</version>\
         <packaging>pom</packaging><modules><module>core</module><module>app</module></modules>\
         <properties><tax.version>2.1</tax.version></properties><dependencyManagement><dependencies>\
         <dependency><groupId>com.example</groupId><artifactId>tax</artifactId><version>${tax.version}</version>\
         </dependency></dependencies></dependencyManagement></project>",
    );
    stage.sandbox.write(
        "core/pom.xml",
        &format!(
            "<project>{parent}<artifactId>core</artifactId><dependencies><dependency><groupId>com.example</groupId>\
             <artifactId>tax</artifactId></dependency></dependencies></project>"
        ),
    );
    stage.sandbox.write(
        "app/pom.xml",
        &format!(
            "<project>{parent}<artifactId>app</artifactId><dependencies><dependency><groupId>com.example</groupId>\
             <artifactId>core</artifactId><version>${{project.version}}</version></dependency><dependency>\
             <groupId>x</groupId><artifactId>absent</artifactId><version>1</version></dependency></dependencies></project>"
        ),
    );
    archive_tax(&stage, &stage.sandbox.home().join(".m2/repository/com/example/tax/2.1/tax-2.1.jar"));
    let tax = stage.sandbox.home().join(".m2/repository/com/example/tax/2.1/tax-2.1.jar");
    javac(&stage, order, "core/target/classes", &[]);
    // Maven copies resources beside the classes.
    stage.sandbox.write("core/target/classes/settings.properties", "unit=\\u0020euros\n");
    javac(&stage, app, "app/target/classes", &["core/target/classes", tax.to_str().unwrap()]);
    stops_in_the_other_module(&stage, app, order);
}

#[test]
fn a_gradle_module_runs_with_the_modules_the_resources_and_the_locked_archives() {
    let app = "app/src/main/java/com/example/App.java";
    let order = "libs/order-core/src/main/java/com/example/core/Order.java";
    let Some(stage) = ScenarioSandbox::with("java", "app/src/main/java/com/example/App.java", APP) else { return };
    let stage = in_home(stage);
    stage.sandbox.write(order, ORDER);
    stage.sandbox.write("settings.gradle.kts", "include(\":app\", \":libs:order-core\")\n");
    stage.sandbox.write("app/build.gradle.kts", "dependencies { implementation(projects.libs.orderCore) }\n");
    stage.sandbox.write("libs/order-core/build.gradle", "plugins { id 'java-library' }\n");
    stage.sandbox.write(
        "app/gradle.lockfile",
        "com.example:tax:2.1=compileClasspath,runtimeClasspath\nx:absent:1=runtimeClasspath\nempty=\n",
    );
    let tax = ".gradle/caches/modules-2/files-2.1/com.example/tax/2.1/0a1b2c/tax-2.1.jar";
    let tax = stage.sandbox.home().join(tax);
    archive_tax(&stage, &tax);
    javac(&stage, order, "libs/order-core/build/classes/java/main", &[]);
    stage.sandbox.write("libs/order-core/build/resources/main/settings.properties", "unit=\\u0020euros\n");
    let classes = "libs/order-core/build/classes/java/main";
    javac(&stage, app, "app/build/classes/java/main", &[classes, tax.to_str().unwrap()]);
    stops_in_the_other_module(&stage, app, order);
}

const LOADER: &str = "\
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;

public class Loader {
  public static void main(String[] arguments) throws Exception {
    for (String name : new String[] {\"one\", \"two\"}) {
      URL folder = Path.of(name).toUri().toURL();
      Class<?> plugin = new URLClassLoader(new URL[] {folder}).loadClass(\"plug.Plugin\");
      ((Runnable) plugin.getConstructor().newInstance()).run();
    }
  }
}
";

#[test]
fn two_classes_of_one_name_are_told_apart_by_the_folders_that_they_were_loaded_from() {
    let Some(stage) = ScenarioSandbox::with("java", "Loader.java", LOADER) else { return };
    for name in ["one", "two"] {
        let text = format!(
            "package plug;\n\npublic class Plugin implements Runnable {{\n  public void run() {{\n    \
             System.out.println(\"{name}\");\n  }}\n}}\n"
        );
        let source = format!("{name}/plug/Plugin.java");
        stage.sandbox.write(&source, &text);
        javac(&stage, &source, name, &[]);
    }
    for file in ["one/plug/Plugin.java", "two/plug/Plugin.java"] {
        stage.json(&["break", "remove", "--all"]);
        stage.json(&["break", "set", &format!("{file}:5")]);
        let stopped = stage.json(&["debug", "launch", "Loader.java", "--wait", "60"]);
        assert_eq!(stopped["stopReason"]["location"]["sourcePath"], file, "{stopped:#}");
        let ended = stage.json(&["debug", "continue", "--wait", "60"]);
        assert_eq!(ended["state"], "TERMINATED", "it does not stop in the other file: {ended:#}");
    }
    // Both have breakpoints: each stop says its own.
    stage.json(&["break", "set", "one/plug/Plugin.java:5"]);
    let mut stopped = stage.json(&["debug", "launch", "Loader.java", "--wait", "60"]);
    for file in ["one/plug/Plugin.java", "two/plug/Plugin.java"] {
        assert_eq!(stopped["stopReason"]["location"]["sourcePath"], file, "{stopped:#}");
        stopped = stage.json(&["debug", "continue", "--wait", "60"]);
    }
    stage.nothing_is_left();
}
