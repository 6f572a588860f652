//! A web site for the tests of the page tools, on two hosts that Chromium keeps in different processes: 127.0.0.1 and localhost.
//!
//! It echoes requests, sets cookies, sends events, and answers WebSockets.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Serves until drop.
pub struct TestSite {
    port: u16,
    _serving: JoinSet<()>,
}

impl TestSite {
    /// A site with pages by path. `$here` in them is this host, `$other` the other one, `$socket` the WebSocket that echoes.
    pub async fn serve(pages: &[(&str, &str)]) -> TestSite {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sockets = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let socket = format!("ws://127.0.0.1:{}/socket", sockets.local_addr().unwrap().port());
        let filled = |text: &str| {
            text.replace("$here", &format!("http://127.0.0.1:{port}"))
                .replace("$other", &format!("http://localhost:{port}"))
                .replace("$socket", &socket)
        };
        let pages: HashMap<String, String> =
            pages.iter().map(|(path, text)| ((*path).to_owned(), filled(text))).collect();
        let pages = Arc::new(pages);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut answering = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                answering.spawn(answer(stream, Arc::clone(&pages)));
            }
        });
        serving.spawn(async move {
            let mut answering = JoinSet::new();
            while let Ok((stream, _)) = sockets.accept().await {
                answering.spawn(echo_socket(stream));
            }
        });
        TestSite { port, _serving: serving }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn other_url(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.port)
    }
}

async fn echo_socket(stream: TcpStream) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
    while let Some(Ok(message)) = socket.next().await {
        if message.is_close() || socket.send(message).await.is_err() {
            return;
        }
    }
}

/// A request as it was read.
struct Request {
    method: String,
    path: String,
    head: String,
    body: String,
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    let mut words = head.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    Some(Request { method, path, head: head.clone(), body: String::from_utf8_lossy(&body).into_owned() })
}

async fn answer(stream: TcpStream, pages: Arc<HashMap<String, String>>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream).await {
        let path = request.path.split('?').next().unwrap_or_default().to_owned();
        if path == "/events" {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
            let events = "event: news\ndata: first\n\ndata: second\n\n";
            let _ = stream.write_all(format!("{head}{events}").as_bytes()).await;
            // Open until the page leaves.
            let _ = stream.read_u8().await;
            return;
        }
        let (status, kind, extra, body) = match (path.as_str(), pages.get(&path)) {
            ("/echo", _) => {
                let echoed = serde_json::json!({"method": request.method, "body": request.body, "head": request.head});
                ("200 OK", "application/json", "X-Answer: yes\r\n", echoed.to_string().into_bytes())
            }
            ("/login", _) => {
                ("200 OK", "text/html", "Set-Cookie: session=s3cret; Path=/; HttpOnly\r\n", b"in".to_vec())
            }
            ("/pixel.png", _) => ("200 OK", "image/png", "", PIXEL.to_vec()),
            (_, Some(body)) => ("200 OK", content_type(&path), "", body.clone().into_bytes()),
            _ => ("404 Not Found", "text/plain", "", b"there is nothing".to_vec()),
        };
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{extra}Content-Length: {}\r\n\r\n", body.len());
        if stream.write_all(&[head.as_bytes(), &body].concat()).await.is_err() {
            return;
        }
    }
}

/// A picture of one pixel.
pub const PIXEL: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0, 0, 1, 8,
    6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0,
    0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x56, 0xc7, 0x2f, 0x0d, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("json" | "map") => "application/json",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        _ => "text/html; charset=utf-8",
    }
}
