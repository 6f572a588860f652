//! Hot swap: the classes whose files have changed are redefined in the running virtual machine.
//!
//! ```text
//! sources ─▶ compiled as at the launch ─┐
//! class files of a build ───────────────┴▶ those of loaded classes that have changed ─▶ RedefineClasses (all or none)
//!   ─▶ what was known of them is read anew, breakpoints are bound anew, `loadedSource` for their sources
//! ```
//! A frame of the old code runs on to its end; the next call runs the new one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::class_file::read_class_file;
use super::compiled_source::{RunnableClass, output_folders, prepare_source};
use super::java_vm::JavaClass;
use super::launch_arguments::JavaProgramKind;
use super::session::JavaSession;
use super::signatures::{class_path, is_jdk_class};
use crate::adapters::request_failure::RequestFailure;
use crate::dap::types::{DapSource, LoadedSourceEvent, RedefineClassesResponse};
use crate::jdwp::JdwpError;
use crate::jdwp::commands::virtual_machine::{AllClassesWithGeneric, ClassPaths, NamedClass, RedefineClasses};
use crate::jdwp::values::{ReferenceTypeId, TYPE_ARRAY};
use crate::sync::lock;

/// How long the virtual machine may take to verify and to redefine classes.
const REDEFINE_TIMEOUT: Duration = Duration::from_secs(30);
/// How many bytes of changed classes are sent.
const MAX_CHANGED_BYTES: usize = 24 << 20;

/// A class whose code is new.
struct ChangedClass {
    loaded: NamedClass,
    bytes: Vec<u8>,
    source_file: Option<String>,
}

impl JavaSession {
    /// Redefines what has changed. A virtual machine that cannot take the change is no error of the request.
    pub async fn redefine_classes(&self) -> Result<RedefineClassesResponse, RequestFailure> {
        let refused = |message: String| RedefineClassesResponse { error_message: Some(message), ..Default::default() };
        if !self.vm.capabilities.redefine_classes {
            return Ok(refused("this virtual machine cannot redefine classes".to_owned()));
        }
        let began = SystemTime::now();
        let rebuilt = self.compile_again().await?;
        let (before, since) = {
            let origin = lock(&self.code_origin);
            (origin.folders.clone(), origin.since)
        };
        let before = if before.is_empty() { self.vm_class_folders().await? } else { before };
        let after = rebuilt.as_ref().map_or_else(|| before.clone(), |it| it.class_paths.clone());
        let is_own = |it: &NamedClass| it.type_tag != TYPE_ARRAY && !is_jdk_class(&it.signature);
        let loaded: Vec<NamedClass> =
            self.vm.request(&AllClassesWithGeneric {}).await?.into_iter().filter(is_own).collect();
        let found = tokio::task::spawn_blocking(move || find_changed(loaded, &before, &after, since)).await;
        let changed = found.map_err(|cause| RequestFailure(cause.to_string()))?;
        let names = changed.iter().map(|it| super::signatures::type_name(&it.loaded.signature)).collect::<Vec<_>>();
        if changed.iter().map(|it| it.bytes.len()).sum::<usize>() > MAX_CHANGED_BYTES {
            return Ok(refused(format!("more than {MAX_CHANGED_BYTES} bytes of classes have changed")));
        }
        if !changed.is_empty() {
            let classes = changed.iter().map(|it| (it.loaded.class, it.bytes.clone())).collect();
            match self.vm.client.request_within(&RedefineClasses { classes }, REDEFINE_TIMEOUT).await {
                Ok(()) => {}
                Err(JdwpError::Refused { code, .. }) => return Ok(refused(format!("{code} ({})", names.join(", ")))),
                Err(error) => return Err(error.into()),
            }
        }
        self.adopt_code(rebuilt, began).await?;
        self.renew_classes(changed).await?;
        Ok(RedefineClassesResponse { changed_classes: names, error_message: None })
    }

    /// Compiles a launched source as it is now. `None`: others build the program.
    async fn compile_again(&self) -> Result<Option<RunnableClass>, RequestFailure> {
        let launch = lock(&self.code_origin).launch.clone();
        let Some(launch) = launch else { return Ok(None) };
        let JavaProgramKind::Source(source) = &launch.program else { return Ok(None) };
        let prepared = prepare_source(source, &launch.java, &launch.class_paths, &self.scratch).await;
        prepared.map(Some).map_err(|error| {
            RequestFailure(std::iter::once(error.to_string()).chain(error.causes()).collect::<Vec<_>>().join(": "))
        })
    }

