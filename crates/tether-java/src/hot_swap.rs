//! Hot swap: the classes whose files have changed are redefined in the running virtual machine.
//!
//! ```text
//! sources ─▶ compiled as at the launch ─┐
//! class files of a build ───────────────┴▶ those of loaded classes that have changed ─▶ RedefineClasses (all or none)
//!   ─▶ what was known of them is read anew, breakpoints are bound anew, `loadedSource` for their sources
//! ```
//! A frame of the old code runs on to its end; the next call runs the new one. What is shown of such a frame is read before
//! the classes are redefined: see `old_frames`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_base::sync::lock;
use tether_dap::types::{DapSource, InvalidatedEvent, LoadedSourceEvent, RedefineClassesResponse};
use tether_jdwp::JdwpError;
use tether_jdwp::commands::threads::Frames;
use tether_jdwp::commands::virtual_machine::{AllClassesWithGeneric, AllThreads, NamedClass, RedefineClasses};
use tether_jdwp::values::{CodeLocation, MethodId, ObjectId, ReferenceTypeId, TYPE_ARRAY};

use super::blocking::run_blocking;
use super::class_age::vm_class_folders;
use super::class_file::read_class_file;
use super::compile_cache::copy_all_classes;
use super::compiled_source::{RunnableClass, prepare_source};
use super::java_vm::JavaClass;
use super::launch_arguments::JavaProgramKind;
use super::old_frames::OldMethod;
use super::session::JavaSession;
use super::signatures::{class_path, is_jdk_class, type_name};
use super::{breakpoints, frames, stop_conditions};

/// How long the virtual machine may take to verify and to redefine classes.
const REDEFINE_TIMEOUT: Duration = Duration::from_secs(30);
/// How many bytes of changed classes are sent.
const MAX_CHANGED_BYTES: usize = 24 << 20;

/// How many frames of a thread are recorded before their classes are redefined.
const MAX_OLD_FRAMES: usize = 2000;

/// A class whose code is new.
struct ChangedClass {
    loaded: NamedClass,
    bytes: Vec<u8>,
    source_file: Option<String>,
}

/// Redefines what has changed. A virtual machine that cannot take the change is no error of the request; once it has
/// taken it, nothing that follows is.
pub(crate) async fn redefine_classes(session: &JavaSession) -> Answer<RedefineClassesResponse> {
    let refused = |message: String| RedefineClassesResponse { error_message: Some(message), ..Default::default() };
    if !session.vm.capabilities.redefine_classes {
        return Ok(refused("this virtual machine cannot redefine classes".to_owned()));
    }
    let began = SystemTime::now();
    let rebuilt = compile_again(session).await?;
    let (before, since) = {
        let origin = lock(&session.code_origin);
        (origin.folders.clone(), origin.since)
    };
    let before = if before.is_empty() { vm_class_folders(session).await? } else { before };
    let after = rebuilt.as_ref().map_or_else(|| before.clone(), |it| it.class_paths.clone());
    let is_own = |it: &NamedClass| it.type_tag != TYPE_ARRAY && !is_jdk_class(&it.signature);
    let loaded: Vec<NamedClass> =
        session.vm.request(&AllClassesWithGeneric {}).await?.into_iter().filter(is_own).collect();
    let changed = run_blocking(move || find_changed(loaded, &before, &after, since)).await?;
    let names = changed.iter().map(|it| type_name(&it.loaded.signature)).collect::<Vec<_>>();
    if changed.iter().map(|it| it.bytes.len()).sum::<usize>() > MAX_CHANGED_BYTES {
        return Ok(refused(format!("more than {MAX_CHANGED_BYTES} bytes of classes have changed")));
    }
    if !changed.is_empty() {
        let ids: Vec<ReferenceTypeId> = changed.iter().map(|it| it.loaded.class).collect();
        record_old_frames(session, &ids).await?;
        let classes = changed.iter().map(|it| (it.loaded.class, it.bytes.clone())).collect();
        // Also what a request reads while they are being redefined: before and after.
        session.vm.forget_redefined(&ids);
        let redefined = session.vm.client.request_within(&RedefineClasses { classes }, REDEFINE_TIMEOUT).await;
        session.vm.forget_redefined(&ids);
        session.with_tables(|tables| tables.known_frames.forget());
        match redefined {
            Ok(()) => {}
            Err(JdwpError::Refused { code, .. }) => return Ok(refused(format!("{code} ({})", names.join(", ")))),
            Err(error) => return Err(error.into()),
        }
    }
    // From here on the new code runs: what fails is only said.
    if let Err(failure) = renew_classes(session, changed).await {
        stop_conditions::print(
            session,
            "important",
            &format!("the breakpoints of the swapped classes are not renewed: {failure}\n"),
        )
        .await;
    }
    if let Err(failure) = adopt_code(session, rebuilt, began).await {
        let text = format!("classes that are loaded from now on may be those of before the swap: {failure}\n");
        stop_conditions::print(session, "important", &text).await;
    }
    Ok(RedefineClassesResponse { changed_classes: names, error_message: None })
}

/// Compiles a launched source as it is now. `None`: others build the program.
async fn compile_again(session: &JavaSession) -> Answer<Option<RunnableClass>> {
    let launch = lock(&session.code_origin).launch.clone();
    let Some(launch) = launch else { return Ok(None) };
    let JavaProgramKind::Source(source) = &launch.program else { return Ok(None) };
    let prepared = prepare_source(source, &launch.java, &launch.class_paths, &session.scratch).await;
    prepared.map(Some).map_err(|error| {
        RequestFailure(std::iter::once(error.to_string()).chain(error.causes()).collect::<Vec<_>>().join(": "))
    })
}

