//! Which of several methods a call means (JLS 15.12.2): first those whose parameters the arguments fit as they are, then
//! with boxing, then with a variable number of last arguments; of several the most specific.

use std::sync::Arc;

use tether_jdwp::JdwpError;
use tether_jdwp::commands::reference_types::DeclaredMethod;

use super::arithmetic::is_widened;
use super::operand::{box_of, unboxed};
use crate::java_vm::{BRIDGE, JavaClass, JavaVm, STATIC, VARARGS};
use crate::signatures::{method_types, parameter_names};

/// Modifier of methods: without code.
const ABSTRACT: i32 = 0x0400;

/// The type of an argument.
#[derive(Clone)]
pub(super) enum ArgumentType {
    Primitive(u8),
    Null,
    Object(Arc<JavaClass>),
}

/// A method that may be meant.
#[derive(Clone)]
pub(super) struct MethodCandidate {
    /// The class that declares it.
    pub class: Arc<JavaClass>,
    pub method: DeclaredMethod,
    /// Whether its last arguments are elements of an array.
    pub spreads: bool,
}

/// How the arguments are matched.
#[derive(Clone, Copy, PartialEq)]
enum MatchPhase {
    Strict,
    Boxing,
    Variable,
}

impl MethodCandidate {
    /// The signatures of its parameters.
    pub(super) fn parameters(&self) -> Vec<&str> {
        method_types(&self.method.signature).0
    }

    /// Whether it is static.
    pub(super) fn is_static(&self) -> bool {
        self.method.modifiers & STATIC != 0
    }

    /// The signature of the type that the argument at `index` must have.
    pub(super) fn parameter_at(&self, index: usize) -> Option<&str> {
        let parameters = self.parameters();
        let last = parameters.len().checked_sub(1)?;
        match self.spreads && index >= last {
            true => parameters.get(last).and_then(|array| array.strip_prefix('[')),
            false => parameters.get(index).copied(),
        }
    }
}

/// The methods of that name that a class has or inherits; of overridden ones the nearest.
pub(super) async fn find_candidates(
    vm: &JavaVm,
    class: &Arc<JavaClass>,
    name: &str,
) -> Result<Vec<MethodCandidate>, JdwpError> {
    let mut classes = if name == "<init>" { vec![Arc::clone(class)] } else { vm.ancestors(class).await? };
    // Interfaces and arrays have the methods of Object, too.
    if name != "<init>" && !classes.iter().any(|it| it.signature == "Ljava/lang/Object;") {
        classes.extend(vm.classes_by_signature("Ljava/lang/Object;").await?);
    }
    let mut found: Vec<MethodCandidate> = Vec::new();
    for class in classes {
        for method in vm.methods(&class).await?.iter().filter(|it| it.name == name && it.modifiers & BRIDGE == 0) {
            let parameters = method_types(&method.signature).0;
            let overrides = |other: &MethodCandidate| other.parameters() == parameters;
            match found.iter_mut().find(|other| overrides(other)) {
                // A default method of an interface, behind an abstract one of a class.
                Some(other) if other.method.modifiers & ABSTRACT != 0 && method.modifiers & ABSTRACT == 0 => {
                    other.class = Arc::clone(&class);
                    other.method = method.clone();
                }
                Some(_) => {}
                None => {
                    found.push(MethodCandidate { class: Arc::clone(&class), method: method.clone(), spreads: false })
                }
            }
        }
    }
    Ok(found)
}

/// The method that a call with these arguments means. Errors: none, or it cannot be told which.
pub(super) async fn choose_overload(
    vm: &JavaVm,
    name: &str,
    candidates: Vec<MethodCandidate>,
    arguments: &[ArgumentType],
) -> Result<Result<MethodCandidate, String>, JdwpError> {
    for phase in [MatchPhase::Strict, MatchPhase::Boxing, MatchPhase::Variable] {
        let mut fitting = Vec::new();
        for candidate in &candidates {
            let candidate = MethodCandidate { spreads: phase == MatchPhase::Variable, ..candidate.clone() };
            if fits_arguments(vm, &candidate, arguments, phase).await? {
                fitting.push(candidate);
            }
        }
        let mut fitting = fitting.into_iter();
        if let Some(first) = fitting.next() {
            return choose_most_specific(vm, first, fitting, arguments.len()).await.map(Ok);
        }
    }
    let known: Vec<String> =
        candidates.iter().map(|it| format!("{name}({})", parameter_names(&it.method.signature))).collect();
    Ok(Err(match known.is_empty() {
        true => format!("there is no method {name}"),
        false => format!("no method {name} takes these arguments: there are {}", known.join(", ")),
    }))
}

