//! What stops a program.

use std::path::{Path, PathBuf};

use super::words;
use crate::api::debug::breakpoints::{
    Access, Breakpoint, Breakpoints, Exceptions, ExceptionsInForce, List, Remove, Set, Watch,
};
use crate::api::debug::values::Spot;
use crate::debug::breakpoints as book;
use crate::debug::{Excepting, Sessions};
use crate::error::{Error, ErrorKind, Result};

pub async fn set(sessions: &Sessions, it: Set) -> Result<Breakpoint> {
    let conditions =
        book::Conditions { condition: it.condition, hit_condition: it.hit_condition, log_message: it.log_message };
    let reported = match (it.function, it.file) {
        (Some(name), None) => sessions.set_function(name, conditions).await?,
        (None, Some(file)) => {
            let spot = Spot::of(&file, it.line)?;
            sessions.set_line(Path::new(&spot.file), spot.line, conditions).await?
        }
        _ => {
            let error = Error::usage("it is not said where the breakpoint is to be");
            return Err(error.hint("name `file` (\"app.py:22\"), or `function`"));
        }
    };
    Ok(words::breakpoint(&reported, sessions.workspace()))
}

pub async fn list(sessions: &Sessions, _: List) -> Result<Breakpoints> {
    Ok(all(sessions))
}

fn all(sessions: &Sessions) -> Breakpoints {
    let reported = sessions.breakpoints();
    Breakpoints {
        breakpoints: reported.iter().map(|it| words::breakpoint(it, sessions.workspace())).collect(),
        exceptions: in_force(sessions),
    }
}

pub async fn remove(sessions: &Sessions, it: Remove) -> Result<Breakpoints> {
    let removed = match (it.breakpoint_id, &it.file, it.all.unwrap_or_default()) {
        (Some(id), None, false) => sessions.remove(|wanted| wanted.id == id).await?,
        (None, None, true) => sessions.remove(|_| true).await?,
        (None, Some(file), false) => {
            let (file, line) = Spot::or_file(file, None)?;
            let path = sessions.workspace().join(file);
            let path: PathBuf = path.canonicalize().unwrap_or(path);
            sessions.remove(|wanted| is_at(wanted, &path, line)).await?
        }
        _ => {
            let error = Error::usage("it is not said which breakpoints are to be removed");
            return Err(error.hint("name one of: `breakpointId`, `file`, `all`"));
        }
    };
    if removed.is_empty() && it.all != Some(true) {
        return Err(
            Error::new(ErrorKind::NotFound, "there is no such breakpoint").hint("`tether break list` lists them")
        );
    }
    Ok(all(sessions))
}

fn is_at(wanted: &book::Wanted, path: &Path, at: Option<u32>) -> bool {
    match &wanted.what {
        book::What::Line { file, line, .. } => file == path && at.is_none_or(|at| at == *line),
        _ => false,
    }
}

pub async fn exceptions(sessions: &Sessions, it: Exceptions) -> Result<ExceptionsInForce> {
    let asks = it.caught.is_some() || it.uncaught.is_some() || it.class.is_some() || it.filters.is_some();
    if asks {
        let wanted = book::Exceptions {
            caught: it.caught.unwrap_or_default(),
            uncaught: it.uncaught.unwrap_or_default(),
            class: it.class.filter(|class| !class.is_empty()),
            filters: it.filters.unwrap_or_default(),
        };
        sessions.set_exceptions(wanted).await?;
    }
    Ok(in_force(sessions))
}

fn in_force(sessions: &Sessions) -> ExceptionsInForce {
    let Excepting { wanted, known, mut unable } = sessions.exceptions();
    let book::Exceptions { caught, uncaught, class, filters } = wanted;
    let unknown = filters.iter().find(|filter| !known.is_empty() && !known.contains(filter));
    unable.extend(unknown.map(|filter| format!("no adapter of a living session knows the filter {filter:?}")));
    let message = (!unable.is_empty()).then(|| unable.join("; "));
    ExceptionsInForce { caught, uncaught, class, filters, known, message }
}

pub async fn watch(sessions: &Sessions, it: Watch) -> Result<Breakpoint> {
    let expression = match (it.expression, it.class_name, it.field_name) {
        (Some(expression), None, None) => expression,
        (None, Some(class), Some(field)) => format!("{class}.{field}"),
        _ => {
            let error = Error::usage("it is not said what is to be watched");
            return Err(error.hint("name `expression`, or `className` and `fieldName`"));
        }
    };
    let access = match it.access.unwrap_or_default() {
        Access::Read => book::Access::Read,
        Access::Write => book::Access::Write,
        Access::ReadWrite => book::Access::ReadWrite,
    };
    Ok(words::breakpoint(&sessions.watch_data(expression, access).await?, sessions.workspace()))
}
