//! A child of a program that has connected by itself, and is not debugged.
//!
//! Does not depend on why it is not.

use std::time::Duration;

use tether_dap::types::{AttachArguments, ConfigurationDoneArguments, StartRequest};
use tether_dap::{DapClient, DapError};
use tokio::time::timeout;

use super::disconnect::{log_error, send_disconnect};
use super::target::TargetPlan;
use crate::adapters::OpenedChild;

/// How long a child may take to be let go, in all.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// Lets a child run that waits to be debugged: it goes on once it has been configured, and is detached from at once.
pub async fn release_child(child: OpenedChild, plan: TargetPlan) {
    let OpenedChild { client, mut inbox, driver, .. } = child;
    let released = async {
        log_error(start_undebugged(&client, &plan).await);
        send_disconnect(&client, false).await;
        client.close();
    };
    let events = async { while inbox.next().await.is_some() {} };
    let _ = timeout(RELEASE_TIMEOUT, async { tokio::join!(released, events, driver) }).await;
}

async fn start_undebugged(client: &DapClient, plan: &TargetPlan) -> Result<(), DapError> {
    let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = &plan.start;
    client.request(&plan.initialize, plan.deadline).await?;
    client.request(&AttachArguments(fields.clone()), plan.deadline).await?;
    client.request(&ConfigurationDoneArguments {}, plan.deadline).await?;
    Ok(())
}
