//! The frames of an editor's stdin and stdout, and the errors that are written to it.
//!
//! Does not depend on the supervisor.

use bytes::Bytes;
use futures_util::SinkExt;
use serde_json::{Value, json};
use tether_base::error::{Error, Result};
use tether_wire::frames::{ContentLength, FrameError};
use tether_wire::rpc::{PARSE_ERROR, RpcError};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tokio_util::codec::FramedWrite;

/// The frames of stdin, read ahead.
pub(super) type EditorInput = mpsc::Receiver<Result<Bytes, FrameError>>;
/// The frames of stdout.
pub(super) type EditorOutput<W> = FramedWrite<W, ContentLength>;

/// Responds to what is no frame: where the next one begins is unknown, so this is the end.
pub(super) async fn report_broken_input(
    output: &mut EditorOutput<impl AsyncWrite + Unpin>,
    cause: FrameError,
) -> Error {
    let text = format!("stdin is not a stream of Content-Length frames: {cause}");
    let _ = send_error(output, &Value::Null, &RpcError::plain(PARSE_ERROR, text)).await;
    let error = Error::usage("cannot read a message on stdin").because(cause);
    error.hint("each message is `Content-Length: BYTES`, an empty line, and that many bytes of JSON")
}

/// Sends an error response.
pub(super) async fn send_error(
    output: &mut EditorOutput<impl AsyncWrite + Unpin>,
    id: &Value,
    error: &RpcError,
) -> Result<(), FrameError> {
    output.send(Bytes::from(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())).await
}
