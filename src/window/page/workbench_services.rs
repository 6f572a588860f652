//! Restarts the extension hosts of a window that shows VS Code's workbench, through a service of the workbench.
//!
//! The workbench keeps its services to itself; a script that runs before its own finds the one that is needed
//! (`workbench_services.js`). Where it does not, because the workbench was loaded before the script was installed or is
//! built in another way, the restart fails with a reason, and nothing else is affected.

use std::time::Duration;

use serde_json::Value;
use tether_base::error::{Error, Result};
use tether_cdp::types::AddScriptToEvaluateOnNewDocument;

use super::expression::{ExpressionResult, await_expression};
use super::page_client::{BROWSER_TIMEOUT, PageClient};

const SCRIPT: &str = include_str!("workbench_services.js");
/// Why the hosts are stopped, as the workbench may show it to the user.
const REASON: &str = "tether loads the new build";

/// Installs the script in all documents that the best page loads from now on, for as long as the connection is open.
pub async fn install_workbench_script(client: &PageClient) -> Result<()> {
    let page = client.select_page(None, "cannot prepare the workbench").await?;
    let script = AddScriptToEvaluateOnNewDocument { source: SCRIPT.to_owned() };
    page.call(&script, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    Ok(())
}

/// Stops all extension hosts, and starts them again; returns when the new ones have been requested. Errors: the script
/// has found no service, the workbench refuses, or does not do it within `deadline`.
pub async fn restart_extension_hosts(client: &PageClient, deadline: Duration) -> Result<()> {
    let expression =
        format!("globalThis[Symbol.for('devtether.workbench')]?.restartExtensionHosts({REASON:?}) ?? 'unknown'");
    let doing = || Error::other("cannot restart the extension host");
    match await_expression(client, &expression, deadline).await? {
        ExpressionResult::Value(Value::Null) => Ok(()),
        ExpressionResult::Value(Value::String(reason)) if reason == "unknown" => {
            Err(doing().because("this workbench was loaded before it could be prepared for that"))
        }
        ExpressionResult::Value(reason) => Err(doing().because(reason.as_str().unwrap_or_default().to_owned())),
        ExpressionResult::Exception(text) => Err(doing().because(text)),
    }
}
