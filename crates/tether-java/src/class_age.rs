//! Where the class files of a program lie, and whether one is older than its source. Does not bind breakpoints.

use std::path::PathBuf;
use std::sync::Arc;

use tether_backend::Answer;
use tether_base::file_age::is_older;
use tether_base::sync::lock;
use tether_jdwp::commands::virtual_machine::ClassPaths;

use super::blocking::run_blocking;
use super::breakpoint_table::BreakpointPlace;
use super::java_vm::JavaClass;
use super::project_modules::output_folders;
use super::session::JavaSession;
use super::signatures::class_path;

/// The first class file of these classes, in the folders of the program, that is older than the file of a breakpoint. `None` for
/// what was compiled for this run.
pub(crate) async fn find_older_code(
    session: &JavaSession,
    place: &BreakpointPlace,
    classes: &[&&Arc<JavaClass>],
) -> Answer<Option<PathBuf>> {
    let BreakpointPlace::Line { path, .. } = place else { return Ok(None) };
    let (folders, is_compiled) = {
        let origin = lock(&session.code_origin);
        (origin.folders.clone(), origin.compiled.is_some())
    };
    if is_compiled {
        return Ok(None);
    }
    let folders = if folders.is_empty() { vm_class_folders(session).await? } else { folders };
    let files: Vec<String> = classes.iter().map(|class| format!("{}.class", class_path(&class.signature))).collect();
    let source = path.clone();
    run_blocking(move || {
        // Of several folders with the class, the virtual machine uses the first.
        let find = |file: &String| folders.iter().map(|folder| folder.join(file)).find(|file| file.is_file());
        files.iter().filter_map(find).find(|class| is_older(class, &source))
    })
    .await
}

/// The folders of classes by the virtual machine, which runs on this machine if they are here.
pub(crate) async fn vm_class_folders(session: &JavaSession) -> Answer<Vec<PathBuf>> {
    let paths = session.vm.request(&ClassPaths {}).await?;
    let list = move || {
        let base = PathBuf::from(paths.base);
        let folders = paths.class_path.iter().map(|path| base.join(path)).filter(|path| path.is_dir());
        folders.chain(output_folders(&base)).collect()
    };
    run_blocking(list).await
}
