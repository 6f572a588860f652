//! A virtual machine: its connection, and what is known of its classes.
//!
//! What a class has (fields, methods, lines) is read once and kept: a loaded class does not change unless it is redefined.
//! The agent of a virtual machine ends the program when it is asked for the tables of a method that is not there any more:
//! they are requested in one place, which refuses ids that a redefinition has ended. Does not depend on DAP.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::try_join_all;
use tether_base::sync::lock;
use tether_jdwp::commands::class_types::Superclass;
use tether_jdwp::commands::objects::TypeOfObject;
use tether_jdwp::commands::reference_types::{
    Bytecodes, ConstantPoolOf, DeclaredField, DeclaredMethod, FieldsWithGeneric, Interfaces, IsObsolete, LineEntry,
    LineTable, MethodVariables, MethodsWithGeneric, PoolBytes, Signature, SourceFile, VariableTableWithGeneric,
};
use tether_jdwp::commands::threads::IsVirtual;
use tether_jdwp::commands::virtual_machine::{CapabilitiesNew, ClassesBySignature, Version, VmCapabilities, VmVersion};
use tether_jdwp::values::{MethodId, ObjectId, ReferenceTypeId, TYPE_CLASS, TYPE_INTERFACE, TypeTag};
use tether_jdwp::{EventKind, JdwpClient, JdwpCommand, JdwpError, JdwpErrorCode, SetEventRequest, SuspendPolicy};
use tokio::sync::OnceCell;

use super::signatures::{short_type_name, type_name};

/// Modifier of fields and methods: `static` (JVMS 4.5).
pub(crate) const STATIC: i32 = 0x0008;
/// Modifier of methods: made by the compiler to call another one (JVMS 4.6, `ACC_BRIDGE`).
pub(crate) const BRIDGE: i32 = 0x0040;
/// Modifier of methods: takes any number of last arguments (`ACC_VARARGS`).
pub(crate) const VARARGS: i32 = 0x0080;
/// Modifier of fields and methods: made by the compiler (JDWP 1.5 reports it in the high bits).
pub(crate) const SYNTHETIC: i32 = 0xf000_0000u32 as i32 | 0x1000;

/// The first version with virtual threads.
pub(crate) const VIRTUAL_THREADS: i32 = 21;

/// How many superclasses and interfaces of a class are followed.
const MAX_ANCESTORS: usize = 256;

/// A virtual machine; shared by everything that a session does.
pub(crate) struct JavaVm {
    pub client: JdwpClient,
    pub capabilities: VmCapabilities,
    pub version: VmVersion,
    classes: Mutex<HashMap<ReferenceTypeId, Arc<JavaClass>>>,
    redefined: Mutex<RedefinedClasses>,
}

/// What is known of classes that were redefined.
#[derive(Default)]
struct RedefinedClasses {
    ids: HashSet<ReferenceTypeId>,
    /// The methods that the virtual machine has called obsolete.
    obsolete: HashSet<(ReferenceTypeId, MethodId)>,
}

/// What is known of a class. Everything but its name is read when it is needed.
pub(crate) struct JavaClass {
    pub id: ReferenceTypeId,
    pub type_tag: TypeTag,
    /// `Lcom/example/App;`
    pub signature: String,
    superclass: OnceCell<Option<ReferenceTypeId>>,
    interfaces: OnceCell<Vec<ReferenceTypeId>>,
    fields: OnceCell<Vec<DeclaredField>>,
    methods: OnceCell<Vec<DeclaredMethod>>,
    source_file: OnceCell<Option<String>>,
    lines: Mutex<HashMap<MethodId, Arc<Vec<LineEntry>>>>,
    variables: Mutex<HashMap<MethodId, Arc<MethodVariables>>>,
    /// It has been redefined since this was read: its methods have ended.
    has_ended: AtomicBool,
}

impl JavaClass {
    /// `com.example.App`
    pub(crate) fn name(&self) -> String {
        type_name(&self.signature)
    }

    /// `App`
    pub(crate) fn short_name(&self) -> String {
        short_type_name(&self.signature)
    }
}

/// A field of a class or of one of its ancestors.
#[derive(Clone)]
pub(crate) struct FoundField {
    /// The class that declares it.
    pub class: Arc<JavaClass>,
    pub field: DeclaredField,
}

