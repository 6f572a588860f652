//! Calls of methods and constructors: they run code of the program in the thread of the frame.

use std::sync::Arc;

use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_jdwp::JdwpCommand;
use tether_jdwp::commands::class_types::{
    INVOKE_SINGLE_THREADED, InvokeResult, InvokeStatic, InvokeStaticOfInterface, NewArray, NewInstance,
};
use tether_jdwp::commands::objects::{InvokeMethod, SetArrayElements};
use tether_jdwp::commands::reference_types::{ClassLoaderOf, ReflectedType};
use tether_jdwp::values::{JdwpValue, ObjectId, TYPE_INTERFACE, TaggedObject, UntaggedValue};

use super::conversion;
use super::evaluator::Evaluator;
use super::operand::Operand;
use super::overloads::{ArgumentType, MethodCandidate, choose_overload, find_candidates};
use crate::java_vm::JavaClass;
use crate::signatures::{method_types, short_type_name, type_name};
use crate::thread_control;

/// What a method is called on.
#[derive(Clone)]
pub(crate) enum CallReceiver {
    Object(ObjectId),
    Class,
}

impl Evaluator<'_> {
    /// Calls the method that the arguments mean.
    pub(crate) async fn call_method(
        &mut self,
        receiver: CallReceiver,
        class: &Arc<JavaClass>,
        name: &str,
        arguments: Vec<Operand>,
    ) -> Answer<Operand> {
        let vm = &self.session.vm;
        let mut candidates = find_candidates(vm, class, name).await?;
        if matches!(receiver, CallReceiver::Class) {
            if candidates.iter().any(|it| !it.is_static()) && !candidates.iter().any(MethodCandidate::is_static) {
                return Err(format!("{name} is not a static method of {}", class.name()).into());
            }
            candidates.retain(MethodCandidate::is_static);
        }
        let types = self.argument_types(&arguments).await?;
        let chosen = choose_overload(vm, name, candidates, &types).await??;
        let arguments = self.convert_arguments(&chosen, arguments).await?;
        let (class, thread, method) = (chosen.class.id, self.spot.thread, chosen.method.id);
        let options = INVOKE_SINGLE_THREADED;
        let result: InvokeResult = match receiver {
            _ if chosen.is_static() && chosen.class.type_tag == TYPE_INTERFACE => {
                self.invoke(&InvokeStaticOfInterface { class, thread, method, arguments, options }).await?
            }
            CallReceiver::Object(object) if !chosen.is_static() => {
                self.invoke(&InvokeMethod { object, thread, class, method, arguments, options }).await?
            }
            _ => self.invoke(&InvokeStatic { class, thread, method, arguments, options }).await?,
        };
        self.check_exception(result.exception).await?;
        self.keep(result.value).await?;
        let returned = method_types(&chosen.method.signature).1;
        let declared = chosen.method.generic.is_empty() && returned != "Ljava/lang/Object;";
        Ok(Operand::Value { value: result.value, declared: declared.then(|| returned.to_owned()) })
    }

    /// Creates an object by the constructor that the arguments mean.
    pub(crate) async fn create_object(
        &mut self,
        class: &Arc<JavaClass>,
        mut arguments: Vec<Operand>,
    ) -> Answer<Operand> {
        let vm = &self.session.vm;
        let candidates = find_candidates(vm, class, "<init>").await?;
        let types = self.argument_types(&arguments).await?;
        let name = class.short_name();
        let mut chosen = choose_overload(vm, &name, candidates.clone(), &types).await?;
        if chosen.is_err()
            && class.signature.contains('$')
            && let Some(this) = self.this_object().await?
        {
            // An inner class: its first argument is the object around it.
            arguments.insert(0, Operand::of(JdwpValue::Object(TaggedObject { tag: b'L', id: this })));
            let types = self.argument_types(&arguments).await?;
            chosen = choose_overload(vm, &name, candidates, &types).await?;
        }
        let chosen = chosen?;
        let arguments = self.convert_arguments(&chosen, arguments).await?;
        let (class_id, thread, method) = (class.id, self.spot.thread, chosen.method.id);
        let options = INVOKE_SINGLE_THREADED;
        let created = self.invoke(&NewInstance { class: class_id, thread, method, arguments, options }).await?;
        self.check_exception(created.exception).await?;
        let value = JdwpValue::Object(created.object);
        self.keep(value).await?;
        Ok(Operand::declared(value, &class.signature))
    }

    /// Runs code of the program. The events of its thread stop nothing meanwhile.
    pub(crate) async fn invoke<C: JdwpCommand>(&mut self, command: &C) -> Answer<C::Reply> {
        if !self.runs_code {
            return Err("this would run code of the program".into());
        }
        // The ids of its frames change.
        self.forget_frame();
        thread_control::run_call(self.session, self.spot.thread, self.halt, command).await
    }

    /// Errors: the call has thrown.
    pub(crate) async fn check_exception(&mut self, exception: TaggedObject) -> Answer<()> {
        if exception.id.is_null() {
            return Ok(());
        }
        let class = self.session.vm.class_of(exception.id).await?.name();
        let message = self.session.vm.exception_message(exception.id).await?;
        Err(RequestFailure(message.map_or(class.clone(), |message| format!("{class}: {message}"))))
    }

    /// The types of arguments: as declared, else of the objects themselves.
    async fn argument_types(&mut self, arguments: &[Operand]) -> Answer<Vec<ArgumentType>> {
        let mut types = Vec::new();
        for argument in arguments {
            types.push(self.argument_type(argument).await?);
        }
        Ok(types)
    }

    async fn argument_type(&mut self, argument: &Operand) -> Answer<ArgumentType> {
        let vm = &self.session.vm;
        let (value, declared) = match argument {
            Operand::Text(_) => (None, Some("Ljava/lang/String;")),
            Operand::Value { value, declared } => (Some(*value), declared.as_deref()),
        };
        match value {
            Some(JdwpValue::Object(object)) => {
                if let Some(declared) = declared
                    && let Some(class) = vm.classes_by_signature(declared).await?.into_iter().next()
                {
                    return Ok(ArgumentType::Object(class));
                }
                match object.id.is_null() {
                    true => Ok(ArgumentType::Null),
                    false => Ok(ArgumentType::Object(vm.class_of(object.id).await?)),
                }
            }
            Some(JdwpValue::Void) => Err("a method that returns nothing has no value".into()),
            Some(primitive) => Ok(ArgumentType::Primitive(primitive.tag())),
            None => {
                let string = vm.classes_by_signature("Ljava/lang/String;").await?.into_iter().next();
                Ok(string.map_or(ArgumentType::Null, ArgumentType::Object))
            }
        }
    }

    async fn convert_arguments(&mut self, chosen: &MethodCandidate, arguments: Vec<Operand>) -> Answer<Vec<JdwpValue>> {
        let mut converted = Vec::new();
        for (index, argument) in arguments.into_iter().enumerate() {
            let parameter = chosen.parameter_at(index).ok_or("there are too many arguments")?.to_owned();
            converted.push(conversion::convert_for_assignment(self, argument, &parameter).await?);
        }
        if chosen.spreads {
            let parameters = chosen.parameters();
            let (array, before) = parameters.split_last().ok_or("the method has no parameters")?;
            let elements = converted.split_off(before.len().min(converted.len()));
            let class = self.require_array_class(array).await?;
            converted.push(self.create_array(&class, &elements).await?);
        }
        Ok(converted)
    }

    /// Creates an array with these elements.
    pub(crate) async fn create_array(&mut self, class: &Arc<JavaClass>, elements: &[JdwpValue]) -> Answer<JdwpValue> {
        let length = i32::try_from(elements.len()).unwrap_or(i32::MAX);
        let array = self.session.vm.request(&NewArray { array_type: class.id, length }).await?;
        self.keep(JdwpValue::Object(array)).await?;
        if !elements.is_empty() {
            let values = elements.iter().copied().map(UntaggedValue).collect();
            self.session.vm.request(&SetArrayElements { array: array.id, first: 0, values }).await?;
        }
        Ok(JdwpValue::Object(array))
    }

    /// The class of an array by its signature, loaded if it is not yet.
    pub(crate) async fn require_array_class(&mut self, signature: &str) -> Answer<Arc<JavaClass>> {
        if let Some(class) = self.session.vm.classes_by_signature(signature).await?.into_iter().next() {
            return Ok(class);
        }
        let loaded = self.load_class(signature).await?;
        loaded.ok_or_else(|| RequestFailure(format!("there is no class {}", short_type_name(signature))))
    }

    /// Loads a class by `Class.forName`, as the code of the frame would. `None`: there is none.
    pub(crate) async fn load_class(&mut self, signature: &str) -> Answer<Option<Arc<JavaClass>>> {
        let vm = &self.session.vm;
        let of_class = vm.classes_by_signature("Ljava/lang/Class;").await?.into_iter().next();
        let of_class = of_class.ok_or("the virtual machine has no java.lang.Class")?;
        let for_name = "(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;";
        let methods = vm.methods(&of_class).await?;
        let method = methods.iter().find(|it| it.name == "forName" && it.signature == for_name).map(|it| it.id);
        let method = method.ok_or("java.lang.Class has no forName")?;
        let frame = self.frame().await?;
        let loader = vm.request(&ClassLoaderOf { class: frame.class.id }).await?;
        let name = if signature.starts_with('[') { signature.replace('/', ".") } else { type_name(signature) };
        let name = conversion::create_string(self, &name).await?;
        let loader = JdwpValue::Object(TaggedObject { tag: b'l', id: loader });
        let arguments = vec![name, JdwpValue::Boolean(true), loader];
        let (class, thread, options) = (of_class.id, self.spot.thread, INVOKE_SINGLE_THREADED);
        let result = self.invoke(&InvokeStatic { class, thread, method, arguments, options }).await?;
        let Some(found) = result.value.as_object().filter(|_| result.exception.id.is_null()) else { return Ok(None) };
        let (tag, class) = vm.request(&ReflectedType { class_object: found.id }).await?;
        Ok(Some(vm.class(class, tag).await?))
    }
}
