//! Tests in Java: the classes and methods of JUnit in a source file, as its console launcher names them.
//!
//! Reads source text only.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regress::Regex;

use crate::config::named_test::nesting::Nesting;
use crate::config::named_test::test_files::{is_word, read_source};
use crate::config::named_test::test_run::{JavaTest, NamedTest, TestRun};

/// `class OrdersTest`, `record …`
static CLASS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*(?:@\w+\s+)*(?:(?:public|protected|private|static|final|abstract)\s+)*class\s+(\w+)").ok()
});

const PRIMITIVES: [&str; 8] = ["boolean", "byte", "char", "double", "float", "int", "long", "short"];
/// Of `java.lang`, which need no import.
const LANG: [&str; 12] = [
    "Boolean",
    "Byte",
    "CharSequence",
    "Character",
    "Class",
    "Double",
    "Enum",
    "Float",
    "Integer",
    "Long",
    "Object",
    "String",
];

/// The runs of this name: a method, with or without its class and package, or a class.
pub fn search(test: &NamedTest<'_>) -> Vec<TestRun> {
    let name = test.name.split('(').next().unwrap_or_default().replace(['#', '$'], ".");
    let last = name.rsplit('.').next().unwrap_or_default();
    if !name.split('.').all(is_word) {
        return Vec::new();
    }
    let has = |text: &str| text.contains(last) && (text.contains("@") || text.contains("TestCase"));
    let files = test.files(is_java_test, has);
    let runs_in = |file: &PathBuf| {
        let text = read_source(file).unwrap_or_default();
        let end = format!(".{name}");
        let named = find_tests(file, &text, last).into_iter().filter(move |found| {
            let method = found.method.as_ref().and_then(|method| method.split('(').next());
            let whole = [Some(found.class.replace('$', ".").as_str()), method]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(".");
            format!(".{whole}").ends_with(&end)
        });
        named.map(TestRun::Java).collect::<Vec<_>>()
    };
    files.iter().flat_map(runs_in).collect()
}

/// All tests of a file: those of its first class.
pub fn whole_file(file: &Path) -> Option<TestRun> {
    let text = read_source(file)?;
    let name = file.file_stem()?.to_string_lossy().into_owned();
    find_tests(file, &text, &name).into_iter().next().map(TestRun::Java)
}

/// The classes of a name, and the methods with a name behind an annotation or in an old test case.
fn find_tests(file: &Path, text: &str, name: &str) -> Vec<JavaTest> {
    let package = text.lines().find_map(|line| line.trim().strip_prefix("package ")?.split(';').next());
    let method = Regex::new(&format!(r"(?<![\w.]){name}\s*\(([^;{{)]*(?:\)[^;{{]*)?)\{{")).ok();
    let Some((class, method)) = CLASS.as_ref().zip(method) else { return Vec::new() };
    let mut around: Nesting<String> = Nesting::new();
    let (mut found, mut offset) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let rest = &text[offset..];
        offset += line.len();
        if line.trim().is_empty() {
            continue;
        }
        let of = |around: &Nesting<String>, method: Option<String>| {
            let classes = around.iter().map(String::as_str).collect::<Vec<_>>().join("$");
            let class = package.map_or(classes.clone(), |package| format!("{}.{classes}", package.trim()));
            JavaTest { file: file.to_owned(), class, method }
        };
        around.visit(line);
        if let Some(own) = class.find(line).and_then(|it| Some(line[it.group(1)?].to_owned())) {
            let is_named = own == name;
            around.enter(line, own);
            if is_named {
                found.push(of(&around, None));
            }
        }
        // A definition has its type before its name: a call stands at the beginning of its line, or behind something else.
        let definition = method.find(rest).filter(|it| it.start() < line.len() && is_definition(&line[..it.start()]));
        if let Some(parameters) = definition.and_then(|it| it.group(1)) {
            let types = parameter_types(&rest[parameters], text, package);
            found.push(of(&around, Some(format!("{name}({})", types.join(", ")))));
        }
    }
    found
}

fn is_definition(before: &str) -> bool {
    let last = before.trim_end().rsplit(char::is_whitespace).next().unwrap_or_default();
    before.ends_with(char::is_whitespace)
        && !matches!(last, "" | "return" | "new" | "throw" | "else" | "=")
        && last.chars().all(|c| c.is_alphanumeric() || "_<>[],.?".contains(c))
}

/// The types of the parameters, as JUnit wants them: with their packages.
fn parameter_types(parameters: &str, text: &str, package: Option<&str>) -> Vec<String> {
    // `int a) throws IOException`
    let parameters = parameters.split(')').next().unwrap_or_default();
    let mut plain = String::new();
    let mut depth = 0_usize;
    for character in parameters.chars() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            other if depth == 0 => plain.push(other),
            _ => {}
        }
    }
    let types = plain.split(',').filter_map(|one| {
        let words = one.split_whitespace().filter(|word| *word != "final" && !word.starts_with('@'));
        words.collect::<Vec<_>>().split_last().map(|(_, kind)| kind.concat())
    });
    types.filter(|kind| !kind.is_empty()).map(|kind| whole_type(&kind, text, package)).collect()
}

fn whole_type(kind: &str, text: &str, package: Option<&str>) -> String {
    let kind = kind.replace("...", "[]");
    let (name, array) = kind.split_at(kind.find('[').unwrap_or(kind.len()));
    if PRIMITIVES.contains(&name) || name.contains('.') {
        return kind;
    }
    let end = format!(".{name}");
    let imported = text.lines().find_map(|line| {
        let import = line.trim().strip_prefix("import ")?.split(';').next()?.trim();
        import.ends_with(&end).then(|| import.to_owned())
    });
    let whole = imported.unwrap_or_else(|| match (LANG.contains(&name), package) {
        (true, _) => format!("java.lang.{name}"),
        (false, Some(package)) => format!("{}.{name}", package.trim()),
        (false, None) => name.to_owned(),
    });
    whole + array
}

/// Whether Surefire or Gradle takes this file for a test: by its base name, or by its folder.
fn is_java_test(path: &str) -> bool {
    let base = path.rsplit('/').next().unwrap_or(path);
    let Some(stem) = base.strip_suffix(".java") else { return false };
    stem.starts_with("Test")
        || ["Test", "Tests", "TestCase", "IT"].iter().any(|end| stem.ends_with(end))
        || path.contains("src/test/java/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
package com.example;

import java.time.LocalDate;
import org.junit.jupiter.api.Test;

class OrdersTest {
    @Test
    void doubles() {
        helper.doubles();
        return doubles() {
    }
    @ParameterizedTest
    @CsvSource({\"1, a\"})
    void rows(int price, final String name,
              List<Map<String, Integer>> all, LocalDate... days) throws Exception {
    }
    @Nested
    class Deep {
        @Test void inner() { }
    }
}
";

    #[test]
    fn tests_have_the_names_and_types_of_the_runtime() {
        let check = |name: &str, expect: &[&str]| {
            let found = find_tests(Path::new("/w/OrdersTest.java"), TEXT, name);
            assert_eq!(found.iter().map(JavaTest::selector).collect::<Vec<_>>(), expect, "{name}");
        };
        check("doubles", &["com.example.OrdersTest#doubles()"]);
        check("rows", &["com.example.OrdersTest#rows(int, java.lang.String, com.example.List, java.time.LocalDate[])"]);
        check("inner", &["com.example.OrdersTest$Deep#inner()"]);
        check("Deep", &["com.example.OrdersTest$Deep"]);
        check("OrdersTest", &["com.example.OrdersTest"]);
        check("helper", &[]);
    }
}