impl JavaVm {
    /// Asks a virtual machine what it can do.
    pub(crate) async fn open(client: JdwpClient) -> Result<JavaVm, JdwpError> {
        let (kind, policy) = (EventKind::ClassUnload, SuspendPolicy::None);
        let unloads = SetEventRequest { kind, policy, modifiers: Vec::new() };
        let (capabilities, version, unloads) =
            tokio::join!(client.request(&CapabilitiesNew {}), client.request(&Version {}), client.request(&unloads));
        // A virtual machine that does not report unloads keeps what is known of its classes.
        if let Err(error) = unloads.map(drop)
            && error.is_closed()
        {
            return Err(error);
        }
        let (capabilities, version) = (capabilities?, version?);
        Ok(JavaVm { client, capabilities, version, classes: Mutex::default(), redefined: Mutex::default() })
    }

    /// Whether a thread is a virtual one.
    pub(crate) async fn is_virtual(&self, thread: ObjectId) -> bool {
        self.version.jdwp_major >= VIRTUAL_THREADS && self.request(&IsVirtual { thread }).await.unwrap_or(false)
    }

    /// Sends a command and waits for its reply.
    pub(crate) async fn request<C: JdwpCommand>(&self, command: &C) -> Result<C::Reply, JdwpError> {
        self.client.request(command).await
    }

    /// The class, with its name.
    pub(crate) async fn class(&self, id: ReferenceTypeId, type_tag: TypeTag) -> Result<Arc<JavaClass>, JdwpError> {
        let known = lock(&self.classes).get(&id).cloned();
        match known {
            Some(class) => Ok(class),
            None => Ok(self.known_class(id, type_tag, self.request(&Signature { class: id }).await?)),
        }
    }

    /// The class, whose name is known already.
    pub(crate) fn known_class(&self, id: ReferenceTypeId, type_tag: TypeTag, signature: String) -> Arc<JavaClass> {
        let mut classes = lock(&self.classes);
        let class = classes.entry(id).or_insert_with(|| {
            Arc::new(JavaClass {
                id,
                type_tag,
                signature,
                superclass: OnceCell::new(),
                interfaces: OnceCell::new(),
                fields: OnceCell::new(),
                methods: OnceCell::new(),
                source_file: OnceCell::new(),
                lines: Mutex::default(),
                variables: Mutex::default(),
                has_ended: AtomicBool::new(false),
            })
        });
        Arc::clone(class)
    }

    /// Classes are being redefined: the ids of their methods end, and what is known of them is read anew.
    pub(crate) fn forget_redefined(&self, ids: &[ReferenceTypeId]) {
        lock(&self.redefined).ids.extend(ids);
        let mut classes = lock(&self.classes);
        for class in ids.iter().filter_map(|id| classes.remove(id)) {
            class.has_ended.store(true, Ordering::Release);
        }
    }

    /// Whether a class has been redefined in this session, or was about to be.
    pub(crate) fn was_redefined(&self, class: ReferenceTypeId) -> bool {
        lock(&self.redefined).ids.contains(&class)
    }

    /// A class of that signature has been unloaded.
    pub(crate) fn forget_unloaded(&self, signature: &str) {
        lock(&self.classes).retain(|_, class| class.signature != signature);
    }

    /// The loaded classes with that signature; each class loader may have one.
    pub(crate) async fn classes_by_signature(&self, signature: &str) -> Result<Vec<Arc<JavaClass>>, JdwpError> {
        let found = self.request(&ClassesBySignature { signature: signature.to_owned() }).await?;
        Ok(found.into_iter().map(|it| self.known_class(it.class, it.type_tag, signature.to_owned())).collect())
    }

    /// The class of an object.
    pub(crate) async fn class_of(&self, object: ObjectId) -> Result<Arc<JavaClass>, JdwpError> {
        let (tag, class) = self.request(&TypeOfObject { object }).await?;
        self.class(class, tag).await
    }

    /// The superclass; `None` for `Object`, interfaces and arrays.
    pub(crate) async fn superclass(&self, class: &JavaClass) -> Result<Option<Arc<JavaClass>>, JdwpError> {
        let read = || async {
            if class.type_tag != TYPE_CLASS {
                return Ok(None);
            }
            let found = self.request(&Superclass { class: class.id }).await?;
            Ok::<_, JdwpError>(Some(found).filter(|id| id.0 != 0))
        };
        match class.superclass.get_or_try_init(read).await? {
            Some(id) => Ok(Some(self.class(*id, TYPE_CLASS).await?)),
            None => Ok(None),
        }
    }

