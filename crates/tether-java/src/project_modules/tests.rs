//! Projects of Maven and Gradle: the modules and the archives that their files name.

use super::*;

/// Writes files below a folder, each with its text.
fn write_all(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn dependency(group: &str, artifact: &str, more: &str) -> String {
    format!("<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>{more}</dependency>")
}

#[test]
fn a_maven_module_has_the_modules_and_the_archives_that_its_files_name() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let parent = "<parent><groupId>g</groupId><artifactId>all</artifactId><version>1</version></parent>";
    let managed =
        [dependency("x", "lib", "<version>${lib.version}</version>"), dependency("x", "deep", "<version>9</version>")];
    let all = format!(
        "<project><groupId>g</groupId><artifactId>all</artifactId><version>1</version><packaging>pom</packaging>\
         <modules><module>core</module><module>app</module></modules>\
         <properties><lib.version>2</lib.version></properties>\
         <dependencyManagement><dependencies>{}</dependencies></dependencyManagement></project>",
        managed.concat()
    );
    let core = format!(
        "<project>{parent}<artifactId>core</artifactId><dependencies>{}{}</dependencies></project>",
        dependency("x", "lib", ""),
        dependency("x", "tested", "<version>1</version><scope>test</scope>"),
    );
    let app = format!(
        "<project>{parent}<artifactId>app</artifactId><dependencies>{}{}{}</dependencies></project>",
        dependency("${project.groupId}", "core", "<version>${project.version}</version>"),
        dependency("x", "absent", "<version>3</version>"),
        dependency("x", "system", "<version>1</version><scope>system</scope>"),
    );
    let lib = format!(
        "<project><groupId>x</groupId><artifactId>lib</artifactId><version>2</version><dependencies>{}{}{}\
         </dependencies></project>",
        dependency("x", "deep", "<version>1</version>"),
        dependency("x", "unwanted", "<version>1</version><optional>true</optional>"),
        dependency("../x", "..", "<version>..</version>"),
    );
    write_all(
        &root,
        &[
            ("all/pom.xml", &all),
            ("all/core/pom.xml", &core),
            ("all/app/pom.xml", &app),
            ("all/core/target/classes/Core.class", ""),
            ("all/app/target/classes/App.class", ""),
            ("repository/x/lib/2/lib-2.pom", &lib),
            ("repository/x/lib/2/lib-2.jar", ""),
            ("repository/x/deep/9/deep-9.jar", ""),
            ("repository/x/deep/1/deep-1.jar", ""),
        ],
    );
    let (folders, archives, missing) = maven_parts(&root.join("all/app"), &root.join("repository"));
    assert_eq!(folders, [root.join("all/core")]);
    let expected = ["x/lib/2/lib-2.jar", "x/deep/9/deep-9.jar"].map(|name| root.join("repository").join(name));
    assert_eq!(archives, expected);
    assert_eq!(missing, ["x:absent:3", "../x:..:.."]);
    let modules = all_modules(&root.join("all/app/src"));
    assert_eq!(modules, ["all/app", "all", "all/core"].map(|name| root.join(name)));
    assert_eq!(
        output_folders(&root.join("all/app")),
        ["app", "core"].map(|name| root.join("all").join(name).join("target/classes"))
    );
}

#[test]
fn a_gradle_module_has_the_modules_and_the_locked_archives_that_its_files_name() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    write_all(
        &root,
        &[
            (
                "all/settings.gradle.kts",
                "include(\n  \":app\", // first\n  \":libs:my-core\")\ninclude(\"other\", \"gone\")\n",
            ),
            ("all/app/build.gradle", "dependencies {\n  implementation project(':libs:my-core')\n}\n"),
            ("all/libs/my-core/build.gradle.kts", "dependencies { api(projects.other) }\n"),
            ("all/other/build.gradle", "dependencies { api project(path: ':app') }\n"),
            (
                "all/app/gradle.lockfile",
                "# a comment\nx:lib:2=compileClasspath,runtimeClasspath\nx:made:1=annotationProcessor\nx:absent:1=runtimeClasspath\nempty=\n",
            ),
            (".gradle/caches/modules-2/files-2.1/x/lib/2/0a1b/lib-2.jar", ""),
        ],
    );
    let (folders, archives, missing) = gradle_parts(&root.join("all/app"), &root);
    assert_eq!(folders, ["libs/my-core", "other"].map(|name| root.join("all").join(name)));
    assert_eq!(archives, [root.join(".gradle/caches/modules-2/files-2.1/x/lib/2/0a1b/lib-2.jar")]);
    assert_eq!(missing, ["x:absent:1"]);
}
