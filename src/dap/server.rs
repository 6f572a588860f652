//! The side that answers: for our own adapters, and for editors that join. Requests in, answers and events out.
//!
//! Requests come in order through the [`Inbox`], each to be answered when and in which order the caller likes;
//! dropping one refuses it. An editor may also be asked (`runInTerminal`, `startDebugging`).
//! Must not know what a request means.

use std::time::Duration;

use super::Error;
use super::client::Client;
use super::connection::Connection;
use super::inbox::Inbox;
use super::message::{Event, raw};
use super::peer::{self, Driver, Peer};
use super::types::{Request, Told};

/// A handle to the client on the other side; clones share the connection. It ends when the last one is dropped.
#[derive(Clone)]
pub struct Server(Peer);

impl Server {
    /// The serving side of a connection, what will come in, and the future that drives it.
    pub fn over(connection: Connection) -> (Server, Inbox, Driver) {
        let (peer, inbox, driver) = peer::over(connection);
        (Server(peer), inbox, driver)
    }

    /// Tells the client; waits while it does not read.
    pub async fn event<T: Told>(&self, body: &T) -> Result<(), Error> {
        let body = raw(body).map_err(|cause| Error::Unsendable { command: T::EVENT.to_owned(), cause })?;
        self.0.event(T::EVENT, body.as_ref()).await
    }

    /// Passes on what another adapter has told, as it was.
    pub async fn pass_on(&self, event: &Event) -> Result<(), Error> {
        self.0.event(&event.name, event.body.as_ref()).await
    }

    /// Asks the client for something (`runInTerminal`, `startDebugging`).
    pub async fn request<R: Request>(&self, request: &R, deadline: Duration) -> Result<R::Answer, Error> {
        Client::from(self.0.clone()).request(request, deadline).await
    }

    pub fn close(&self) {
        self.0.close();
    }

    /// Resolves when the connection has ended, with the reason.
    pub async fn closed(&self) -> String {
        self.0.closed().await
    }

    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dap::types::{Nothing, Output, Pause, RunInTerminal, RunInTerminalAnswer, Stopped, Threads};
    use crate::dap::{Incoming, Refusal, Told};

    const LONG: Duration = Duration::from_secs(60);

    async fn asked(inbox: &mut Inbox) -> crate::dap::Asked {
        match inbox.next().await {
            Some(Incoming::Request(asked)) => asked,
            other => panic!("{other:?}"),
        }
    }

    async fn told<T: Told>(inbox: &mut Inbox) -> T {
        match inbox.next().await {
            Some(Incoming::Event(event)) => event.read().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn requests_are_answered_in_any_order_and_events_come_between() {
        let (ours, theirs) = Connection::pair();
        let (client, mut heard, driver) = Client::over(ours);
        let (server, mut asks, serving) = Server::over(theirs);
        let (driver, serving) = (tokio::spawn(driver), tokio::spawn(serving));
        let serve = async {
            let (pause, threads) = (asked(&mut asks).await, asked(&mut asks).await);
            assert_eq!(pause.read::<Pause>(), Ok(Pause { thread_id: 3 }));
            threads.refuse(Refusal::new("cancelled"));
            let stopped = Stopped { reason: "pause".to_owned(), ..Stopped::default() };
            server.event(&stopped).await.unwrap();
            pause.answer(&Nothing {});
        };
        let ask = async {
            let pause = client.begin(&Pause { thread_id: 3 }).await.unwrap();
            let refused = client.request(&Threads {}, LONG).await.unwrap_err();
            assert_eq!(refused.to_string(), "threads was refused: cancelled");
            assert_eq!(told::<Stopped>(&mut heard).await.reason, "pause");
            pause.answer(LONG).await.unwrap();
        };
        tokio::join!(serve, ask);
        // The client leaves: the server hears of it, and its requests end.
        drop(client);
        assert!(asks.next().await.is_none());
        assert_eq!(server.closed().await, "the peer closed it");
        let error = server.event(&Output::default()).await.unwrap_err();
        assert_eq!(error, Error::Closed("the peer closed it".to_owned()));
        assert_eq!(
            (driver.await.unwrap(), serving.await.unwrap().as_str()),
            ("nobody uses it any more".to_owned(), "the peer closed it")
        );
    }

    #[tokio::test]
    async fn the_client_may_be_asked_and_what_an_adapter_tells_is_passed_on_whole() {
        let (ours, theirs) = Connection::pair();
        let (_client, mut heard, driver) = Client::over(ours);
        let (server, _asks, serving) = Server::over(theirs);
        let (_driver, _serving) = (tokio::spawn(driver), tokio::spawn(serving));
        let run = RunInTerminal { cwd: "/".to_owned(), args: vec!["true".to_owned()], ..RunInTerminal::default() };
        let answer = async {
            let asked = asked(&mut heard).await;
            assert_eq!(asked.read::<RunInTerminal>().unwrap().args, ["true"]);
            asked.answer(&RunInTerminalAnswer { process_id: Some(7), ..RunInTerminalAnswer::default() });
        };
        let (ran, ()) = tokio::join!(server.request(&run, LONG), answer);
        assert_eq!(ran.unwrap().process_id, Some(7));
        let body = r#"{"reason": "step", "of the adapter's own": [1.50]}"#.to_owned();
        let event = Event {
            name: "stopped".to_owned(),
            body: Some(serde_json::value::RawValue::from_string(body.clone()).unwrap()),
        };
        server.pass_on(&event).await.unwrap();
        let Some(Incoming::Event(passed)) = heard.next().await else { panic!("no event") };
        assert_eq!((passed.name.as_str(), passed.body.unwrap().get()), ("stopped", body.as_str()));
    }
}
