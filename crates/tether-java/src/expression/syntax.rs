//! The expressions that can be evaluated.

use tether_jdwp::values::JdwpValue;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JavaExpression {
    /// A number, a character, `true`, `false`, `null`.
    Literal(JdwpValue),
    Text(String),
    This,
    /// A variable, a field or the beginning of a class's name.
    Name(String),
    /// A field of an object or a class, or the rest of a class's name.
    Member(Box<JavaExpression>, String),
    Element(Box<JavaExpression>, Box<JavaExpression>),
    Call {
        receiver: Option<Box<JavaExpression>>,
        name: String,
        arguments: Vec<JavaExpression>,
    },
    New {
        class: String,
        arguments: Vec<JavaExpression>,
    },
    /// An array with elements, or with lengths of its first dimensions.
    NewArray {
        element: String,
        dimensions: usize,
        lengths: Vec<JavaExpression>,
        elements: Option<Vec<JavaExpression>>,
    },
    Unary(UnaryOperator, Box<JavaExpression>),
    Binary(BinaryOperator, Box<JavaExpression>, Box<JavaExpression>),
    Conditional(Box<JavaExpression>, Box<JavaExpression>, Box<JavaExpression>),
    Cast(String, Box<JavaExpression>),
    InstanceOf(Box<JavaExpression>, String),
    /// `String.class`
    ClassLiteral(String),
    /// `a = b`; with an operator `a += b`.
    Assign(Box<JavaExpression>, Option<BinaryOperator>, Box<JavaExpression>),
    /// `a++`, `--a`: the operator, and whether the value is that of before.
    Update {
        target: Box<JavaExpression>,
        by: BinaryOperator,
        is_postfix: bool,
    },
}

impl JavaExpression {
    /// The names with which its parts begin: variables, fields, classes.
    pub(crate) fn names(&self) -> Vec<&str> {
        use JavaExpression as E;
        let (mut found, mut left) = (Vec::new(), vec![self]);
        while let Some(part) = left.pop() {
            match part {
                E::Name(name) => found.push(name.as_str()),
                E::Literal(_) | E::Text(_) | E::This | E::ClassLiteral(_) => {}
                E::Member(inner, _) | E::Unary(_, inner) | E::Cast(_, inner) | E::InstanceOf(inner, _) => {
                    left.push(inner)
                }
                E::Update { target, .. } => left.push(target),
                E::Element(one, other) | E::Binary(_, one, other) | E::Assign(one, _, other) => {
                    left.extend([&**one, other])
                }
                E::Conditional(one, other, third) => left.extend([&**one, other, third]),
                E::Call { receiver, arguments, .. } => left.extend(receiver.iter().map(|it| &**it).chain(arguments)),
                E::New { arguments, .. } => left.extend(arguments),
                E::NewArray { lengths, elements, .. } => left.extend(lengths.iter().chain(elements.iter().flatten())),
            }
        }
        found
    }

    /// Whether evaluating it runs no code of the program and changes nothing.
    pub(crate) fn is_without_effect(&self) -> bool {
        match self {
            JavaExpression::Literal(_) | JavaExpression::Text(_) | JavaExpression::This | JavaExpression::Name(_) => {
                true
            }
            JavaExpression::Member(inner, _) | JavaExpression::Unary(_, inner) | JavaExpression::Cast(_, inner) => {
                inner.is_without_effect()
            }
            JavaExpression::Element(one, other) | JavaExpression::Binary(_, one, other) => {
                one.is_without_effect() && other.is_without_effect()
            }
            _ => false,
        }
    }
}

/// An operator before its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryOperator {
    Plus,
    Minus,
    Not,
    Complement,
}

/// An operator between its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    ShiftLeft,
    ShiftRight,
    UnsignedShiftRight,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    And,
    Xor,
    Or,
    AndThen,
    OrElse,
}

impl UnaryOperator {
    /// The operator with that text.
    pub(crate) fn from_text(text: &str) -> Option<UnaryOperator> {
        Some(match text {
            "+" => UnaryOperator::Plus,
            "-" => UnaryOperator::Minus,
            "!" => UnaryOperator::Not,
            "~" => UnaryOperator::Complement,
            _ => return None,
        })
    }
}

impl BinaryOperator {
    /// The operator with that text.
    pub(crate) fn from_text(text: &str) -> Option<BinaryOperator> {
        use BinaryOperator as B;
        Some(match text {
            "+" => B::Add,
            "-" => B::Subtract,
            "*" => B::Multiply,
            "/" => B::Divide,
            "%" => B::Remainder,
            "<<" => B::ShiftLeft,
            ">>" => B::ShiftRight,
            ">>>" => B::UnsignedShiftRight,
            "<" => B::Less,
            "<=" => B::LessOrEqual,
            ">" => B::Greater,
            ">=" => B::GreaterOrEqual,
            "==" => B::Equal,
            "!=" => B::NotEqual,
            "&" => B::And,
            "^" => B::Xor,
            "|" => B::Or,
            "&&" => B::AndThen,
            "||" => B::OrElse,
            _ => return None,
        })
    }
}
