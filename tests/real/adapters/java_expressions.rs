//! Java expressions: what our adapter evaluates in a frame, beside what `javac` and `java` make of the same text.

use std::collections::BTreeMap;
use std::process::Command;

use devtether::adapters::DebugTargetKind;
use devtether::debug::inspect;
use devtether::vocabulary::StopKind;

use crate::adapters::adapter_session::{AdapterSession, ProgramFolder, found};
use crate::support::compile_java;

/// The class around the expressions; they stand at `TABLE`, and are evaluated at `STOP`.
const CLASS: &str = r#"
import java.util.*;

public class Table {
  enum Color { RED, GREEN; String low() { return name().toLowerCase(); } }

  interface Shape {
    double area();
    default String tell() { return "area " + area(); }
    static String kind() { return "shape"; }
  }

  static class Base {
    static int count = 3;
    protected int inherited = 7;
    int twice(int x) { return 2 * x; }
    public String toString() { return "a base"; }
  }

  static class Square extends Base implements Shape {
    final double side;
    Square(double side) { this.side = side; }
    Square() { this(1); }
    public double area() { return side * side; }
    int twice(int x) { return 2 * x + 1; }
  }

  private int number = 5;
  static final long BIG = 1L << 40;
  static String title = "Title";
  private final int[] numbers = {1, 2, 3};
  private Table next;

  static String which(int x) { return "int"; }
  static String which(long x) { return "long"; }
  static String which(double x) { return "double"; }
  static String which(char x) { return "char"; }
  static String which(boolean x) { return "boolean"; }
  static String which(String x) { return "String"; }
  static String which(Integer x) { return "Integer"; }
  static String which(Object x) { return "Object"; }
  static String wide(long x) { return "long"; }
  static String wide(Object x) { return "Object"; }
  static String near(Object x, Base y) { return "Object, Base"; }
  static String near(Object x, Square y) { return "Object, Square"; }
  static int sum(int... all) { int sum = 0; for (int one : all) sum += one; return sum; }
  int plus(int x) { return number + x; }
  static int fails(int x) { throw new IllegalStateException("no " + x); }

  static String type(boolean x) { return "boolean"; }
  static String type(byte x) { return "byte"; }
  static String type(char x) { return "char"; }
  static String type(short x) { return "short"; }
  static String type(int x) { return "int"; }
  static String type(long x) { return "long"; }
  static String type(float x) { return "float"; }
  static String type(double x) { return "double"; }
  static String type(Object x) { return x == null ? "null" : x.getClass().getTypeName(); }

  static void print(int row, String type, String text) {
    System.out.println("row\t" + row + "\t" + type + "\t" + text);
  }

  void here(int argument, String text) {
    byte small = 3;
    short brief = 300;
    char letter = 'a';
    long large = 5_000_000_000L;
    float real = 1.5f;
    double exact = 2.25;
    boolean yes = true, no = false;
    Integer boxed = 12;
    Long boxedLong = 9L;
    Character boxedLetter = 'z';
    Boolean boxedYes = true;
    String nothing = null;
    Object any = "any";
    List<String> names = new ArrayList<>(List.of("ann", "bob"));
    Map<String, Integer> ages = new TreeMap<>(Map.of("ann", 31, "bob", 27));
    int[][] grid = {{1, 2}, {3, 4}};
    String[] words = {"one", "two"};
    Color color = Color.GREEN;
    Square square = new Square(3);
    Shape shape = square;
    Base base = square;
    // TABLE
    System.out.println("up"); // STOP
  }

  public static void main(String[] arguments) {
    Table it = new Table();
    it.next = new Table();
    it.next.number = 6;
    it.here(10, "some text");
  }
}
"#;

