//! Whatever a client, a program or a file says is read without a panic, on a stack as small as that of the supervisor's
//! threads.

use proptest::prelude::*;

use super::breakpoint_table::{BreakpointPlace, is_class_around};
use super::class_file::parse_class_file;
use super::expression::parser::parse_expression;
use super::lambdas::target_of_column;
use super::signatures::{class_signature, is_jdk_class, method_types, package_path, parameter_names, short_type_name};
use super::small_stack::run_on_small_stack;
use super::smart_step::calls_on_line;
use super::sources::parse_header;
use super::stop_conditions::parse_conditions;
use super::value_text::quote_text;

/// Reads a text as everything that is read here.
fn read_text(text: &str) {
    let _ = parse_expression(text);
    let _ = parse_conditions(Some(text), Some(text), Some(text));
    if let Ok(place) = BreakpointPlace::parse_function(text) {
        place.pattern();
    }
    is_class_around(text, "a.B");
    calls_on_line(text, 1);
    target_of_column(text, 1, 5);
    parse_header(text);
    for signature in [text.to_owned(), class_signature(text), format!("({text})V")] {
        short_type_name(&signature);
        method_types(&signature);
        parameter_names(&signature);
        package_path(&signature);
        is_jdk_class(&signature);
    }
    quote_text(text, 3);
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC{0,60}", java in "[a-z0-9.,;:()\\[\\]{}<>?!\"'\\\\+*/&|=ä -]{0,80}") {
        run_on_small_stack(|| [text, java].iter().for_each(|text| read_text(text)));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        run_on_small_stack(|| {
            parse_class_file(&bytes);
            read_text(&String::from_utf8_lossy(&bytes));
        });
    }
}

#[test]
fn deep_nesting_is_read_on_a_small_stack() {
    run_on_small_stack(|| {
        for begin in ["(", "[", "{", "f(", "-", "!", "new int[1]", "a.", "1+", "a?b:", "(int)", "class A {", "() -> "] {
            for count in [50, 2000] {
                let text = begin.repeat(count);
                read_text(&text);
                read_text(&format!("{text}1"));
            }
        }
    });
}
