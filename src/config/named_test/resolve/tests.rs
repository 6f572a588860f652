//! Whose a test is, by its name and the files around it.

use super::*;

struct Place {
    _home: tempfile::TempDir,
    folder: PathBuf,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Place {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("w s");
        for (name, text) in files {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Place { _home: home, folder }
    }

    /// Of a name, `language=…` and `program=…`.
    fn find(&self, name: &str, more: &str) -> Result<TestRun> {
        let value_of = |key: &str| more.split(' ').find_map(|word| word.strip_prefix(key));
        let program = value_of("program=").map(|file| self.folder.join(file));
        let folder = value_of("in=").map_or_else(|| self.folder.clone(), |folder| self.folder.join(folder));
        let language = value_of("language=");
        let workspace = &self.folder;
        NamedTest { name, language, program: program.as_deref(), folder: &folder, workspace }.resolve()
    }

    fn check(&self, name: &str, more: &str, expect: &str) {
        let found = self.find(name, more).map(|run| format!("{run:?}")).unwrap_or_else(|error| error.to_string());
        let found = found.replace(self.folder.to_str().unwrap(), "<ws>");
        assert!(found.contains(expect), "{name} {more}: {expect:?} is not in {found}");
    }
}

const FILES: &[(&str, &str)] = &[
    (
        "tests/test_a.py",
        "class TestX:\n    limit = 1\n\n    def test_b(self, n):\n        pass\n\ndef test_c():\n    pass\n",
    ),
    ("tests/test_b.py", "async def test_d():\n    pass\nclass A:\n  class B(object):\n    def test_e(self): pass\n"),
    ("rust/Cargo.toml", ""),
    ("rust/src/lib.rs", "#[test]\nfn adds() {}\n#[test]\nfn test_c() {}"),
    ("rust/target/debug/gen.rs", "#[test] fn only_built() {}"),
    ("go/sub/sum_test.go", "func TestSum(t *testing.T) {}"),
    ("go/other/sum_test.go", "func TestSum(t *testing.T) {}\nfunc TestOne(t *testing.T) {}"),
    ("js/math.test.js", "test(\"adds (one)\", () => {});\ntest('twice', f)"),
    ("js/test/deep/other.mjs", "it(`twice`, f)"),
    ("js/src/math.js", "test(\"no test file\")"),
    ("js/node_modules/x/a.test.js", "test(\"installed\")"),
];

#[test]
fn a_name_says_whose_it_is_or_the_file_in_which_it_stands() {
    let place = Place::new(FILES);
    place.check(
        "tests/test_a.py::TestX::test_b[1-2]",
        "",
        "Pytest { node: \"tests/test_a.py::TestX::test_b[1-2]\", folder: \"<ws>\", added: [] }",
    );
    place.check("test_a.py", "in=tests", "Pytest { node: \"test_a.py\", folder: \"<ws>/tests\", added: [] }");
    place.check("tests/test_a.py::test_c", "in=tests", "folder: \"<ws>\", added: [] }");
    place.check("test_b[7]", "", "node: \"tests/test_a.py::TestX::test_b[7]\"");
    place.check("test_d", "", "node: \"tests/test_b.py::test_d\"");
    place.check("test_e", "language=python", "node: \"tests/test_b.py::A::B::test_e\"");
    place.check("B::test_e", "", "node: \"tests/test_b.py::A::B::test_e\"");
    place.check("test_c", "program=tests/test_a.py", "node: \"tests/test_a.py::test_c\"");
    place.check("TestX", "", "node: \"tests/test_a.py::TestX\"");
    place.check("tests::adds", "", "Cargo { folder: \"<ws>/rust\", source: None }");
    place.check("made_by_a_macro", "language=rust in=rust/src", "Cargo { folder: \"<ws>/rust\", source: None }");
    place.check("adds", "program=rust/src/lib.rs", "Cargo { folder: \"<ws>/rust\", source: None }");
    place.check("adds", "language=rust", "Cargo { folder: \"<ws>/rust\", source: None }");
    place.check("TestOne/a b", "", "Go { package: \"<ws>/go/other\", pattern: \"^TestOne$/^a b$\" }");
    place.check("TestSum", "program=go/sub", "Go { package: \"<ws>/go/sub\", pattern: \"^TestSum$\" }");
    place.check("TestSum", "program=go/sub/sum_test.go", "package: \"<ws>/go/sub\"");
    place.check(
        "adds (one)",
        "",
        r#"Node { file: "<ws>/js/math.test.js", pattern: Some("^adds \\(one\\)$"), name: "adds (one)" }"#,
    );
    place.check("twice", "program=js/test", "file: \"<ws>/js/test/deep/other.mjs\"");
}

#[test]
fn the_package_of_a_test_decides_its_runner() {
    let test = "describe('orders', () => {\n  it('adds', f);\n});";
    let place = Place::new(&[
        ("package.json", "{\"devDependencies\": {\"jest\": \"30\"}}"),
        ("a.test.tsx", test),
        ("node_modules/jest/bin/jest.js", ""),
        ("node_modules/vitest/vitest.mjs", ""),
        ("sub/package.json", "{\"dependencies\": {\"vitest\": \"4\"}}"),
        ("sub/b.test.ts", test),
        ("sub/c.test.js", &format!("require('node:test');\n{test}")),
        ("end/package.json", "{\"devDependencies\": {\"@playwright/test\": \"1\", \"mocha\": \"11\"}}"),
        ("end/page.spec.ts", &format!("import {{ test }} from '@playwright/test';\n{test}")),
        ("end/unit.spec.js", test),
        ("packages/bare/package.json", "{}"),
        ("packages/bare/d.test.js", test),
    ]);
    // Its own package names none.
    place.check(
        "adds",
        "program=packages/bare/d.test.js",
        "runner: Jest, script: \"<ws>/node_modules/jest/bin/jest.js\", package: \"<ws>\"",
    );
    place.check(
        "adds",
        "program=end/page.spec.ts",
        "runner: Playwright, script: \"<ws>/end/node_modules/@playwright/test/cli.js\"",
    );
    place.check("adds", "program=end/unit.spec.js", "runner: Mocha");
    place.check("adds", "program=a.test.tsx", "runner: Jest, script: \"<ws>/node_modules/jest/bin/jest.js\"");
    place.check("orders > adds", "program=a.test.tsx", "pattern: Some(\"(^| )orders( >)? adds$\")");
    place.check("adds", "program=sub/b.test.ts", "runner: Vitest, script: \"<ws>/node_modules/vitest/vitest.mjs\"");
    place.check("adds", "program=sub/b.test.ts", "package: \"<ws>/sub\"");
    place.check("adds", "program=sub/c.test.js", "Node { file: \"<ws>/sub/c.test.js\", pattern: Some(\"^adds$\")");
    place.check("adds", "", "jest a.test.tsx: orders > adds\n    | playwright test end/page.spec.ts: orders > adds\n    | mocha end/unit.spec.js: orders > adds\n    | jest packages/bare/d.test.js: orders > adds\n    | vitest run sub/b.test.ts: orders > adds");
}

#[test]
fn what_cannot_be_told_is_told_with_what_would_make_it_clear() {
    let place = Place::new(FILES);
    let several =
        "there are several:\n    | pytest tests/test_a.py::test_c\n    | cargo test in rust\n  hint: name the file";
    place.check("test_c", "", several);
    place.check("TestSum", "", "go test in go/other\n    | go test in go/sub");
    place.check(
        "twice",
        "language=js",
        "node --test js/math.test.js: twice\n    | node --test js/test/deep/other.mjs: twice",
    );
    for nobodys in ["nothing", "no test file", "installed", "only_built"] {
        place.check(nobodys, "", "hint: name its `language` (python, rust, go, javascript, ruby, java), or the file");
    }
    place.check("nope", "language=go", "no *_test.go in <ws> has it");
    place.check("tests/none.py::test_b", "", "there is no tests/none.py in <ws>\n");
    place.check("tests/none.py", "in=js", "there is no tests/none.py in <ws>/js, nor in the workspace");
    place.check("adds", "language=rust program=js", "there is no Cargo.toml in or above <ws>/js");
    place.check("adds", "language=cobol", "cannot run a test of \"cobol\" by its name");
}

#[test]
fn the_runner_of_a_python_test_follows_from_its_project() {
    let unit = "import unittest\nclass TestX(unittest.TestCase):\n    def test_b(self):\n        pass\n";
    let place = Place::new(&[
        ("plain/requirements.txt", "requests\n"),
        ("plain/tests/test_a.py", unit),
        ("package/setup.py", ""),
        ("package/app/__init__.py", ""),
        ("package/app/tests/__init__.py", ""),
        ("package/app/tests/test_p.py", &unit.replace("test_b", "test_p")),
        ("site/manage.py", ""),
        (
            "site/polls/tests.py",
            "from django.test import TestCase\nclass PollTests(TestCase):\n    def test_d(self):\n        pass\n",
        ),
        ("mixed/conftest.py", ""),
        ("mixed/test_m.py", &unit.replace("test_b", "test_m")),
        ("xdist/pytest.ini", "[pytest]\naddopts = -n auto\n"),
        ("xdist/test_x.py", "def test_x():\n    pass\n"),
    ]);
    place.check(
        "test_b",
        "",
        r#"Unittest { arguments: ["discover", "-s", "tests", "-t", "tests", "-p", "test_a.py", "-k", "*.TestX.test_b"], folder: "<ws>/plain" }"#,
    );
    place.check("TestX", "program=plain/tests/test_a.py", r#""-k", "*.TestX.*"], folder: "<ws>/plain""#);
    place.check("plain/tests/test_a.py", "", r#""-p", "test_a.py"], folder: "<ws>/plain""#);
    place.check("test_p", "", r#"["discover", "-s", "app/tests", "-t", ".", "-p", "test_p.py""#);
    place.check("tests.test_a.TestX.test_b", "in=plain", r#"["tests.test_a.TestX.test_b"], folder: "<ws>/plain""#);
    place.check("test_d", "", r#"Django { manage: "<ws>/site/manage.py", label: "polls.tests.PollTests.test_d" }"#);
    place.check("polls.tests.PollTests.test_d", "in=site", "label: \"polls.tests.PollTests.test_d\"");
    place.check("site/polls/tests.py", "", "label: \"polls.tests\"");
    place.check("test_m", "", "Pytest { node: \"mixed/test_m.py::TestX::test_m\"");
    place.check("test_x", "", "node: \"xdist/test_x.py::test_x\", folder: \"<ws>\", added: [\"-n0\"]");
}

#[test]
fn a_file_is_all_of_its_tests() {
    let place = Place::new(&[
        ("Cargo.toml", ""),
        ("tests/whole.rs", ""),
        ("go/a_test.go", "func TestOne(t *testing.T) {}\nfunc TestTwo(t *testing.T) {}"),
        ("js/a.test.js", "test('x')"),
        ("spec/a_spec.rb", "RSpec.describe 'a' do\n  it 'b' do\n  end\nend\n"),
        ("OrdersTest.java", "package shop;\nclass OrdersTest {\n  @Test void adds() {\n  }\n}\n"),
    ]);
    place.check("tests/whole.rs", "", "Cargo { folder: \"<ws>\", source: Some(\"<ws>/tests/whole.rs\") }");
    place.check("go/a_test.go", "", "pattern: \"^(TestOne|TestTwo)$\"");
    place.check("js/a.test.js", "", "Node { file: \"<ws>/js/a.test.js\", pattern: None");
    place.check("spec/a_spec.rb", "", "selector: None");
    place.check("spec/a_spec.rb:2", "", "selector: Some(\"2\")");
    place.check("a > b", "", "selector: Some(\"2\")");
    place.check("OrdersTest.java", "", "class: \"shop.OrdersTest\", method: None");
    place.check("OrdersTest.adds", "", "method: Some(\"adds()\")");
}

#[test]
fn a_test_of_dotnet_is_answered_with_the_way_of_its_documentation() {
    let place = Place::new(&[("shop.csproj", "")]);
    place.check("Shop.Tests.Adds", "", "VSTEST_HOST_DEBUG=1 dotnet test --filter 'FullyQualifiedName~Shop.Tests.Adds'");
    place.check("Adds", "language=csharp", "by its documentation");
}

#[test]
fn a_test_of_an_extension_runs_in_its_host_unless_another_runner_has_it() {
    let suite = "import * as vscode from 'vscode';\nsuite('Orders', () => {\n  test('adds', () => {});\n});\n";
    let place = Place::new(&[
        ("package.json", r#"{"devDependencies": {"@vscode/test-cli": "1"}}"#),
        (".vscode-test.mjs", ""),
        ("src/test/orders.test.ts", suite),
        ("out/test/orders.test.js", "suite('Orders', () => {\n  test('adds', () => {});\n});\n"),
        ("unit/plain.test.ts", "import { test } from 'vitest';\ntest('plain', () => {});\n"),
    ]);
    // Once, though it is there compiled, too.
    place.check("adds", "", "Extension { folder: \"<ws>\"");
    place.check("Orders > adds", "", "name: Some(\"Orders > adds\")");
    place.check("src/test/orders.test.ts", "", "name: None");
    place.check("plain", "", "Vitest");
}
