//! MCP over Streamable HTTP on the loopback, for several clients at once: who connects, and by which token. Each session of a client is
//! a front end of its own.
//!
//! Any user of the machine reaches a port of the loopback, and so does a page in a browser: every request must carry the token, which
//! only its user can read, and no request may name another host or come from a page of one.

use std::convert::Infallible;
use std::io::{ErrorKind as IoErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tether_base::bounded_file::{self, Links};
use tether_base::error::{Error, ErrorContext, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{McpServer, ToolSet};
use crate::frontends::stdio_lines::MAX_LINE;
use crate::supervisor::connect::SupervisorPaths;

/// Where MCP is served.
const PATH: &str = "/mcp";
/// The file of the token, in the supervisor's state folder.
const TOKEN_FILE: &str = "mcp-token";
const TOKEN_BYTES: usize = 32;
/// Pages that may send requests, with the token: such as the MCP Inspector.
const LOCAL_PAGES: [&str; 2] = ["http://localhost:*", "http://127.0.0.1:*"];
/// More connections wait until one closes.
const MAX_CONNECTIONS: usize = 64;
/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a session stays without any message: an operation may wait for half an hour.
const SESSION_TIMEOUT: Duration = Duration::from_secs(60 * 60);

type HttpBody = http_body_util::combinators::BoxBody<Bytes, Infallible>;
type Service = StreamableHttpService<Arc<McpServer>, LocalSessionManager>;

/// Serves MCP on this port of 127.0.0.1 (0: a free one) until a signal ends it, and prints the address and the token. Errors: the port is
/// taken; the token cannot be read or written.
pub async fn serve_http(workspace: PathBuf, set: ToolSet, port: u16, as_json: bool) -> Result<()> {
    let (mut terminate, mut interrupt) = (listen_for(SignalKind::terminate())?, listen_for(SignalKind::interrupt())?);
    let paths = SupervisorPaths::of_workspace(&workspace)?;
    let token = Arc::new(read_or_create_token(&paths.state)?);
    let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(|cause| {
        let error = Error::other(format!("cannot listen on port {port} of 127.0.0.1")).because(cause);
        error.hint("`--http 0` picks a free port")
    })?;
    let address = listener.local_addr().doing(|| "cannot read the address".to_owned())?;
    print_address(&format!("http://{address}{PATH}"), &token, as_json)?;
    let ends = CancellationToken::new();
    let service = mcp_service(workspace, set, ends.clone());
    tokio::select! {
        () = accept_connections(listener, service, token) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    ends.cancel();
    Ok(())
}

fn listen_for(kind: SignalKind) -> Result<tokio::signal::unix::Signal> {
    signal(kind).doing(|| "cannot listen for signals".to_owned())
}

fn print_address(url: &str, token: &str, as_json: bool) -> Result<()> {
    let text = match as_json {
        true => json!({"url": url, "token": token}).to_string(),
        false => format!("listening on {url}\n  Authorization: Bearer {token}"),
    };
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).doing(|| "cannot print the address".to_owned())
}

/// The token of the workspace, which stays the same: clients have it in their settings.
fn read_or_create_token(state: &Path) -> Result<String> {
    let file = state.join(TOKEN_FILE);
    let doing = || format!("cannot keep the token in {}", file.display());
    std::fs::create_dir_all(state).doing(doing)?;
    let mut bytes = [0; TOKEN_BYTES];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(std::io::Error::from)
        .doing(|| "cannot make a token".to_owned())?;
    let token = hex::encode(bytes);
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    match made {
        Ok(mut made) => made.write_all(token.as_bytes()).doing(doing).map(|()| token),
        Err(cause) if cause.kind() == IoErrorKind::AlreadyExists => {
            let known = bounded_file::read_text(&file, 2 * TOKEN_BYTES as u64, Links::Refuse).doing(doing)?;
            let is_private = std::fs::metadata(&file).doing(doing)?.permissions().mode() & 0o077 == 0;
            let is_token = known.len() == 2 * TOKEN_BYTES && known.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_private && is_token {
                return Ok(known);
            }
            let error = Error::other("cannot use the token of this workspace");
            let why = if is_private { "it is incomplete" } else { "others can read it" };
            Err(error.because(why).hint(format!("remove {}: the next start makes another", file.display())))
        }
        Err(cause) => Err(cause).doing(doing),
    }
}

fn mcp_service(workspace: PathBuf, set: ToolSet, ends: CancellationToken) -> Service {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_TIMEOUT);
    let config = StreamableHttpServerConfig::default().with_cancellation_token(ends).enforce_origin_validation();
    let config = config.with_allowed_origins(LOCAL_PAGES).with_max_request_body_bytes(MAX_LINE);
    let open = move || Ok(Arc::new(McpServer::new(workspace.clone(), set, true)));
    StreamableHttpService::new(open, Arc::new(sessions), config)
}

async fn accept_connections(listener: TcpListener, service: Service, token: Arc<String>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        // A client that is gone before it was accepted, or no file descriptors are left: the next one may fare better.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (service, token) = (service.clone(), Arc::clone(&token));
        tokio::spawn(async move {
            serve_connection(stream, service, token).await;
            drop(place);
        });
    }
}

