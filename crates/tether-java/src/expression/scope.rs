//! What names mean in a frame: variables, fields, classes; and how they are read and written.

use std::sync::Arc;

use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_jdwp::commands::class_types::SetStaticFields;
use tether_jdwp::commands::objects::{ArrayElements, FieldValues, SetArrayElements, SetFields};
use tether_jdwp::commands::reference_types::StaticFieldValues;
use tether_jdwp::commands::threads::{SetVariables, ThisObject, VariableValues};
use tether_jdwp::values::{JdwpValue, ObjectId, UntaggedValue};

use super::evaluator::Evaluator;
use super::operand::Operand;
use crate::blocking::run_blocking;
use crate::frames;
use crate::java_vm::{FoundField, JavaClass, STATIC};
use crate::signatures::{class_signature, package_path};
use crate::sources::{SourceHeader, read_header};
use crate::variables::{is_visible, slot_tag};

/// How many objects around an inner one are searched.
pub(crate) const MAX_OUTER: usize = 16;

/// A variable: what can be read and assigned.
#[derive(Clone)]
pub(crate) enum VariablePlace {
    Local {
        slot: i32,
        signature: String,
        /// Whether the source says more of its type: type arguments, or that it is a type parameter.
        is_generic: bool,
    },
    Instance {
        object: ObjectId,
        found: FoundField,
    },
    Static(FoundField),
    /// `element`: the signature of its type.
    Element {
        array: ObjectId,
        index: i32,
        element: String,
    },
}

impl VariablePlace {
    /// The signature of its type.
    pub(crate) fn signature(&self) -> &str {
        match self {
            VariablePlace::Local { signature, .. } => signature,
            VariablePlace::Instance { found, .. } | VariablePlace::Static(found) => &found.field.signature,
            VariablePlace::Element { element, .. } => element,
        }
    }

    /// The signature, if the source says no more than that: of a type parameter it would be its bound.
    fn declared(&self) -> Option<String> {
        match self {
            VariablePlace::Instance { found, .. } | VariablePlace::Static(found) if found.field.generic.is_empty() => {
                Some(found.field.signature.clone())
            }
            VariablePlace::Local { signature, is_generic, .. } if !is_generic || signature != "Ljava/lang/Object;" => {
                Some(signature.clone())
            }
            _ => None,
        }
    }
}

