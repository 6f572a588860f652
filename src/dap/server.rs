//! The side that answers: for our own adapters, and for editors that join. Requests in, answers and events out.
//!
//! Requests come in order through the [`Inbox`], each to be answered when and in which order the caller likes;
//! dropping one refuses it. An editor may also be asked (`runInTerminal`, `startDebugging`).
//! Must not know what a request means.

use std::time::Duration;

use super::client::DapClient;
use super::connection::DapConnection;
use super::dap_error::DapError;
use super::inbox::DapInbox;
use super::message::{RawEvent, to_raw_json};
use super::peer::{self, DapPeer, Driver};
use super::types::{DapEvent, DapRequest};

/// A handle to the client on the other side; clones share the connection. It ends when the last one is dropped.
#[derive(Clone)]
pub struct DapServer(DapPeer);

impl DapServer {
    /// The serving side of a connection, what will come in, and the future that drives it.
    pub fn over(connection: DapConnection) -> (DapServer, DapInbox, Driver) {
        let (peer, inbox, driver) = peer::open_peer(connection);
        (DapServer(peer), inbox, driver)
    }

    /// Tells the client; waits while it does not read.
    pub async fn send_event<T: DapEvent>(&self, body: &T) -> Result<(), DapError> {
        let body = to_raw_json(body).map_err(|cause| DapError::Unsendable { command: T::EVENT.to_owned(), cause })?;
        self.0.send_event(T::EVENT, body.as_ref()).await
    }

    /// Passes on what another adapter has told, as it was.
    pub async fn forward_event(&self, event: &RawEvent) -> Result<(), DapError> {
        self.0.send_event(&event.name, event.body.as_ref()).await
    }

    /// Asks the client for something (`runInTerminal`, `startDebugging`).
    pub async fn request<R: DapRequest>(&self, request: &R, deadline: Duration) -> Result<R::Response, DapError> {
        DapClient::from(self.0.clone()).request(request, deadline).await
    }

    pub fn close(&self) {
        self.0.close();
    }

    /// Resolves when the connection has ended, with the reason.
    pub async fn wait_closed(&self) -> String {
        self.0.wait_closed().await
    }

    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dap::types::{
        EmptyResponse, OutputEvent, PauseArguments, RunInTerminalArguments, RunInTerminalResponse, StoppedEvent,
        ThreadsArguments,
    };
    use crate::dap::{DapEvent, DapIncoming, ErrorResponse};

    const LONG: Duration = Duration::from_secs(60);

    async fn asked(inbox: &mut DapInbox) -> crate::dap::IncomingRequest {
        match inbox.next().await {
            Some(DapIncoming::Request(asked)) => asked,
            other => panic!("{other:?}"),
        }
    }

    async fn told<T: DapEvent>(inbox: &mut DapInbox) -> T {
        match inbox.next().await {
            Some(DapIncoming::Event(event)) => event.read_body().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn requests_are_answered_in_any_order_and_events_come_between() {
        let (ours, theirs) = DapConnection::pair();
        let (client, mut heard, driver) = DapClient::over(ours);
        let (server, mut asks, serving) = DapServer::over(theirs);
        let (driver, serving) = (tokio::spawn(driver), tokio::spawn(serving));
        let serve = async {
            let (pause, threads) = (asked(&mut asks).await, asked(&mut asks).await);
            assert_eq!(pause.read_arguments::<PauseArguments>(), Ok(PauseArguments { thread_id: 3 }));
            threads.respond_error(ErrorResponse::new("cancelled"));
            let stopped = StoppedEvent { reason: "pause".to_owned(), ..StoppedEvent::default() };
            server.send_event(&stopped).await.unwrap();
            pause.respond(&EmptyResponse {});
        };
        let ask = async {
            let pause = client.send_request(&PauseArguments { thread_id: 3 }).await.unwrap();
            let refused = client.request(&ThreadsArguments {}, LONG).await.unwrap_err();
            assert_eq!(refused.to_string(), "threads failed: cancelled");
            assert_eq!(told::<StoppedEvent>(&mut heard).await.reason, "pause");
            pause.response(LONG).await.unwrap();
        };
        tokio::join!(serve, ask);
        // The client leaves: the server hears of it, and its requests end.
        drop(client);
        assert!(asks.next().await.is_none());
        assert_eq!(server.wait_closed().await, "the peer closed it");
        let error = server.send_event(&OutputEvent::default()).await.unwrap_err();
        assert_eq!(error, DapError::Closed("the peer closed it".to_owned()));
        assert_eq!(
            (driver.await.unwrap(), serving.await.unwrap().as_str()),
            ("its last handle was dropped".to_owned(), "the peer closed it")
        );
    }

    #[tokio::test]
    async fn the_client_may_be_asked_and_what_an_adapter_tells_is_passed_on_whole() {
        let (ours, theirs) = DapConnection::pair();
        let (_client, mut heard, driver) = DapClient::over(ours);
        let (server, _asks, serving) = DapServer::over(theirs);
        let (_driver, _serving) = (tokio::spawn(driver), tokio::spawn(serving));
        let run = RunInTerminalArguments {
            cwd: "/".to_owned(),
            args: vec!["true".to_owned()],
            ..RunInTerminalArguments::default()
        };
        let answer = async {
            let asked = asked(&mut heard).await;
            assert_eq!(asked.read_arguments::<RunInTerminalArguments>().unwrap().args, ["true"]);
            asked.respond(&RunInTerminalResponse { process_id: Some(7), ..RunInTerminalResponse::default() });
        };
        let (ran, ()) = tokio::join!(server.request(&run, LONG), answer);
        assert_eq!(ran.unwrap().process_id, Some(7));
        let body = r#"{"reason": "step", "of the adapter's own": [1.50]}"#.to_owned();
        let event = RawEvent {
            name: "stopped".to_owned(),
            body: Some(serde_json::value::RawValue::from_string(body.clone()).unwrap()),
        };
        server.forward_event(&event).await.unwrap();
        let Some(DapIncoming::Event(passed)) = heard.next().await else { panic!("no event") };
        assert_eq!((passed.name.as_str(), passed.body.unwrap().get()), ("stopped", body.as_str()));
    }
}
