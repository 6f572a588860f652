//! The server side of DAP, for in-process adapters and for editors that join: requests in, responses and events out.
//!
//! Requests come in order through the [`crate::DapInbox`]; they may be responded to in any order, and dropping one sends an
//! error response. Reverse requests (`runInTerminal`, `startDebugging`) can be sent to the client. Does not depend on
//! the meaning of a request.

use super::dap_error::DapError;
use super::message::{RawEvent, to_raw_json};
use super::peer::DapPeer;
use super::types::DapEvent;

/// A handle to the client on the other side.
pub type DapServer = DapPeer;

impl DapPeer {
    /// Sends an event to the client; waits while the client does not read.
    pub async fn send_event<T: DapEvent>(&self, body: &T) -> Result<(), DapError> {
        let body = to_raw_json(body).map_err(|cause| DapError::Unsendable { command: T::EVENT.to_owned(), cause })?;
        self.send_raw_event(T::EVENT, body.as_ref()).await
    }

    /// Forwards an event of another adapter unchanged.
    pub async fn forward_event(&self, event: &RawEvent) -> Result<(), DapError> {
        self.send_raw_event(&event.name, event.body.as_ref()).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::types::{
        EmptyResponse, OutputEvent, PauseArguments, RunInTerminalArguments, RunInTerminalResponse, StoppedEvent,
        ThreadsArguments,
    };
    use crate::{DapClient, DapConnection, DapEvent, DapInbox, DapIncoming, ErrorResponse};

    const LONG: Duration = Duration::from_secs(60);

    async fn next_request(inbox: &mut DapInbox) -> crate::IncomingRequest {
        match inbox.next().await {
            Some(DapIncoming::Request(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    async fn next_event<T: DapEvent>(inbox: &mut DapInbox) -> T {
        match inbox.next().await {
            Some(DapIncoming::Event(event)) => event.read_body().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn requests_get_responses_in_any_order_with_events_between() {
        let (ours, theirs) = DapConnection::pair();
        let (client, mut inbox, driver) = DapClient::over(ours);
        let (server, mut requests, serving) = DapServer::over(theirs);
        let (driver, serving) = (tokio::spawn(driver), tokio::spawn(serving));
        let serve = async {
            let (pause, threads) = (next_request(&mut requests).await, next_request(&mut requests).await);
            assert_eq!(pause.read_arguments::<PauseArguments>(), Ok(PauseArguments { thread_id: 3 }));
            threads.respond_error(ErrorResponse::new("cancelled"));
            let stopped = StoppedEvent { reason: "pause".to_owned(), ..StoppedEvent::default() };
            server.send_event(&stopped).await.unwrap();
            pause.respond(&EmptyResponse {});
        };
        let calls = async {
            let pause = client.send_request(&PauseArguments { thread_id: 3 }).await.unwrap();
            let refused = client.request(&ThreadsArguments {}, LONG).await.unwrap_err();
            assert_eq!(refused.to_string(), "threads failed: cancelled");
            assert_eq!(next_event::<StoppedEvent>(&mut inbox).await.reason, "pause");
            pause.response(LONG).await.unwrap();
        };
        tokio::join!(serve, calls);
        // When the client closes, the server's inbox and connection end.
        drop(client);
        assert!(requests.next().await.is_none());
        assert_eq!(server.wait_closed().await, "the peer closed it");
        let error = server.send_event(&OutputEvent::default()).await.unwrap_err();
        assert_eq!(error, DapError::Closed("the peer closed it".to_owned()));
        assert_eq!(
            (driver.await.unwrap(), serving.await.unwrap().as_str()),
            ("its last handle was dropped".to_owned(), "the peer closed it")
        );
    }

    #[tokio::test]
    async fn reverse_requests_get_a_response_and_forwarded_events_stay_whole() {
        let (ours, theirs) = DapConnection::pair();
        let (_client, mut inbox, driver) = DapClient::over(ours);
        let (server, _requests, serving) = DapServer::over(theirs);
        let (_driver, _serving) = (tokio::spawn(driver), tokio::spawn(serving));
        let run = RunInTerminalArguments {
            cwd: "/".to_owned(),
            args: vec!["true".to_owned()],
            ..RunInTerminalArguments::default()
        };
        let answer = async {
            let request = next_request(&mut inbox).await;
            assert_eq!(request.read_arguments::<RunInTerminalArguments>().unwrap().args, ["true"]);
            request.respond(&RunInTerminalResponse { process_id: Some(7) });
        };
        let (ran, ()) = tokio::join!(server.request(&run, LONG), answer);
        assert_eq!(ran.unwrap().process_id, Some(7));
        let body = r#"{"reason": "step", "of the adapter's own": [1.50]}"#.to_owned();
        let event = RawEvent {
            name: "stopped".to_owned(),
            body: Some(serde_json::value::RawValue::from_string(body.clone()).unwrap()),
        };
        server.forward_event(&event).await.unwrap();
        let Some(DapIncoming::Event(passed)) = inbox.next().await else { panic!("no event") };
        assert_eq!((passed.name.as_str(), passed.body.unwrap().get()), ("stopped", body.as_str()));
    }
}