impl Evaluator<'_> {
    /// The variable or field of that name, as it is seen from the frame.
    pub(crate) async fn find_variable(&mut self, name: &str) -> Answer<Option<VariablePlace>> {
        let frame = self.frame().await?;
        let vm = &self.session.vm;
        if let Some(table) = frames::frame_variables(self.session, &frame).await? {
            let local = table.variables.iter().find(|it| it.name == name && is_visible(it, frame.location));
            if let Some(local) = local {
                let (slot, signature, is_generic) = (local.slot, local.signature.clone(), !local.generic.is_empty());
                return Ok(Some(VariablePlace::Local { slot, signature, is_generic }));
            }
        }
        let mut object = self.this_object().await?;
        let mut class = Arc::clone(&frame.class);
        for _ in 0..MAX_OUTER {
            for name in [name, &format!("val${name}")] {
                match (vm.find_field(&class, name).await?, object) {
                    (Some(found), _) if found.field.modifiers & STATIC != 0 => {
                        return Ok(Some(VariablePlace::Static(found)));
                    }
                    (Some(found), Some(object)) => return Ok(Some(VariablePlace::Instance { object, found })),
                    _ => {}
                }
            }
            let Some((outer, outer_class)) = self.outer_of(object, &class).await? else { break };
            (object, class) = (outer, outer_class);
        }
        Ok(None)
    }

    /// `this` of the frame.
    pub(crate) async fn this_object(&mut self) -> Answer<Option<ObjectId>> {
        let frame = self.frame().await?;
        if frame.method.modifiers & STATIC != 0 {
            return Ok(None);
        }
        let request = ThisObject { thread: self.spot.thread, frame: frame.id };
        let this = self.session.vm.request(&request).await?;
        Ok(Some(this.id).filter(|id| !id.is_null()))
    }

    /// The object and the class around an inner one; of a static nested class only the class.
    pub(crate) async fn outer_of(
        &self,
        object: Option<ObjectId>,
        class: &Arc<JavaClass>,
    ) -> Answer<Option<(Option<ObjectId>, Arc<JavaClass>)>> {
        let vm = &self.session.vm;
        if let Some(object) = object {
            let fields = vm.fields(class).await?;
            if let Some(outer) = fields.iter().find(|field| field.name.starts_with("this$")) {
                let values = vm.request(&FieldValues { object, fields: vec![outer.id] }).await?;
                if let Some(outer) = values.first().and_then(|value| value.as_object()) {
                    return Ok(Some((Some(outer.id), vm.class_of(outer.id).await?)));
                }
            }
        }
        let Some((outer, _)) = class.signature.rsplit_once('$') else { return Ok(None) };
        let found = vm.classes_by_signature(&format!("{outer};")).await?.into_iter().next();
        Ok(found.map(|class| (None, class)))
    }

    /// The value of a variable.
    pub(crate) async fn read_place(&mut self, place: &VariablePlace) -> Answer<Operand> {
        let vm = &self.session.vm;
        let value = match place {
            VariablePlace::Local { slot, signature, .. } => {
                let frame = self.frame().await?;
                let slots = vec![(*slot, slot_tag(signature))];
                let request = VariableValues { thread: self.spot.thread, frame: frame.id, slots };
                vm.request(&request).await?.first().copied()
            }
            VariablePlace::Instance { object, found } => {
                vm.request(&FieldValues { object: *object, fields: vec![found.field.id] }).await?.first().copied()
            }
            VariablePlace::Static(found) => {
                let request = StaticFieldValues { class: found.class.id, fields: vec![found.field.id] };
                vm.request(&request).await?.first().copied()
            }
            VariablePlace::Element { array, index, .. } => {
                vm.request(&ArrayElements { array: *array, first: *index, count: 1 }).await?.0.first().copied()
            }
        };
        let value = value.ok_or("the virtual machine sent no value")?;
        Ok(Operand::Value { value, declared: place.declared() })
    }

    /// Assigns a value, which is of the variable's type already.
    pub(crate) async fn write_place(&mut self, place: &VariablePlace, value: JdwpValue) -> Answer<()> {
        if !self.runs_code {
            return Err("this would change the program".into());
        }
        let vm = &self.session.vm;
        let untagged = UntaggedValue(value);
        match place {
            VariablePlace::Local { slot, .. } => {
                let frame = self.frame().await?;
                let slots = vec![(*slot, value)];
                let set = vm.request(&SetVariables { thread: self.spot.thread, frame: frame.id, slots }).await;
                if let Err(error) = set {
                    return Err(frames::explain_refusal(self.session, self.spot, error).await);
                }
            }
            VariablePlace::Instance { object, found } => {
                vm.request(&SetFields { object: *object, values: vec![(found.field.id, untagged)] }).await?;
            }
            VariablePlace::Static(found) => {
                let values = vec![(found.field.id, untagged)];
                vm.request(&SetStaticFields { class: found.class.id, values }).await?;
            }
            VariablePlace::Element { array, index, .. } => {
                vm.request(&SetArrayElements { array: *array, first: *index, values: vec![untagged] }).await?;
            }
        }
        Ok(())
    }

    /// The class of that name, as it is seen from the frame; loaded if it is not yet, and code may run.
    pub(crate) async fn find_class(&mut self, name: &str) -> Answer<Option<Arc<JavaClass>>> {
        let candidates = self.class_candidates(name).await?;
        for candidate in &candidates {
            if let Some(class) = self.session.vm.classes_by_signature(candidate).await?.into_iter().next() {
                return Ok(Some(class));
            }
        }
        if !self.runs_code {
            return Ok(None);
        }
        // Only what looks like a class is searched for: the failure of each runs code of the program.
        let last = name.trim_end_matches("[]").rsplit('.').next().unwrap_or_default();
        if !last.starts_with(char::is_uppercase) && !name.ends_with("[]") {
            return Ok(None);
        }
        for candidate in &candidates {
            if let Some(class) = self.load_class(candidate).await? {
                return Ok(Some(class));
            }
        }
        Ok(None)
    }

    /// As [`Evaluator::find_class`]. Errors: there is none.
    pub(crate) async fn require_class(&mut self, name: &str) -> Answer<Arc<JavaClass>> {
        self.find_class(name).await?.ok_or_else(|| RequestFailure(format!("there is no class {name}")))
    }

    /// The signatures that a name may stand for, the nearest first (JLS 6.5.5).
    async fn class_candidates(&mut self, name: &str) -> Answer<Vec<String>> {
        let element = name.trim_end_matches("[]");
        let dimensions = name.strip_prefix(element).unwrap_or_default();
        let mut names: Vec<String> = Vec::new();
        if crate::signatures::PRIMITIVES.iter().any(|(_, primitive)| *primitive == element) {
            return Ok(vec![class_signature(name)]);
        }
        let frame = self.frame().await?;
        let (first, rest) = element.split_once('.').map_or((element, ""), |(first, rest)| (first, rest));
        let nested = if rest.is_empty() { String::new() } else { format!("${}", rest.replace('.', "$")) };
        for class in self.session.vm.superclasses(&frame.class).await? {
            let mut around = class.name();
            loop {
                names.push(format!("{around}${first}{nested}"));
                // The class itself, or one around it.
                if around.rsplit(['.', '$']).next() == Some(first) {
                    names.push(format!("{around}{nested}"));
                }
                let Some((outer, _)) = around.rsplit_once('$') else { break };
                around = outer.to_owned();
            }
        }
        let header = self.source_header(&frame.class).await?;
        let ends_with_first = |import: &&String| import.rsplit('.').next() == Some(first);
        names.extend(header.imports.iter().filter(ends_with_first).map(|import| format!("{import}{nested}")));
        let package = package_path(&frame.class.signature).replace('/', ".");
        let on_demand = header.imports.iter().filter_map(|import| import.strip_suffix(".*"));
        for package in [package.as_str()].into_iter().chain(on_demand).chain(["java.lang"]) {
            let dot = if package.is_empty() { "" } else { "." };
            names.push(format!("{package}{dot}{first}{nested}"));
        }
        // A whole name, in which the last parts may be nested classes.
        let mut whole = element.to_owned();
        while whole.contains('.') {
            names.push(whole.clone());
            let Some((before, last)) = whole.rsplit_once('.') else { break };
            whole = format!("{before}${last}");
        }
        Ok(names.into_iter().map(|name| class_signature(&(name + dimensions))).collect())
    }

    async fn source_header(&self, class: &JavaClass) -> Answer<SourceHeader> {
        let Some(name) = self.session.vm.source_file(class).await? else { return Ok(SourceHeader::default()) };
        let Some(path) = self.session.sources.find_files(&class.signature, &name).await.first().cloned() else {
            return Ok(SourceHeader::default());
        };
        run_blocking(move || read_header(&path)).await
    }
}