/// Records what the frames of suspended threads run in these classes: the virtual machine will not say it any more.
async fn record_old_frames(session: &JavaSession, ids: &[ReferenceTypeId]) -> Answer<()> {
    let threads = session.vm.request(&AllThreads {}).await?;
    // What was recorded for a thread that has run since may not be there any more.
    let (mut known, suspended) = session.with_tables(|tables| {
        let is_suspended = |thread: &ObjectId| tables.is_suspended(*thread);
        let suspended: Vec<ObjectId> = threads.into_iter().filter(is_suspended).collect();
        (tables.old_frames.take_frames(), suspended)
    });
    let mut methods: HashMap<(ReferenceTypeId, MethodId), Option<Arc<OldMethod>>> = HashMap::new();
    for thread in suspended {
        // A thread that has ended, or runs a call of an evaluation, has none that can be read.
        let Ok(frames) = session.vm.request(&Frames { thread, first: 0, count: -1 }).await else { continue };
        for (frame, height) in frames.iter().zip((1..=frames.len()).rev()).take(MAX_OLD_FRAMES) {
            let (at, place) = (frame.location, (thread, height));
            let old = if !is_current_code(session, at).await? {
                known.remove(&place).filter(|old| old.class == at.class)
            } else if !ids.contains(&at.class) {
                continue;
            } else if let Some(read) = methods.get(&(at.class, at.method)) {
                read.clone()
            } else {
                let read = read_old_method(session, at).await?;
                methods.insert((at.class, at.method), read.clone());
                read
            };
            if let Some(old) = old {
                session.with_tables(|tables| tables.old_frames.add_frame(place, old));
            }
        }
    }
    Ok(())
}

/// Whether the code at a place is that of its class as it is now.
async fn is_current_code(session: &JavaSession, at: CodeLocation) -> Answer<bool> {
    if at.method.0 == 0 || !session.vm.was_redefined(at.class) {
        return Ok(at.method.0 != 0);
    }
    let class = session.vm.class(at.class, at.type_tag).await?;
    Ok(session.vm.is_current(&class, at.method).await?)
}

/// What is known of the method at a place. `None`: its class has none of that id.
async fn read_old_method(session: &JavaSession, at: CodeLocation) -> Answer<Option<Arc<OldMethod>>> {
    let class = session.vm.class(at.class, at.type_tag).await?;
    let Some(method) = session.vm.method(&class, at.method).await? else { return Ok(None) };
    let (lines, variables) =
        tokio::try_join!(session.vm.lines(&class, at.method), session.vm.variables(&class, at.method))?;
    let path = frames::source_of(session, &class).await?.and_then(|source| source.path);
    let text = path.and_then(|path| session.sources.remembered_text(path.as_ref()));
    let source = text.and_then(|text| session.with_tables(|tables| tables.old_frames.add_text(&text)));
    Ok(Some(Arc::new(OldMethod { class: at.class, method, lines, variables, source })))
}

/// From now on, what was compiled just now is what runs.
async fn adopt_code(session: &JavaSession, rebuilt: Option<RunnableClass>, began: SystemTime) -> Answer<()> {
    let compiled = lock(&session.code_origin).compiled.clone();
    let mut origin_folders = None;
    let mut kept = None;
    if let Some(RunnableClass { folder: Some(folder), class_paths, .. }) = rebuilt {
        match compiled {
            // Classes that are loaded later are new, too.
            Some(own) => {
                let copied = run_blocking(move || copy_all_classes(folder.path(), &own)).await?;
                copied.map_err(|cause| cause.to_string())?;
            }
            None => (origin_folders, kept) = (Some(class_paths), Some(folder)),
        }
    }
    let mut origin = lock(&session.code_origin);
    origin.since = began;
    if let Some(folders) = origin_folders {
        (origin.folders, origin.kept) = (folders, kept);
    }
    Ok(())
}

/// Reads anew what was known of redefined classes, and binds their breakpoints.
async fn renew_classes(session: &JavaSession, changed: Vec<ChangedClass>) -> Answer<()> {
    session.sources.forget_texts();
    let ids: Vec<ReferenceTypeId> = changed.iter().map(|it| it.loaded.class).collect();
    let mut classes: Vec<Arc<JavaClass>> = Vec::new();
    for ChangedClass { loaded, source_file, .. } in changed {
        if let Some(name) = source_file
            && let Some(path) = session.sources.find_files(&loaded.signature, &name).await.first()
        {
            let path = Some(path.to_string_lossy().into_owned());
            let source = DapSource { name: Some(name), path, ..DapSource::default() };
            // Fails when the client has gone, which ends the session.
            let _ = session.dap.send_event(&LoadedSourceEvent { reason: "changed".to_owned(), source }).await;
        }
        classes.push(session.vm.known_class(loaded.class, loaded.type_tag, loaded.signature));
    }
    if !ids.is_empty() {
        // What was shown of frames in these classes is not what they are now.
        let areas = vec!["stacks".to_owned(), "variables".to_owned()];
        // Fails when the client has gone, which ends the session.
        let _ = session.dap.send_event(&InvalidatedEvent { areas }).await;
    }
    breakpoints::rebind_classes(session, &ids, &classes).await
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
