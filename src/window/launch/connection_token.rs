//! The connection token of VS Code's server, without which it refuses requests: any user of the machine can connect to its
//! port.
//!
//! The server reads the token from a file, and the page has it as a cookie that is set over CDP: it is on no command line,
//! in no environment and in no URL that the browser opens. A token is as old as its launch.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tether_base::clock::now_ms;
use tether_base::error::{ErrorContext, Result};
use tether_cdp::types::CookieParam;

use crate::window::launch_id::new_random_id;

/// The cookie in which the workbench and the server expect the token.
const COOKIE: &str = "vscode-tkn";
/// In seconds. The server's own cookie lasts 7 days: a window that was open for longer could not be reloaded.
const COOKIE_LIFETIME: u64 = 365 * 24 * 3600;

/// A token that is in its file.
pub struct ConnectionToken {
    value: String,
    /// With mode 0600.
    pub file: PathBuf,
}

impl ConnectionToken {
    /// Draws a token and writes it to a new file in `folder`.
    pub fn create(folder: &Path) -> Result<ConnectionToken> {
        let (value, file) = (new_random_id()?, folder.join("connection-token"));
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
        let written = created.and_then(|mut created| created.write_all(value.as_bytes()));
        written.doing(|| format!("cannot write {}", file.display()))?;
        Ok(ConnectionToken { value, file })
    }

    /// The cookie for the server at `url`.
    pub fn cookie(&self, url: &str) -> CookieParam {
        CookieParam {
            name: COOKIE,
            value: self.value.clone(),
            url: url.to_owned(),
            same_site: "Lax",
            expires: now_ms() / 1000 + COOKIE_LIFETIME,
        }
    }
}
