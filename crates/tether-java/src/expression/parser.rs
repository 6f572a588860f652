//! Text to expression, by tree-sitter's grammar of Java. What is not supported is named.

use tether_jdwp::values::JdwpValue;
use tree_sitter::{Node, Parser};

use super::literals::{parse_character, parse_floating, parse_integer, unescape};
use super::syntax::{BinaryOperator, JavaExpression, UnaryOperator};

/// The longest expression, in bytes.
const MAX_LENGTH: usize = 16 << 10;
/// How deep an expression may be nested.
const MAX_DEPTH: usize = 100;
/// What an expression stands after, so that it is a whole program for the grammar.
const BEFORE: &str = "var x = ";

/// Parses an expression. Errors: where it is no Java, or what in it is not supported.
pub(crate) fn parse_expression(text: &str) -> Result<JavaExpression, String> {
    let text = text.trim().trim_end_matches(';');
    if text.is_empty() {
        return Err("there is no expression".to_owned());
    }
    if text.len() > MAX_LENGTH {
        return Err(format!("an expression may have {MAX_LENGTH} bytes"));
    }
    let whole = format!("{BEFORE}{text};");
    let mut parser = Parser::new();
    let cannot = |cause: String| format!("cannot parse Java: {cause}");
    parser.set_language(&tree_sitter_java::LANGUAGE.into()).map_err(|cause| cannot(cause.to_string()))?;
    let tree = parser.parse(&whole, None).ok_or_else(|| cannot("the parser gave up".to_owned()))?;
    let root = tree.root_node();
    if root.has_error() {
        return Err(syntax_error(root, text));
    }
    let declaration = root.named_child(0).filter(|_| root.named_child_count() == 1);
    let value = declaration
        .and_then(|it| it.child_by_field_name("declarator"))
        .filter(|it| it.next_named_sibling().is_none())
        .and_then(|it| it.child_by_field_name("value"));
    let value = value.ok_or_else(|| format!("`{text}` is not one expression"))?;
    Converter { text: &whole }.convert(value, 0)
}

/// Where the first error is.
fn syntax_error(root: Node<'_>, text: &str) -> String {
    let mut node = root;
    while let Some(child) = children_of(node, false).into_iter().find(|child| child.has_error() || child.is_missing()) {
        node = child;
    }
    let column = node.start_byte().saturating_sub(BEFORE.len()).min(text.len());
    let missing = if node.is_missing() { format!(": `{}` is missing", node.kind()) } else { String::new() };
    format!("`{text}` is not a Java expression at column {}{missing}", column.saturating_add(1))
}

fn children_of(node: Node<'_>, named: bool) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    if named { node.named_children(&mut cursor).collect() } else { node.children(&mut cursor).collect() }
}

struct Converter<'a> {
    text: &'a str,
}