async fn fits_arguments(
    vm: &JavaVm,
    candidate: &MethodCandidate,
    arguments: &[ArgumentType],
    phase: MatchPhase,
) -> Result<bool, JdwpError> {
    let count = candidate.parameters().len();
    let takes_count = match phase {
        MatchPhase::Variable => {
            candidate.method.modifiers & VARARGS != 0 && count > 0 && arguments.len().saturating_add(1) >= count
        }
        _ => arguments.len() == count,
    };
    if !takes_count {
        return Ok(false);
    }
    for (index, argument) in arguments.iter().enumerate() {
        let Some(parameter) = candidate.parameter_at(index) else { return Ok(false) };
        if !is_assignable(vm, argument, parameter, phase != MatchPhase::Strict).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether an argument can be passed for a parameter.
async fn is_assignable(
    vm: &JavaVm,
    argument: &ArgumentType,
    parameter: &str,
    with_boxing: bool,
) -> Result<bool, JdwpError> {
    let primitive = if let [tag] = parameter.as_bytes() { Some(*tag) } else { None };
    Ok(match (argument, primitive) {
        (ArgumentType::Primitive(from), Some(to)) => is_widened(*from, to),
        (ArgumentType::Null, primitive) => primitive.is_none(),
        (ArgumentType::Object(class), None) => is_subtype(vm, class, parameter).await?,
        (ArgumentType::Object(class), Some(to)) => {
            with_boxing && unboxed(&class.signature).is_some_and(|from| is_widened(from, to))
        }
        (ArgumentType::Primitive(from), None) if with_boxing => {
            let boxed = box_of(*from).unwrap_or_default();
            match vm.classes_by_signature(boxed).await?.first() {
                Some(class) => vm.is_subclass(class, parameter).await?,
                None => false,
            }
        }
        (ArgumentType::Primitive(_), None) => false,
    })
}

/// Whether a class is of a type; arrays of objects are of the types of arrays that their elements are of.
pub(super) async fn is_subtype(vm: &JavaVm, class: &Arc<JavaClass>, signature: &str) -> Result<bool, JdwpError> {
    // What the elements are, as far as both are arrays.
    let (mut element, mut wanted) = (class.signature.as_str(), signature);
    while let (Some(inner), Some(wanted_inner)) = (element.strip_prefix('['), wanted.strip_prefix('[')) {
        (element, wanted) = (inner, wanted_inner);
    }
    if element == wanted {
        return Ok(true);
    }
    if element.starts_with('[') {
        return Ok(["Ljava/lang/Object;", "Ljava/lang/Cloneable;", "Ljava/io/Serializable;"].contains(&wanted));
    }
    let are_both_arrays = wanted.len() < signature.len();
    if !are_both_arrays {
        return vm.is_subclass(class, signature).await;
    }
    if wanted.starts_with('[') || element.len() == 1 || wanted.len() == 1 {
        return Ok(false);
    }
    match vm.classes_by_signature(element).await?.first() {
        Some(element) => vm.is_subclass(element, wanted).await,
        None => Ok(wanted == "Ljava/lang/Object;"),
    }
}

async fn choose_most_specific(
    vm: &JavaVm,
    first: MethodCandidate,
    others: impl IntoIterator<Item = MethodCandidate>,
    count: usize,
) -> Result<MethodCandidate, JdwpError> {
    let mut best = first;
    for candidate in others {
        if is_more_specific(vm, &candidate, &best, count).await? {
            best = candidate;
        }
    }
    Ok(best)
}

/// Whether each parameter of one could be passed to the other, and not the other way round.
async fn is_more_specific(
    vm: &JavaVm,
    one: &MethodCandidate,
    other: &MethodCandidate,
    count: usize,
) -> Result<bool, JdwpError> {
    for index in 0..count {
        let (Some(of_one), Some(of_other)) = (one.parameter_at(index), other.parameter_at(index)) else {
            return Ok(false);
        };
        if of_one == of_other {
            continue;
        }
        let argument = match of_one.as_bytes() {
            [tag] => ArgumentType::Primitive(*tag),
            _ => match vm.classes_by_signature(of_one).await?.into_iter().next() {
                Some(class) => ArgumentType::Object(class),
                None => return Ok(false),
            },
        };
        if !is_assignable(vm, &argument, of_other, false).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted_vm::{id, open_scripted_vm, text};
    use crate::small_stack::run_on_small_stack;
    use tether_jdwp::values::{ReferenceTypeId, TYPE_ARRAY};

    /// The one loaded class is `A`, an `Object`.
    fn answer(set: u8, number: u8, data: &[u8]) -> Result<Vec<u8>, u16> {
        match (set, number) {
            (1, 2) if data == text("LA;") => Ok([vec![0, 0, 0, 1, 1], id(1), vec![0; 4]].concat()),
            (1, 2) => Ok(vec![0; 4]),
            (3, 1) => Ok(id(0)),
            (2, 10) => Ok(vec![0; 4]),
            _ => Err(99),
        }
    }

    #[test]
    fn arrays_of_any_depth_are_of_the_types_of_java() {
        run_on_small_stack(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (vm, _) = open_scripted_vm(answer).await;
                let (deep, deeper) = ("[".repeat(100_000), "[".repeat(100_001));
                let object = "Ljava/lang/Object;";
                for (number, (class, wanted, expect)) in [
                    ("[LA;".to_owned(), object.to_owned(), true),
                    ("[LA;".to_owned(), format!("[{object}"), true),
                    ("[LA;".to_owned(), "[LB;".to_owned(), false),
                    ("[[I".to_owned(), format!("[{object}"), true),
                    ("[I".to_owned(), format!("[{object}"), false),
                    ("[I".to_owned(), "[J".to_owned(), false),
                    ("[LA;".to_owned(), format!("[[{object}"), false),
                    ("[LA;".to_owned(), "Ljava/io/Serializable;".to_owned(), true),
                    (format!("{deep}LA;"), format!("{deep}{object}"), true),
                    (format!("{deeper}LA;"), format!("{deep}{object}"), true),
                    (format!("{deep}LA;"), format!("{deeper}{object}"), false),
                ]
                .into_iter()
                .enumerate()
                {
                    let of = vm.known_class(ReferenceTypeId(100 + number as u64), TYPE_ARRAY, class.clone());
                    let found = is_subtype(&vm, &of, &wanted).await.unwrap();
                    assert_eq!(found, expect, "row {number}");
                }
            });
        });
    }
}