    /// The class and its superclasses, the class itself first.
    pub(crate) async fn superclasses(&self, class: &Arc<JavaClass>) -> Result<Vec<Arc<JavaClass>>, JdwpError> {
        let (mut found, mut newest) = (vec![Arc::clone(class)], Arc::clone(class));
        while let Some(next) = self.superclass(&newest).await? {
            if found.len() == MAX_ANCESTORS {
                break;
            }
            found.push(Arc::clone(&next));
            newest = next;
        }
        Ok(found)
    }

    /// The class, its superclasses, then all interfaces of them, each once.
    pub(crate) async fn ancestors(&self, class: &Arc<JavaClass>) -> Result<Vec<Arc<JavaClass>>, JdwpError> {
        let mut found = self.superclasses(class).await?;
        let mut at = 0usize;
        while let Some(of) = found.get(at).filter(|_| found.len() < MAX_ANCESTORS).cloned() {
            for id in self.interfaces(&of).await? {
                if found.len() < MAX_ANCESTORS && !found.iter().any(|known| known.id == id) {
                    found.push(self.class(id, TYPE_INTERFACE).await?);
                }
            }
            at = at.saturating_add(1);
        }
        Ok(found)
    }

    async fn interfaces(&self, class: &JavaClass) -> Result<Vec<ReferenceTypeId>, JdwpError> {
        let read = || async {
            match class.signature.starts_with('[') {
                true => Ok(Vec::new()),
                false => self.request(&Interfaces { class: class.id }).await,
            }
        };
        class.interfaces.get_or_try_init(read).await.cloned()
    }

    /// Whether a class is of that signature, or inherits from or implements such a class.
    pub(crate) async fn is_subclass(&self, class: &Arc<JavaClass>, signature: &str) -> Result<bool, JdwpError> {
        if signature == "Ljava/lang/Object;" {
            return Ok(true);
        }
        Ok(self.ancestors(class).await?.iter().any(|it| it.signature == signature))
    }