    /// The folders of classes by the virtual machine, which runs on this machine if they are here.
    async fn vm_class_folders(&self) -> Result<Vec<PathBuf>, RequestFailure> {
        let paths = self.vm.request(&ClassPaths {}).await?;
        let base = PathBuf::from(paths.base);
        let folders = paths.class_path.iter().map(|path| base.join(path)).filter(|path| path.is_dir());
        Ok(folders.chain(output_folders(&base)).collect())
    }

    /// From now on, what was compiled just now is what runs.
    async fn adopt_code(&self, rebuilt: Option<RunnableClass>, began: SystemTime) -> Result<(), RequestFailure> {
        let compiled = lock(&self.code_origin).compiled.clone();
        let mut origin_folders = None;
        let mut kept = None;
        if let Some(RunnableClass { folder: Some(folder), class_paths, .. }) = rebuilt {
            match compiled {
                // Classes that are loaded later are new, too.
                Some(own) => {
                    let copied =
                        tokio::task::spawn_blocking(move || super::compile_cache::copy_all_classes(folder.path(), &own))
                            .await;
                    copied.map_err(|cause| cause.to_string())?.map_err(|cause| cause.to_string())?;
                }
                None => (origin_folders, kept) = (Some(class_paths), Some(folder)),
            }
        }
        let mut origin = lock(&self.code_origin);
        origin.since = began;
        if let Some(folders) = origin_folders {
            (origin.folders, origin.kept) = (folders, kept);
        }
        Ok(())
    }

    /// Reads anew what was known of redefined classes, and binds their breakpoints.
    async fn renew_classes(&self, changed: Vec<ChangedClass>) -> Result<(), RequestFailure> {
        let ids: Vec<ReferenceTypeId> = changed.iter().map(|it| it.loaded.class).collect();
        self.vm.forget_classes(&ids);
        self.with_tables(|tables| tables.known_frames.forget());
        let mut classes: Vec<Arc<JavaClass>> = Vec::new();
        for ChangedClass { loaded, source_file, .. } in changed {
            let path = source_file.as_ref().and_then(|name| self.sources.find_file(&loaded.signature, name));
            if let Some(path) = path {
                let path = Some(path.to_string_lossy().into_owned());
                let source = DapSource { name: source_file, path, ..DapSource::default() };
                // Fails when the client has gone, which ends the session.
                let _ = self.dap.send_event(&LoadedSourceEvent { reason: "changed".to_owned(), source }).await;
            }
            classes.push(self.vm.known_class(loaded.class, loaded.type_tag, loaded.signature));
        }
        self.rebind_classes(&ids, &classes).await
    }
}

/// The loaded classes whose code in the folders of now differs from that in the folders of before.
fn find_changed(
    loaded: Vec<NamedClass>,
    before: &[PathBuf],
    after: &[PathBuf],
    since: SystemTime,
) -> Vec<ChangedClass> {
    let first = |folders: &[PathBuf], name: &str| -> Option<PathBuf> {
        let file = format!("{name}.class");
        folders.iter().map(|folder| folder.join(&file)).find(|path| path.is_file())
    };
    let mut changed = Vec::new();
    for class in loaded {
        // The name comes from the program: it must not lead out of the folders.
        let name = class_path(&class.signature).to_owned();
        if name.starts_with('/') || name.split('/').any(|part| part == "..") {
            continue;
        }
        let Some(path) = first(after, &name) else { continue };
        let old = first(before, &name);
        if old.as_ref() == Some(&path) && !is_newer_than(&path, since) {
            continue;
        }
        let Some((bytes, facts)) = read_class_file(&path).filter(|(_, facts)| facts.name == name) else { continue };
        let is_same = |old: &PathBuf| *old != path && read_class_file(old).is_some_and(|(before, _)| before == bytes);
        if !old.as_ref().is_some_and(is_same) {
            changed.push(ChangedClass { loaded: class, bytes, source_file: facts.source_file });
        }
    }
    changed
}

fn is_newer_than(path: &Path, since: SystemTime) -> bool {
    path.metadata().and_then(|it| it.modified()).is_ok_and(|changed| changed > since)
}
