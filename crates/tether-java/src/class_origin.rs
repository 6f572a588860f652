//! Which file a loaded class is from, where several files have its package and name: by the folder from which its class loader
//! has taken it.
//!
//! The folder is read from the fields of `URLClassLoader` and of the JDK's own loader of applications, without running code.
//! Of other loaders nothing is known, and then every file of that name may be the one.

use std::path::{Path, PathBuf};

use tether_backend::Answer;
use tether_jdwp::commands::reference_types::ClassLoaderOf;
use tether_jdwp::values::ObjectId;

use super::blocking::run_blocking;
use super::collection_pages::ObjectFields;
use super::collections::find_contents;
use super::java_vm::JavaClass;
use super::project_modules::module_folder;
use super::session::JavaSession;
use super::signatures::{class_path, package_path};
use super::sources::module_sources;

/// How many places of one class loader are looked at.
const MAX_PLACES: usize = 1000;

/// Whether a class was certainly compiled from another file than this one.
pub(crate) async fn is_from_another_file(session: &JavaSession, class: &JavaClass, path: &Path) -> Answer<bool> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(false) };
    let (own, path) = (own_source(session, class, name).await?, path.to_owned());
    run_blocking(move || {
        let is_same = |own: &Path| own == path || own.canonicalize().ok() == path.canonicalize().ok();
        own.is_some_and(|own| !is_same(&own))
    })
    .await
}

/// The file of that name that belongs to the folder from which a class was loaded. `None`: it is not known.
pub(crate) async fn own_source(session: &JavaSession, class: &JavaClass, name: &str) -> Answer<Option<PathBuf>> {
    let Some(places) = loader_places(session, class).await? else { return Ok(None) };
    let (file, package) =
        (format!("{}.class", class_path(&class.signature)), package_path(&class.signature).to_owned());
    let name = name.to_owned();
    run_blocking(move || {
        // What an archive has is not known.
        let found = places.into_iter().find(|place| !place.is_dir() || place.join(&file).is_file())?;
        let beside = std::iter::once(found.clone());
        let of_module = module_folder(&found).map(module_sources).into_iter().flatten();
        let mut files = beside.chain(of_module).map(|folder| folder.join(&package).join(&name));
        found.is_dir().then(|| files.find(|file| file.is_file())).flatten()
    })
    .await
}

/// The folders and archives of the class loader of a class, in their order; `None`: they are not known.
async fn loader_places(session: &JavaSession, class: &JavaClass) -> Answer<Option<Vec<PathBuf>>> {
    let vm = &session.vm;
    let loader = vm.request(&ClassLoaderOf { class: class.id }).await?;
    if loader.is_null() {
        return Ok(None);
    }
    let Some(paths) = read_field(session, loader, "ucp").await? else { return Ok(None) };
    let Some(list) = read_field(session, paths, "path").await? else { return Ok(None) };
    let list_class = vm.class_of(list).await?;
    let Some(contents) = find_contents(vm, list, &list_class).await? else { return Ok(None) };
    let mut places = Vec::new();
    for entry in contents.read_page(vm, 0, MAX_PLACES).await? {
        let Some(url) = entry.value.as_object() else { continue };
        let class = vm.class_of(url.id).await?;
        let fields = ObjectFields { vm, object: url.id, class: &class };
        let (protocol, file) = (fields.read_text("protocol").await?, fields.read_text("file").await?);
        if let (Some("file"), Some(file)) = (protocol.as_deref(), file) {
            places.push(PathBuf::from(decode_percent(&file)));
        }
    }
    Ok(Some(places).filter(|places| !places.is_empty()))
}

async fn read_field(session: &JavaSession, object: ObjectId, name: &str) -> Answer<Option<ObjectId>> {
    let class = session.vm.class_of(object).await?;
    Ok(ObjectFields { vm: &session.vm, object, class: &class }.read_object(name).await?)
}

/// A path as URLs have it, with its `%20` as they are meant.
fn decode_percent(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, others @ ..] = rest {
        let code = others.get(..2).filter(|_| *first == b'%').and_then(|code| hex::decode(code).ok());
        bytes.push(code.as_ref().and_then(|code| code.first().copied()).unwrap_or(*first));
        rest = if code.is_some() { others.get(2..).unwrap_or_default() } else { others };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_urls_are_decoded() {
        for (text, expect) in
            [("/a%20b/%C3%A4/", "/a b/ä/"), ("/plain", "/plain"), ("/100%", "/100%"), ("%zz%4", "%zz%4")]
        {
            assert_eq!(decode_percent(text), expect);
        }
    }
}