    /// The fields that a class itself declares.
    pub(crate) async fn fields<'a>(&self, class: &'a JavaClass) -> Result<&'a [DeclaredField], JdwpError> {
        let read = || async {
            match class.signature.starts_with('[') {
                true => Ok(Vec::new()),
                false => self.request(&FieldsWithGeneric { class: class.id }).await,
            }
        };
        Ok(class.fields.get_or_try_init(read).await?)
    }

    /// The fields of a class and its superclasses, those of the class itself first.
    pub(crate) async fn all_fields(&self, class: &Arc<JavaClass>) -> Result<Vec<FoundField>, JdwpError> {
        let mut found = Vec::new();
        for class in self.superclasses(class).await? {
            let fields = self.fields(&class).await?;
            found.extend(fields.iter().map(|field| FoundField { class: Arc::clone(&class), field: field.clone() }));
        }
        Ok(found)
    }

    /// The nearest field of that name: of the class, its superclasses, its interfaces.
    pub(crate) async fn find_field(&self, class: &Arc<JavaClass>, name: &str) -> Result<Option<FoundField>, JdwpError> {
        for class in self.ancestors(class).await? {
            if let Some(field) = self.fields(&class).await?.iter().find(|field| field.name == name).cloned() {
                return Ok(Some(FoundField { class, field }));
            }
        }
        Ok(None)
    }

    /// The methods that a class itself declares.
    pub(crate) async fn methods<'a>(&self, class: &'a JavaClass) -> Result<&'a [DeclaredMethod], JdwpError> {
        let read = || async {
            match class.signature.starts_with('[') {
                true => Ok(Vec::new()),
                false => self.request(&MethodsWithGeneric { class: class.id }).await,
            }
        };
        Ok(class.methods.get_or_try_init(read).await?)
    }

    /// A method by its id.
    pub(crate) async fn method(&self, class: &JavaClass, id: MethodId) -> Result<Option<DeclaredMethod>, JdwpError> {
        Ok(self.methods(class).await?.iter().find(|method| method.id == id).cloned())
    }

    /// The name of the class's source file; `None` where the class does not say.
    pub(crate) async fn source_file(&self, class: &JavaClass) -> Result<Option<String>, JdwpError> {
        let read = || async { without_absent(self.request(&SourceFile { class: class.id }).await) };
        class.source_file.get_or_try_init(read).await.cloned()
    }

    /// A table of a method: the only way in which one is requested. `None`: its class lacks it, the method is native, or it
    /// is not of the class as it is now.
    async fn method_table<C: JdwpCommand>(
        &self,
        class: &JavaClass,
        method: MethodId,
        request: &C,
    ) -> Result<Option<C::Reply>, JdwpError> {
        if !self.is_current(class, method).await? {
            return Ok(None);
        }
        without_absent(self.request(request).await)
    }

    /// Whether a method is one of its class as it is now.
    pub(crate) async fn is_current(&self, class: &JavaClass, method: MethodId) -> Result<bool, JdwpError> {
        if method.0 == 0 || !self.methods(class).await?.iter().any(|it| it.id == method) {
            return Ok(false);
        }
        let key = (class.id, method);
        let (is_redefined, is_obsolete) = {
            let redefined = lock(&self.redefined);
            (redefined.ids.contains(&class.id), redefined.obsolete.contains(&key))
        };
        if is_redefined && !is_obsolete && self.request(&IsObsolete { class: class.id, method }).await? {
            lock(&self.redefined).obsolete.insert(key);
            return Ok(false);
        }
        Ok(!is_obsolete && !class.has_ended.load(Ordering::Acquire))
    }

    /// The lines of a method, in the order of its code; empty where there are none.
    pub(crate) async fn lines(&self, class: &JavaClass, method: MethodId) -> Result<Arc<Vec<LineEntry>>, JdwpError> {
        if let Some(lines) = lock(&class.lines).get(&method) {
            return Ok(Arc::clone(lines));
        }
        let read = self.method_table(class, method, &LineTable { class: class.id, method }).await?;
        let mut lines = read.map(|read| read.lines).unwrap_or_default();
        lines.sort_by_key(|entry| entry.index);
        let lines = Arc::new(lines);
        lock(&class.lines).insert(method, Arc::clone(&lines));
        Ok(lines)
    }

    /// The line of an instruction; 0 where it is not known.
    pub(crate) async fn line_at(&self, class: &JavaClass, method: MethodId, index: u64) -> Result<i32, JdwpError> {
        Ok(line_of(&self.lines(class, method).await?, index))
    }

    /// The lines of all methods of a class.
    pub(crate) async fn all_lines(&self, class: &JavaClass) -> Result<Vec<(MethodId, Arc<Vec<LineEntry>>)>, JdwpError> {
        let methods: Vec<MethodId> = self.methods(class).await?.iter().map(|method| method.id).collect();
        let read = methods.into_iter().map(|method| async move { Ok((method, self.lines(class, method).await?)) });
        try_join_all(read).await
    }

    /// The instructions of a method, and the constants that they refer to; `None` where the virtual machine does not give them.
    pub(crate) async fn code(
        &self,
        class: &JavaClass,
        method: MethodId,
    ) -> Result<Option<(Vec<u8>, PoolBytes)>, JdwpError> {
        if !(self.capabilities.get_bytecodes && self.capabilities.get_constant_pool) {
            return Ok(None);
        }
        let request = Bytecodes { class: class.id, method };
        let Some(code) = self.method_table(class, method, &request).await? else { return Ok(None) };
        Ok(Some((code, self.request(&ConstantPoolOf { class: class.id }).await?)))
    }

    /// The variables of a method; `None` where the class was compiled without them.
    pub(crate) async fn variables(
        &self,
        class: &JavaClass,
        method: MethodId,
    ) -> Result<Option<Arc<MethodVariables>>, JdwpError> {
        if let Some(variables) = lock(&class.variables).get(&method) {
            return Ok(Some(Arc::clone(variables)));
        }
        let request = VariableTableWithGeneric { class: class.id, method };
        let Some(read) = self.method_table(class, method, &request).await? else { return Ok(None) };
        let variables = Arc::new(read);
        lock(&class.variables).insert(method, Arc::clone(&variables));
        Ok(Some(variables))
    }
}

/// The line of an instruction, by the lines of its method; 0 where it is not known.
pub(crate) fn line_of(lines: &[LineEntry], index: u64) -> i32 {
    lines.iter().take_while(|entry| entry.index <= index).last().map_or(0, |entry| entry.line)
}