/// None changes anything: each is evaluated twice.
#[rustfmt::skip]
const EXPRESSIONS: &[&str] = &[
    // Literals.
    "1", "-1", "0x1F", "0b101", "017", "1_000", "2147483647", "-2147483648", "5L", "0xFFFFFFFFL", "1.5", "1.5f", "1e3", "2d",
    "'a'", "'\\n' + 0", "'\\u0041'", "\"text\"", "\"a\\tb\".length()", "true", "false", "null",
    // Locals, arguments, fields, statics, inherited ones, enums.
    "argument", "text", "small", "brief", "letter", "large", "real", "exact", "yes", "boxed", "boxedLong", "nothing", "any",
    "number", "this.number", "next.number", "this.next.number", "BIG", "Table.BIG", "title", "numbers.length", "next.next",
    "square.side", "square.inherited", "Base.count", "Square.count", "square.count", "Color.RED", "color", "color.ordinal()",
    "Integer.MAX_VALUE", "Math.PI", "java.util.Collections.EMPTY_LIST", "Long.MIN_VALUE",
    // Arrays.
    "numbers[0]", "numbers[number - 3]", "grid[1][0]", "grid[1].length", "words[1]", "words.length", "new int[3].length",
    "new int[] {4, 5}[1]", "new String[] {\"x\", \"y\"}[0]", "new int[2][3][1].length", "grid[0].clone().length",
    // Arithmetic and its types.
    "1 + 2 * 3", "(1 + 2) * 3", "7 / 2", "-7 / 2", "-7 % 3", "7.0 / 2", "1 / 2.0f", "5 % 2.5", "small + brief", "small * small",
    "letter + 1", "(char) (letter + 1)", "large + argument", "real * exact", "boxed + 1", "boxed * boxedLong", "-small", "+letter",
    "~argument", "2147483647 + 1", "2147483647 * 2L", "1 << 33", "1L << 33", "-16 >> 2", "-16 >>> 28", "-16L >>> 60", "large >> small",
    "6 & 3", "6 | 3", "6 ^ 3", "large & 0xFF", "yes & no", "yes | no", "yes ^ yes", "1.0 / 0", "0.0 / 0", "0.1 + 0.2", "1f / 3", "1e20f",
    "100.0", "1e7", "1e-4", "1.0E10 / 3",
    // Comparison and logic.
    "1 < 2", "letter <= 'a'", "exact > real", "1 == 1.0", "letter == 97", "yes && no", "yes || no", "!yes", "no && 1 / 0 == 0",
    "yes || 1 / 0 == 0", "boxed == 12", "boxed > 5", "nothing == null", "null != any", "color == Color.GREEN", "square == shape",
    "any.equals(\"any\")", "any == text", "boxedYes && yes", "boxedLong == 9", "exact != exact",
    // Texts.
    "\"a\" + 1 + 2", "1 + 2 + \"a\"", "\"\" + letter + small", "text + null", "\"\" + exact", "\"\" + 1f", "'a' + \"b\"", "\"x\" + color",
    "\"\" + yes", "text.length()", "text.substring(5)", "text.charAt(0)", "text.toUpperCase().indexOf('T')", "text + square",
    "\"a,b\".split(\",\").length", "String.valueOf(letter)", "String.join(\"-\", names)", "text.replace('s', 'S')",
    // Casts.
    "(int) 3.9", "(int) -3.9", "(byte) 300", "(short) 70000", "(char) 65", "(long) 1e30", "(int) letter", "(double) 1", "(float) exact",
    "(int) Double.NaN", "(Object) text", "((Square) shape).side", "((String) any).length()", "(long) boxed", "(int) boxedLetter",
    "(Integer) 3", "(byte) small + 1",
    // `instanceof` and the conditional.
    "any instanceof String", "any instanceof Integer", "nothing instanceof String", "shape instanceof Base", "grid instanceof Object",
    "yes ? 1 : 2", "no ? 1 : 2.0", "yes ? 'a' : 1", "yes ? boxed : 1", "yes ? null : 1", "no ? \"a\" : text", "yes ? small : 'b'",
    // Calls and their overloads.
    "which(1)", "which(1L)", "which(1f)", "which('a')", "which(small)", "which(yes)", "which(text)", "which(boxed)", "which(boxedLong)",
    "which(any)", "which(names)", "wide(1)", "wide('a')", "wide(boxed)", "wide(1.5)", "near(text, square)", "near(text, base)",
    "plus(1)", "this.plus(2)", "next.plus(3)", "sum()", "sum(1)", "sum(1, 2, 3)", "sum(numbers)", "square.area()", "shape.area()",
    "shape.tell()", "Shape.kind()", "square.twice(4)", "base.twice(4)", "base.toString()", "color.low()", "Color.valueOf(\"RED\").low()",
    "Color.values().length", "Math.max(1, 2L)", "Math.abs(-2.5)", "Math.floorMod(-7, 3)", "Integer.parseInt(\"42\") + 1",
    "Integer.toHexString(255)", "names.size()", "names.get(1)", "names.get(0).length()", "ages.get(\"bob\")", "ages.get(\"bob\") + 1",
    "ages.containsKey(\"eve\")", "names.contains(\"bob\")", "List.of(1, 2).size()", "Objects.hash(1, 2)", "boxed.compareTo(3)",
    "boxed.intValue()", "names.getClass().getName()", "String.class.getName()", "int.class.getName()", "Table.class.getSimpleName()",
    // Creation.
    "new Square(2).area()", "new Square().side", "new Square(2).tell()", "new String(\"new\")", "new Integer(5) + 1",
    "new ArrayList<String>(names).size()", "new StringBuilder(\"ab\").reverse().toString()", "new Base().toString()",
    // What throws.
    "1 / 0", "1L % 0", "numbers[7]", "numbers[-1]", "nothing.length()", "(Integer) any", "names.get(9)", "fails(3)", "new int[-1]",
    "Integer.parseInt(\"x\")", "Color.valueOf(\"BLUE\")", "(int) (Integer) null", "((Base) null).inherited",
];