async fn serve_connection(stream: TcpStream, service: Service, token: Arc<String>) {
    let _ = stream.set_nodelay(true);
    let handle = move |request: Request<Incoming>| {
        let (service, token) = (service.clone(), Arc::clone(&token));
        async move { Ok::<_, Infallible>(answer(request, &service, &token).await) }
    };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    // It ends with an error where its client does not speak HTTP, or leaves.
    let _ = http.serve_connection(TokioIo::new(stream), service_fn(handle)).await;
}

async fn answer(request: Request<Incoming>, service: &Service, token: &str) -> Response<HttpBody> {
    if request.uri().path() != PATH {
        return refusal(StatusCode::NOT_FOUND, &format!("MCP is served at {PATH}"));
    }
    if !has_token(request.headers().get(AUTHORIZATION), token) {
        let why = "the header `Authorization: Bearer TOKEN` is missing or wrong; `tether mcp --http` prints the token";
        let mut refused = refusal(StatusCode::UNAUTHORIZED, why);
        refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return refused;
    }
    service.handle(request).await
}

fn refusal(status: StatusCode, why: &str) -> Response<HttpBody> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{why}\n"))).boxed());
    *response.status_mut() = status;
    response
}

/// Takes as long for a wrong token as for the right one, whatever they have in common.
fn has_token(header: Option<&HeaderValue>, token: &str) -> bool {
    let given = header.and_then(|value| value.as_bytes().split_at_checked(7));
    let Some((scheme, given)) = given else { return false };
    let differing = given.iter().zip(token.as_bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
    scheme.eq_ignore_ascii_case(b"bearer ") && given.len() == token.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_one() {
        let check = |header: &str, expect| {
            let value = HeaderValue::from_str(header).unwrap();
            assert_eq!(has_token(Some(&value), "abc1"), expect, "{header}");
        };
        check("Bearer abc1", true);
        check("bearer abc1", true);
        for wrong in ["", "Bearer", "Bearer ", "Bearer abc", "Bearer abc12", "Bearer abd1", "Basic abc1", "abc1"] {
            check(wrong, false);
        }
        assert!(!has_token(None, "abc1"));
    }

    #[test]
    fn the_token_stays_the_same_and_must_be_private() {
        let state = tempfile::tempdir().unwrap();
        let token = read_or_create_token(state.path()).unwrap();
        assert_eq!((token.len(), read_or_create_token(state.path()).unwrap()), (64, token));
        let file = state.path().join(TOKEN_FILE);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read_or_create_token(state.path()).unwrap_err().to_string().contains("others can read it"));
        std::fs::write(&file, "short").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(read_or_create_token(state.path()).unwrap_err().to_string().contains("incomplete"));
    }
}