impl Converter<'_> {
    fn text_of(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn field_text(&self, node: Node<'_>, field: &str) -> Result<String, String> {
        let found = node.child_by_field_name(field).map(|child| self.text_of(child).to_owned());
        found.ok_or_else(|| self.unsupported(node))
    }

    /// The name of a type, without its type arguments and annotations.
    fn type_text(&self, node: Node<'_>) -> Result<String, String> {
        match node.kind() {
            "generic_type" => self.type_text(node.named_child(0).ok_or_else(|| self.unsupported(node))?),
            "array_type" => {
                let element = node.child_by_field_name("element").ok_or_else(|| self.unsupported(node))?;
                let dimensions = node.child_by_field_name("dimensions").map_or(1, |it| self.count_brackets(it));
                Ok(self.type_text(element)? + &"[]".repeat(dimensions))
            }
            "integral_type"
            | "floating_point_type"
            | "boolean_type"
            | "void_type"
            | "type_identifier"
            | "identifier"
            | "scoped_type_identifier"
            | "scoped_identifier"
            | "field_access" => {
                let text = self.text_of(node);
                if text.contains('<') || text.contains('@') {
                    return Err(self.unsupported(node));
                }
                Ok(text.split_whitespace().collect())
            }
            _ => Err(self.unsupported(node)),
        }
    }

    fn count_brackets(&self, node: Node<'_>) -> usize {
        self.text_of(node).matches('[').count()
    }

    /// Converts what is inside of a node at that depth.
    fn convert_inner(&self, node: Node<'_>, depth: usize) -> Result<JavaExpression, String> {
        self.convert(node, depth.saturating_add(1))
    }

    fn convert_field(&self, node: Node<'_>, field: &str, depth: usize) -> Result<Box<JavaExpression>, String> {
        let child = node.child_by_field_name(field).ok_or_else(|| self.unsupported(node))?;
        self.convert_inner(child, depth).map(Box::new)
    }

    fn convert_list(&self, node: Node<'_>, depth: usize) -> Result<Vec<JavaExpression>, String> {
        let children = children_of(node, true).into_iter().filter(|child| !is_comment(*child));
        children.map(|child| self.convert_inner(child, depth)).collect()
    }

    fn arguments(&self, node: Node<'_>, depth: usize) -> Result<Vec<JavaExpression>, String> {
        let list = node.child_by_field_name("arguments").ok_or_else(|| self.unsupported(node))?;
        self.convert_list(list, depth)
    }

    fn convert(&self, node: Node<'_>, depth: usize) -> Result<JavaExpression, String> {
        if depth > MAX_DEPTH {
            return Err(format!("an expression may be nested {MAX_DEPTH} deep"));
        }
        use JavaExpression as E;
        Ok(match node.kind() {
            "parenthesized_expression" => {
                let inner = children_of(node, true).into_iter().find(|child| !is_comment(*child));
                self.convert_inner(inner.ok_or_else(|| self.unsupported(node))?, depth)?
            }
            "identifier" => E::Name(self.text_of(node).to_owned()),
            "this" => E::This,
            "field_access" => E::Member(self.convert_field(node, "object", depth)?, self.field_text(node, "field")?),
            "array_access" => {
                E::Element(self.convert_field(node, "array", depth)?, self.convert_field(node, "index", depth)?)
            }
            "method_invocation" => E::Call {
                receiver: match node.child_by_field_name("object") {
                    Some(object) => Some(Box::new(self.convert_inner(object, depth)?)),
                    None => None,
                },
                name: self.field_text(node, "name")?,
                arguments: self.arguments(node, depth)?,
            },
            "ternary_expression" => E::Conditional(
                self.convert_field(node, "condition", depth)?,
                self.convert_field(node, "consequence", depth)?,
                self.convert_field(node, "alternative", depth)?,
            ),
            "object_creation_expression" | "array_creation_expression" => self.convert_creation(node, depth)?,
            "binary_expression" | "unary_expression" | "update_expression" | "assignment_expression" => {
                self.convert_operation(node, depth)?
            }
            "cast_expression" | "instanceof_expression" | "class_literal" => self.convert_type_use(node, depth)?,
            _ => self.convert_literal(node)?,
        })
    }

    fn convert_literal(&self, node: Node<'_>) -> Result<JavaExpression, String> {
        let text = self.text_of(node);
        let is_negated = node.parent().is_some_and(|parent| {
            parent.kind() == "unary_expression"
                && parent.child_by_field_name("operator").is_some_and(|it| it.kind() == "-")
        });
        Ok(JavaExpression::Literal(match node.kind() {
            "true" => JdwpValue::Boolean(true),
            "false" => JdwpValue::Boolean(false),
            "null_literal" => JdwpValue::NULL,
            "decimal_integer_literal" | "hex_integer_literal" | "octal_integer_literal" | "binary_integer_literal" => {
                parse_integer(text, is_negated)?
            }
            "decimal_floating_point_literal" => parse_floating(text)?,
            "character_literal" => parse_character(text)?,
            "string_literal" if !text.starts_with("\"\"\"") => {
                let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
                return Ok(JavaExpression::Text(unescape(inner)?));
            }
            _ => return Err(self.unsupported(node)),
        }))
    }

    fn convert_operation(&self, node: Node<'_>, depth: usize) -> Result<JavaExpression, String> {
        use JavaExpression as E;
        if node.kind() == "update_expression" {
            let operator = children_of(node, false).into_iter().position(|it| ["++", "--"].contains(&it.kind()));
            let target = node.named_child(0).ok_or_else(|| self.unsupported(node))?;
            let increments = self.text_of(node).contains("++");
            return Ok(E::Update {
                target: Box::new(self.convert_inner(target, depth)?),
                by: if increments { BinaryOperator::Add } else { BinaryOperator::Subtract },
                is_postfix: operator != Some(0),
            });
        }
        let operator = self.field_text(node, "operator")?;
        let unknown = || self.unsupported(node);
        Ok(match node.kind() {
            "unary_expression" => E::Unary(
                UnaryOperator::from_text(&operator).ok_or_else(unknown)?,
                self.convert_field(node, "operand", depth)?,
            ),
            "binary_expression" => E::Binary(
                BinaryOperator::from_text(&operator).ok_or_else(unknown)?,
                self.convert_field(node, "left", depth)?,
                self.convert_field(node, "right", depth)?,
            ),
            _ => {
                let before = operator.strip_suffix('=').unwrap_or_default();
                let compound =
                    (!before.is_empty()).then(|| BinaryOperator::from_text(before).ok_or_else(unknown)).transpose()?;
                let (left, right) =
                    (self.convert_field(node, "left", depth)?, self.convert_field(node, "right", depth)?);
                E::Assign(left, compound, right)
            }
        })
    }

    fn convert_type_use(&self, node: Node<'_>, depth: usize) -> Result<JavaExpression, String> {
        use JavaExpression as E;
        let field_type =
            |field: &str| self.type_text(node.child_by_field_name(field).ok_or_else(|| self.unsupported(node))?);
        Ok(match node.kind() {
            "cast_expression" => E::Cast(field_type("type")?, self.convert_field(node, "value", depth)?),
            "instanceof_expression" if node.child_by_field_name("name").is_none() => {
                E::InstanceOf(self.convert_field(node, "left", depth)?, field_type("right")?)
            }
            "class_literal" => {
                E::ClassLiteral(self.type_text(node.named_child(0).ok_or_else(|| self.unsupported(node))?)?)
            }
            _ => return Err(self.unsupported(node)),
        })
    }

    fn convert_creation(&self, node: Node<'_>, depth: usize) -> Result<JavaExpression, String> {
        let children = children_of(node, true);
        if children.iter().any(|child| child.kind() == "class_body") {
            return Err("an anonymous class is not supported here".to_owned());
        }
        let type_field = node.child_by_field_name("type").ok_or_else(|| self.unsupported(node))?;
        let class = self.type_text(type_field)?;
        if node.kind() == "object_creation_expression" {
            // `outer.new Inner()`
            if !self.text_of(node).starts_with("new") {
                return Err(self.unsupported(node));
            }
            return Ok(JavaExpression::New { class, arguments: self.arguments(node, depth)? });
        }
        let mut lengths = Vec::new();
        let mut dimensions = 0usize;
        for child in &children {
            match child.kind() {
                "dimensions_expr" => {
                    lengths.extend(self.convert_list(*child, depth)?);
                    dimensions = dimensions.saturating_add(1);
                }
                "dimensions" => dimensions = dimensions.saturating_add(self.count_brackets(*child)),
                _ => {}
            }
        }
        let elements = match node.child_by_field_name("value") {
            Some(list) if children_of(list, true).iter().any(|it| it.kind() == "array_initializer") => {
                return Err("a nested array initializer is not supported here".to_owned());
            }
            Some(list) => Some(self.convert_list(list, depth)?),
            None => None,
        };
        Ok(JavaExpression::NewArray { element: class, dimensions, lengths, elements })
    }

    fn unsupported(&self, node: Node<'_>) -> String {
        let what = match node.kind() {
            "lambda_expression" => "a lambda",
            "method_reference" => "a method reference",
            "switch_expression" => "a switch",
            "array_initializer" => "an array initializer without `new`",
            "super" => "`super`",
            "string_literal" => "a text block",
            "instanceof_expression" => "a pattern after `instanceof`",
            "object_creation_expression" => "creating an inner object of another one",
            "hex_floating_point_literal" => "a hexadecimal floating-point number",
            "template_expression" => "a string template",
            other => other,
        };
        format!("{what} is not supported here: `{}`", self.text_of(node))
    }
}