/// `None` where a class lacks the information, or the method is native.
fn without_absent<T>(reply: Result<T, JdwpError>) -> Result<Option<T>, JdwpError> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(error)
            if error.has_code(JdwpErrorCode::ABSENT_INFORMATION) || error.has_code(JdwpErrorCode::NATIVE_METHOD) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted_vm::{id, open_scripted_vm, text};
    use tether_jdwp::values::ReferenceTypeId;

    const CLASS: ReferenceTypeId = ReferenceTypeId(1);
    const METHOD: MethodId = MethodId(7);
    const METHODS: (u8, u8) = (2, 15);
    const LINES: (u8, u8) = (6, 1);
    const OBSOLETE: (u8, u8) = (6, 4);
    const VARIABLES: (u8, u8) = (6, 5);

    fn methods(ids: &[u64]) -> Vec<u8> {
        let one = |number: &u64| [id(*number), text("f"), text("()V"), text(""), vec![0; 4]].concat();
        [(ids.len() as u32).to_be_bytes().to_vec(), ids.iter().flat_map(one).collect()].concat()
    }

    /// A class with one method, which has line 5.
    fn answer(set: u8, number: u8, data: &[u8]) -> Result<Vec<u8>, u16> {
        assert!(set != 6 || data[8..16] == METHOD.0.to_be_bytes(), "the agent would end the program: {data:?}");
        match (set, number) {
            METHODS => Ok(methods(&[METHOD.0])),
            LINES => Ok([vec![0; 16], 1u32.to_be_bytes().to_vec(), vec![0; 8], vec![0, 0, 0, 5]].concat()),
            VARIABLES => Ok(vec![0; 8]),
            OBSOLETE => Ok(vec![0]),
            _ => Err(99),
        }
    }

    #[tokio::test]
    async fn only_the_tables_of_methods_that_a_class_has_are_requested() {
        let (vm, asked) = open_scripted_vm(answer).await;
        let class = vm.known_class(CLASS, TYPE_CLASS, "LA;".to_owned());
        assert_eq!(vm.line_at(&class, METHOD, 0).await, Ok(5));
        for ended in [0, 8, u64::MAX] {
            assert_eq!(vm.line_at(&class, MethodId(ended), 0).await, Ok(0));
            assert!(vm.variables(&class, MethodId(ended)).await.unwrap().is_none());
            assert!(!vm.is_current(&class, MethodId(ended)).await.unwrap());
        }
        let tables = lock(&asked).iter().filter(|it| it.0 == 6).count();
        assert_eq!(tables, 1, "the lines of the one method, once");
    }

    #[tokio::test]
    async fn a_redefinition_ends_what_was_known_of_a_class() {
        let (vm, asked) = open_scripted_vm(answer).await;
        let before = vm.known_class(CLASS, TYPE_CLASS, "LA;".to_owned());
        vm.methods(&before).await.unwrap();
        vm.forget_redefined(&[CLASS]);
        // Who holds the class of before gets no table of its methods.
        assert!(vm.variables(&before, METHOD).await.unwrap().is_none());
        assert!(lock(&asked).iter().all(|it| (it.0, it.1) != VARIABLES));
        let after = vm.known_class(CLASS, TYPE_CLASS, "LA;".to_owned());
        assert!(!Arc::ptr_eq(&before, &after));
        assert_eq!(vm.line_at(&after, METHOD, 0).await, Ok(5), "the virtual machine says that it is not obsolete");
        assert!(vm.was_redefined(CLASS) && !vm.was_redefined(ReferenceTypeId(2)));
    }

    #[tokio::test]
    async fn an_obsolete_method_is_remembered_and_an_unloaded_class_forgotten() {
        let obsolete = |set: u8, number: u8, data: &[u8]| match (set, number) {
            OBSOLETE => Ok(vec![1]),
            _ => answer(set, number, data),
        };
        let (vm, asked) = open_scripted_vm(obsolete).await;
        vm.forget_redefined(&[CLASS]);
        let class = vm.known_class(CLASS, TYPE_CLASS, "LA;".to_owned());
        for _ in 0..2 {
            assert!(!vm.is_current(&class, METHOD).await.unwrap());
            assert!(vm.variables(&class, METHOD).await.unwrap().is_none());
        }
        assert_eq!(lock(&asked).iter().filter(|it| it.0 == 6).count(), 1, "asked once");
        vm.forget_unloaded("LB;");
        assert!(Arc::ptr_eq(&class, &vm.known_class(CLASS, TYPE_CLASS, "LA;".to_owned())));
        vm.forget_unloaded("LA;");
        assert!(!Arc::ptr_eq(&class, &vm.known_class(CLASS, TYPE_CLASS, "LA;".to_owned())));
    }
}
