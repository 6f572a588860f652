//! Java expressions: parsed by tree-sitter's grammar, evaluated in a frame of a suspended thread.
//!
//! | file | owns |
//! |---|---|
//! | `syntax` | the expressions that can be evaluated |
//! | `parser` | text to expression; what is not supported is named |
//! | `literals` | numbers, characters and strings as they are written |
//! | `arithmetic` | operators on primitive values, as the language defines them |
//! | `arrays` | new arrays |
//! | `operand` | a value with what is known of its type |
//! | `evaluator` | the context of one evaluation |
//! | `operations` | the evaluation of each form of expression |
//! | `names` | names and what is behind their dots |
//! | `conversion` | boxing, casts, and texts of values |
//! | `scope` | what names mean in a frame: variables, fields, classes |
//! | `overloads` | which of several methods a call means |
//! | `calls` | calls of methods and constructors in the program |

mod arithmetic;
mod arrays;
mod calls;
mod conversion;
pub(crate) mod evaluator;
mod literals;
mod names;
mod operand;
pub(crate) mod operations;
mod overloads;
pub(crate) mod parser;
pub(crate) mod scope;
pub(crate) mod syntax;

pub(crate) use operand::Operand;
