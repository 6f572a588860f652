//! A virtual machine for tests: it answers as it is told, and records what it was asked.

use std::sync::{Arc, Mutex};

use tether_base::sync::lock;
use tether_dap::{DapConnection, DapServer};
use tether_jdwp::JdwpClient;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::java_vm::JavaVm;
use super::session::JavaSession;
use super::sources::SourceFolders;

/// The commands that it was asked, by their sets and numbers, with their data.
pub(crate) type RecordedCommands = Arc<Mutex<Vec<(u8, u8, Vec<u8>)>>>;

/// A connected virtual machine whose ids have 8 bytes. `answer` gets the set, the number and the data of a command, and
/// returns the data of the reply, or an error code.
pub(crate) async fn open_scripted_vm(
    answer: impl FnMut(u8, u8, &[u8]) -> Result<Vec<u8>, u16> + Send + 'static,
) -> (JavaVm, RecordedCommands) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let asked = RecordedCommands::default();
    tokio::spawn(serve_commands(theirs, answer, Arc::clone(&asked)));
    let (client, events, driver) = JdwpClient::open(ours).await.unwrap();
    tokio::spawn(async move {
        driver.await;
        drop(events);
    });
    let vm = JavaVm::open(client).await.unwrap();
    lock(&asked).clear();
    (vm, asked)
}

/// A session over such a virtual machine; its client reads nothing.
pub(crate) async fn open_scripted_session(
    answer: impl FnMut(u8, u8, &[u8]) -> Result<Vec<u8>, u16> + Send + 'static,
) -> (JavaSession, RecordedCommands) {
    let (vm, asked) = open_scripted_vm(answer).await;
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(ours);
    let (dap, inbox, driver) = DapServer::over(DapConnection::over(read, write));
    tokio::spawn(async move {
        driver.await;
        drop((inbox, theirs));
    });
    let sources = SourceFolders::default();
    let (tables, code_origin, scratch) = Default::default();
    let (own, order, beside) = (Default::default(), Default::default(), tokio::sync::mpsc::unbounded_channel().0);
    (JavaSession { vm, dap, sources, tables, code_origin, scratch, own, order, beside }, asked)
}

/// Ends with its connection.
async fn serve_commands(
    mut stream: DuplexStream,
    mut answer: impl FnMut(u8, u8, &[u8]) -> Result<Vec<u8>, u16>,
    asked: RecordedCommands,
) {
    let mut hello = [0; 14];
    stream.read_exact(&mut hello).await.unwrap();
    stream.write_all(&hello).await.unwrap();
    let mut header = [0; 11];
    while stream.read_exact(&mut header).await.is_ok() {
        let length = u32::from_be_bytes(header[..4].try_into().unwrap()) as usize;
        let mut data = vec![0; length - header.len()];
        stream.read_exact(&mut data).await.unwrap();
        let (set, number) = (header[9], header[10]);
        lock(&asked).push((set, number, data.clone()));
        let reply = match (set, number) {
            (1, 7) => Ok([0, 0, 0, 8].repeat(5)),
            (1, 1) => Ok([text("a virtual machine"), vec![0, 0, 0, 17, 0, 0, 0, 0], text("17"), text("VM")].concat()),
            (1, 17) => Ok(vec![1; 32]),
            (15, 1) => Ok(vec![0, 0, 0, 1]),
            _ => answer(set, number, &data),
        };
        let (error, data) = reply.map_or_else(|error| (error, Vec::new()), |data| (0, data));
        let length = (header.len() + data.len()) as u32;
        let packet = [&length.to_be_bytes()[..], &header[4..8], &[0x80], &error.to_be_bytes(), &data].concat();
        if stream.write_all(&packet).await.is_err() {
            return;
        }
    }
}

/// A text as it is sent.
pub(crate) fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

/// An id as it is sent.
pub(crate) fn id(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}
