//! A small web site for tests, on two hosts that Chromium keeps in different processes: 127.0.0.1 and localhost.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Serves until drop.
pub struct WebSite {
    port: u16,
    serving: JoinHandle<()>,
    /// `/gate` gets its response once this is open.
    gate: watch::Sender<bool>,
}

impl WebSite {
    /// A site with pages by path. `$here` in them is this host, `$other` the other one.
    pub async fn serve(pages: &[(&str, &str)]) -> WebSite {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let filled = |text: &str| {
            text.replace("$here", &format!("http://127.0.0.1:{port}"))
                .replace("$other", &format!("http://localhost:{port}"))
        };
        let pages = pages.iter().map(|(path, text)| ((*path).to_owned(), filled(text)));
        let pages: Arc<HashMap<String, String>> = Arc::new(pages.collect());
        let (gate, opened) = watch::channel(false);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&pages), opened.clone()));
            }
        });
        WebSite { port, serving, gate }
    }

    /// Answers the requests for `/gate`: a page that waits for it synchronously is frozen until then.
    pub fn open_the_gate(&self) {
        self.gate.send_replace(true);
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for WebSite {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(stream: TcpStream, pages: Arc<HashMap<String, String>>, mut opened: watch::Receiver<bool>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut request = String::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            request.push_str(&line);
        }
        let path = request.split(' ').nth(1).unwrap_or("/").to_owned();
        if path == "/gate" {
            // Fails once the site is dropped.
            let _ = opened.wait_for(|open| *open).await;
        }
        let body = pages.get(&path).cloned();
        let answer = match (path.as_str(), body) {
            ("/redirect", _) => "HTTP/1.1 302 Found\r\nLocation: /data.json\r\nContent-Length: 0\r\n\r\n".to_owned(),
            // A request that never gets a response.
            ("/never", _) => std::future::pending().await,
            (path, Some(body)) => {
                let (kind, extra) = match path.rsplit('.').next() {
                    Some("json") => ("application/json", ""),
                    Some("js") => ("text/javascript", ""),
                    Some("zip") => ("application/zip", "Content-Disposition: attachment; filename=\"file.zip\"\r\n"),
                    _ => ("text/html; charset=utf-8", ""),
                };
                let length = body.len();
                format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{extra}Content-Length: {length}\r\n\r\n{body}")
            }
            _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