fn is_comment(node: Node<'_>) -> bool {
    node.kind().ends_with("comment")
}

#[cfg(test)]
mod tests {
    use super::*;
    use JavaExpression as E;

    fn name(text: &str) -> Box<JavaExpression> {
        Box::new(E::Name(text.to_owned()))
    }

    fn int(number: i32) -> Box<JavaExpression> {
        Box::new(E::Literal(JdwpValue::Int(number)))
    }

    #[test]
    fn expressions_become_trees_with_the_precedence_of_java() {
        let check = |text: &str, expect: JavaExpression| assert_eq!(parse_expression(text), Ok(expect), "{text}");
        check("a", *name("a"));
        check("a.b", E::Member(name("a"), "b".into()));
        check("1 + 2 * 3", {
            let product = E::Binary(BinaryOperator::Multiply, int(2), int(3));
            E::Binary(BinaryOperator::Add, int(1), Box::new(product))
        });
        check("-2147483648", E::Unary(UnaryOperator::Minus, int(i32::MIN)));
        check("a[0]", E::Element(name("a"), int(0)));
        check("f(1)", E::Call { receiver: None, name: "f".into(), arguments: vec![*int(1)] });
        check("a.f()", E::Call { receiver: Some(name("a")), name: "f".into(), arguments: vec![] });
        check("(java.util.List<String>) a", E::Cast("java.util.List".into(), name("a")));
        check("(int[]) a", E::Cast("int[]".into(), name("a")));
        check("a instanceof String", E::InstanceOf(name("a"), "String".into()));
        check("new A<>(1)", E::New { class: "A".into(), arguments: vec![*int(1)] });
        check("String.class", E::ClassLiteral("String".into()));
        check("\"a\\n\"", E::Text("a\n".into()));
        check("a = 1", E::Assign(name("a"), None, int(1)));
        check("a >>>= 1", E::Assign(name("a"), Some(BinaryOperator::UnsignedShiftRight), int(1)));
        check("a++", E::Update { target: name("a"), by: BinaryOperator::Add, is_postfix: true });
        check("--a", E::Update { target: name("a"), by: BinaryOperator::Subtract, is_postfix: false });
        check("new int[2][]", {
            E::NewArray { element: "int".into(), dimensions: 2, lengths: vec![*int(2)], elements: None }
        });
        check("new int[] {1}", {
            E::NewArray { element: "int".into(), dimensions: 1, lengths: vec![], elements: Some(vec![*int(1)]) }
        });
        check("c ? 1 : 2", E::Conditional(name("c"), int(1), int(2)));
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let check = |text: &str, part: &str| {
            let error = parse_expression(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        };
        check("", "no expression");
        check("a +", "not a Java expression at column");
        check("1; int y = 2", "is not one expression");
        check("1, y = 2", "is not one expression");
        check("x -> x", "a lambda is not supported here: `x -> x`");
        check("String::length", "a method reference");
        check("new Object() { }", "anonymous class");
        check("{1, 2}", "without `new`");
        check("a instanceof String s", "a pattern");
        check("super.toString()", "`super`");
        check(&"(".repeat(20_000), "may have 16384 bytes");
        check(&format!("{}1{}", "(".repeat(500), ")".repeat(500)), "nested 100 deep");
    }
}
