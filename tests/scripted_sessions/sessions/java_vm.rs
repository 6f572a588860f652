//! A scripted virtual machine: speaks JDWP, answers late, twice, wrong or not at all, and sends events that it was asked for.
//!
//! What it says is plausible as long as it says it at once: one request has one answer.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::choices::Choices;
use super::java_world::{JavaWorld, PacketText};
use super::peer_loop::{PeerManner, ScriptedPeer, choose_calm, serve_requests};

const HANDSHAKE: &[u8; 14] = b"JDWP-Handshake";
const HEADER: usize = 11;
/// A larger command is no command of ours.
const MAX_COMMAND: usize = 1 << 20;
/// VirtualMachine.IDSizes, EventRequest.Set, EventRequest.Clear
const ID_SIZES: (u8, u8) = (1, 7);
const SET_EVENT: (u8, u8) = (15, 1);
const CLEAR_EVENT: (u8, u8) = (15, 2);

struct ScriptedVm {
    manner: PeerManner,
    world: JavaWorld,
    out: mpsc::UnboundedSender<Option<Vec<u8>>>,
    /// What events were requested of each kind, by the id of the request.
    requests: Mutex<BTreeMap<i32, u8>>,
}

/// One command as it was received.
struct Command {
    id: u32,
    number: (u8, u8),
    data: Vec<u8>,
}

/// Serves one debugger.
pub async fn serve_vm(listener: TcpListener, choices: Choices) {
    let Ok((mut stream, _)) = listener.accept().await else { return };
    let mut handshake = [0; HANDSHAKE.len()];
    if stream.read_exact(&mut handshake).await.is_err() || stream.write_all(HANDSHAKE).await.is_err() {
        return;
    }
    let (mut read, out) = split_stream(stream);
    let calm = choose_calm(&choices, 40);
    let world = JavaWorld::new(u64::from(choices.byte()));
    let vm = ScriptedVm { manner: PeerManner::choose(choices, calm), world, out, requests: Mutex::default() };
    let (tell, commands) = mpsc::unbounded_channel();
    // A task of its own: reading a command must not be interrupted.
    tokio::spawn(async move {
        while let Some(command) = read_command(&mut read).await {
            if tell.send(command).is_err() {
                return;
            }
        }
    });
    serve_requests(vm, commands).await;
}

/// A writer of its own: late answers come from other tasks. `None` closes the connection.
fn split_stream(stream: TcpStream) -> (OwnedReadHalf, mpsc::UnboundedSender<Option<Vec<u8>>>) {
    let (read, mut write) = stream.into_split();
    let (out, mut queue) = mpsc::unbounded_channel::<Option<Vec<u8>>>();
    tokio::spawn(async move {
        while let Some(Some(packet)) = queue.recv().await {
            if write.write_all(&packet).await.is_err() {
                return;
            }
        }
    });
    (read, out)
}

impl ScriptedPeer for ScriptedVm {
    type Request = Command;

    fn manner(&self) -> &PeerManner {
        &self.manner
    }

    fn close(&self) {
        self.send(None);
    }

    fn send_event_when_quiet(&self) {
        if !self.manner.take_calm() {
            self.send_event();
        }
    }

    fn send_reply(&self, command: &Command) {
        let data = self.plausible_data(command);
        self.send(Some(encode_reply(command.id, 0, &data)));
    }

    fn send_wrong(&self, command: &Command) {
        let choices = &self.manner.choices;
        let mut data = self.plausible_data(command);
        match choices.below(7) {
            // An error: of threads, objects, classes, frames; of the machine; without a name.
            0 | 1 => {
                let code = choices.pick(&[10, 13, 20, 21, 22, 23, 25, 30, 35, 99, 100, 101, 112, 113, 502, 65_535]);
                return self.send(Some(encode_reply(command.id, code, &[])));
            }
            2 => data.truncate(choices.below(256).min(data.len())),
            3 => data = (0..choices.below(64)).map(|_| choices.byte()).collect(),
            4 => {
                let number = (choices.byte() % 18, choices.byte() % 21);
                data = self.world.reply(number, &command.data);
            }
            // A number within is an edge.
            5 => {
                let at = choices.below(256).min(data.len().saturating_sub(4));
                let edge = choices.pick(&[-1_i32, i32::MAX, i32::MIN, 0, 65_536, -2]).to_be_bytes();
                data.iter_mut().skip(at).zip(edge).for_each(|(byte, edge)| *byte = edge);
            }
            _ => {
                for _ in 0..4 {
                    let at = choices.below(256);
                    data.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= choices.byte());
                }
            }
        }
        self.send(Some(encode_reply(command.id, 0, &data)));
    }

    /// Of kinds that were requested, and at times of others.
    fn send_event(&self) {
        let choices = &self.manner.choices;
        let requests: Vec<(i32, u8)> = self.requests.lock().unwrap().iter().map(|(id, kind)| (*id, *kind)).collect();
        let count = 1 + choices.below(8) / 7;
        let mut packet = PacketText::default().byte(choices.pick(&[1, 1, 1, 1, 2, 2, 2, 0])).int(count as i32);
        for _ in 0..count {
            let (request, kind) = match requests.len() {
                0 => (choices.number() as i32, choices.byte()),
                _ if choices.is_one_in(10) => (0, choices.pick(&[99, 90, 7, 6, 1, 2])),
                len => requests[choices.below(len)],
            };
            packet = self.world.event(packet, choices, (kind, request));
        }
        let mut data = packet.bytes;
        if choices.is_one_in(30) {
            data.truncate(choices.below(256));
        }
        self.send(Some(encode_command(64, 100, &data)));
    }
}

impl ScriptedVm {
    fn send(&self, packet: Option<Vec<u8>>) {
        // Fails when the connection has ended.
        let _ = self.out.send(packet);
    }

    fn plausible_data(&self, command: &Command) -> Vec<u8> {
        match command.number {
            ID_SIZES => PacketText::default().int(8).int(8).int(8).int(8).int(8).bytes,
            SET_EVENT => {
                let mut requests = self.requests.lock().unwrap();
                let id = requests.len() as i32 + 1;
                requests.insert(id, command.data.first().copied().unwrap_or(0));
                PacketText::default().int(id).bytes
            }
            CLEAR_EVENT => Vec::new(),
            number => self.world.reply(number, &command.data),
        }
    }
}

/// `None`: the debugger has left.
async fn read_command(read: &mut OwnedReadHalf) -> Option<Command> {
    let mut header = [0; HEADER];
    read.read_exact(&mut header).await.ok()?;
    let [a, b, c, d, e, f, g, h, _flags, set, number] = header;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    assert!((HEADER..MAX_COMMAND).contains(&length), "the adapter sends a packet of {length} bytes");
    let mut data = vec![0; length - HEADER];
    read.read_exact(&mut data).await.ok()?;
    Some(Command { id: u32::from_be_bytes([e, f, g, h]), number: (set, number), data })
}

fn encode_reply(id: u32, error: u16, data: &[u8]) -> Vec<u8> {
    encode_packet(id, [0x80, (error >> 8) as u8, error as u8], data)
}

fn encode_command(set: u8, number: u8, data: &[u8]) -> Vec<u8> {
    encode_packet(1 << 30, [0, set, number], data)
}

fn encode_packet(id: u32, kind: [u8; 3], data: &[u8]) -> Vec<u8> {
    let mut packet = ((HEADER + data.len()) as u32).to_be_bytes().to_vec();
    packet.extend(id.to_be_bytes());
    packet.extend(kind);
    packet.extend(data);
    packet
}