/// What `java` prints for each expression: its type, and it as text; for what throws, `throws` and the class.
fn printed_by_java(place: &ProgramFolder) -> BTreeMap<usize, (String, String)> {
    let row = |(row, expression): (usize, &&str)| {
        format!(
            "    try {{ print({row}, type({expression}), \"\" + ({expression})); }} \
             catch (Throwable thrown) {{ print({row}, \"throws\", thrown.getClass().getName()); }}\n"
        )
    };
    let rows: String = EXPRESSIONS.iter().enumerate().map(row).collect();
    let (source, _) = place.file("printing/Table.java", &CLASS.replace("    // TABLE\n", &rows));
    compile_java(&source);
    let mut java = Command::new("java");
    let ran = java.arg("-cp").arg(source.parent().unwrap()).arg("Table").env("LC_ALL", "C.UTF-8").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("row\t"));
    let cells = rows.map(|line| line.splitn(3, '\t').collect::<Vec<_>>());
    cells.map(|cells| (cells[0].parse().unwrap(), (cells[1].to_owned(), cells[2].to_owned()))).collect()
}

#[tokio::test]
async fn expressions_have_the_values_and_the_types_that_java_gives_them() {
    let Some((row, found)) = found("java") else { return };
    let place = ProgramFolder::new();
    let expected = printed_by_java(&place);
    assert!(EXPRESSIONS.len() >= 150 && expected.len() == EXPRESSIONS.len(), "{}", expected.len());
    let (source, line) = place.file("Table.java", CLASS);
    let requested = place.wants(DebugTargetKind::Program(source.clone()));
    let play = AdapterSession::open(row, &found, &requested, &[(&source, line)]).await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
    let mut wrong = Vec::new();
    for (index, expression) in EXPRESSIONS.iter().enumerate() {
        let (kind, text) = &expected[&index];
        let found = inspect::evaluate(&play.session, expression, None, "watch").await;
        if kind == "throws" {
            let thrown = found.as_ref().err().map(ToString::to_string);
            if !thrown.as_ref().is_some_and(|error| error.contains(text.as_str())) {
                wrong.push(format!(
                    "{expression}: throws {text}, not {:?}",
                    thrown.ok_or(found.ok().map(|it| it.1.result))
                ));
            }
            continue;
        }
        let found = found.map(|(_, answer)| answer.kind.unwrap_or_default()).map_err(|error| error.to_string());
        if kind != "null" && found.as_ref() != Ok(kind) {
            wrong.push(format!("{expression}: has the type {kind}, not {found:?}"));
        }
        let shown = inspect::evaluate(&play.session, &format!("\"\" + ({expression})"), None, "watch").await;
        let shown = shown.map(|(_, answer)| answer.result).map_err(|error| error.to_string());
        if shown.as_ref() != Ok(&serde_json::to_string(text).unwrap()) {
            wrong.push(format!("{expression}: is {text}, not {shown:?}"));
        }
    }
    play.end().await;
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), EXPRESSIONS.len(), wrong.join("\n"));
}
