//! Names of types: the signatures of the virtual machine (`[Lcom/example/App;`) and the names of Java (`com.example.App[]`).

/// The signatures of the primitive types, and their names.
pub(crate) const PRIMITIVES: [(u8, &str); 9] = [
    (b'Z', "boolean"),
    (b'B', "byte"),
    (b'C', "char"),
    (b'S', "short"),
    (b'I', "int"),
    (b'J', "long"),
    (b'F', "float"),
    (b'D', "double"),
    (b'V', "void"),
];

/// The name of a class with slashes, `com/example/App`, by its signature; of what is none, itself.
pub(crate) fn class_path(signature: &str) -> &str {
    signature.strip_prefix('L').and_then(|name| name.strip_suffix(';')).unwrap_or(signature)
}

/// The Java name of a signature; of what is none, itself.
pub(crate) fn type_name(signature: &str) -> String {
    let element = signature.trim_start_matches('[');
    let name = match element.as_bytes() {
        [letter] => PRIMITIVES.iter().find(|(tag, _)| tag == letter).map_or(element, |(_, name)| name).to_owned(),
        _ => class_path(element).replace('/', "."),
    };
    name + &"[]".repeat(signature.len().saturating_sub(element.len()))
}

/// The Java name without the package: `Map.Entry` for `java.util.Map$Entry`.
pub(crate) fn short_type_name(signature: &str) -> String {
    let name = type_name(signature);
    // The name of a hidden class, such as a lambda's, ends with an address.
    let name = name.split_once(".0x").map_or(name.as_str(), |(name, _)| name);
    let short = name.rsplit('.').next().unwrap_or_default();
    // `Outer$Inner` is a nested class, `Outer$1` an anonymous one.
    let mut parts = short.split('$');
    let mut shown = parts.next().unwrap_or_default().to_owned();
    // The compiler's own names have two dollar signs.
    for part in parts {
        let is_name = part.starts_with(|c: char| c.is_alphabetic() || c == '_');
        shown.push(if is_name && !shown.is_empty() && !shown.ends_with('$') { '.' } else { '$' });
        shown.push_str(part);
    }
    shown
}

/// The signature of a class by its name in Java: `com.example.App$Inner`, `int[]`.
pub(crate) fn class_signature(name: &str) -> String {
    let element = name.trim_end_matches("[]");
    let dimensions = "[".repeat(name.len().saturating_sub(element.len()) / 2);
    match PRIMITIVES.iter().find(|(_, primitive)| *primitive == element) {
        Some((tag, _)) => format!("{dimensions}{}", char::from(*tag)),
        None => format!("{dimensions}L{};", element.replace('.', "/")),
    }
}

/// The package of a class's signature, with slashes; empty for the unnamed package.
pub(crate) fn package_path(signature: &str) -> &str {
    let name = class_path(signature.trim_start_matches('['));
    name.rsplit_once('/').map_or("", |(package, _)| package)
}

/// Whether a class belongs to the JDK.
pub(crate) fn is_jdk_class(signature: &str) -> bool {
    let name = class_path(signature.trim_start_matches('['));
    ["java/", "javax/", "jdk/", "sun/", "com/sun/"].iter().any(|package| name.starts_with(package))
}

/// Whether a class is one that the JDK makes of a lambda while the program runs.
pub(crate) fn is_lambda_class(signature: &str) -> bool {
    signature.contains("$$Lambda")
}

/// The signatures of a method's parameters, and of what it returns; of what is no signature, nothing.
pub(crate) fn method_types(signature: &str) -> (Vec<&str>, &str) {
    let Some((parameters, returned)) = signature.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
        return (Vec::new(), "V");
    };
    let (mut rest, mut found) = (parameters, Vec::new());
    while !rest.is_empty() {
        let mut element = rest.trim_start_matches('[').chars();
        if element.next() == Some('L') {
            element.find(|letter| *letter == ';');
        }
        let others = element.as_str();
        found.extend(rest.strip_suffix(others));
        rest = others;
    }
    (found, returned)
}

/// The parameters of a method as Java writes them, without packages: `int, String[]`.
pub(crate) fn parameter_names(signature: &str) -> String {
    method_types(signature).0.into_iter().map(short_type_name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_become_names_and_back() {
        for (signature, name, short) in [
            ("I", "int", "int"),
            ("[[J", "long[][]", "long[][]"),
            ("Ljava/lang/String;", "java.lang.String", "String"),
            ("[Ljava/util/Map$Entry;", "java.util.Map$Entry[]", "Map.Entry[]"),
            ("LMain$1;", "Main$1", "Main$1"),
            ("LLoads$Late;", "Loads$Late", "Loads.Late"),
        ] {
            assert_eq!((type_name(signature).as_str(), short_type_name(signature).as_str()), (name, short));
            assert_eq!(class_signature(name), signature);
        }
        assert_eq!(short_type_name("LMain$$Lambda$14/0x0000000800c03000;"), "Main$$Lambda$14");
        assert_eq!(short_type_name("La/Main$$Lambda.0x0000000800c03000;"), "Main$$Lambda");
        assert_eq!((type_name(""), short_type_name("")), (String::new(), String::new()));
    }

    #[test]
    fn the_types_of_methods_are_split() {
        assert_eq!(method_types("(I[Ljava/lang/String;J)V"), (vec!["I", "[Ljava/lang/String;", "J"], "V"));
        assert_eq!(method_types("()[I"), (vec![], "[I"));
        for broken in ["", "(", "(L", "([", "(Lä)V", "(ä)V"] {
            method_types(broken);
        }
        assert_eq!(parameter_names("(I[Ljava/lang/String;)V"), "int, String[]");
    }

    #[test]
    fn packages_are_told_apart() {
        assert_eq!(
            (package_path("Lcom/example/App;"), package_path("LMain;"), package_path("[I")),
            ("com/example", "", "")
        );
        assert!(
            is_jdk_class("[Ljava/lang/String;") && is_jdk_class("Lsun/misc/Unsafe;") && !is_jdk_class("Ljavanese/A;")
        );
    }
}
