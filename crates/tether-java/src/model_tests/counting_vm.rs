//! A virtual machine for tests: a JDWP peer over an in-memory stream that counts the suspensions of its threads as the agent
//! of OpenJDK does (`threadControl.c`, `invoker.c`), and can refuse, delay or withhold replies.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tether_base::sync::lock;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, split};
use tokio::sync::mpsc;

const HANDSHAKE: &[u8; 14] = b"JDWP-Handshake";
/// The class of the program; its methods are `main`, `call` and `flag`.
const APP: u64 = 1;
const OBJECT: u64 = 2;
/// A class that is loaded later.
const OTHER: u64 = 3;
const INTERNAL: u16 = 113;
const NOT_SUSPENDED: u16 = 13;
const INVALID_THREAD: u16 = 10;
const ALREADY_INVOKING: u16 = 502;

/// What goes wrong with a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ReplyFault {
    /// The command is not carried out.
    Refused,
    /// It is carried out, and the reply comes after the time limits of the client.
    Late,
}

/// A handle to the machine, for the script of a test.
#[derive(Clone)]
pub(super) struct CountingVm {
    state: Arc<Mutex<VmState>>,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
}

#[derive(Default)]
struct VmState {
    counts: HashMap<u64, u32>,
    all: u32,
    /// Threads at an event: methods can be called in them.
    at_event: HashSet<u64>,
    /// The packets of the calls that have not returned.
    calls: HashMap<u64, u32>,
    /// Calls do not return.
    holds_calls: bool,
    /// Each call loads a class.
    loads_in_calls: bool,
    /// Nothing is answered, and nothing done.
    is_silent: bool,
    last_request: i32,
    /// The method of each request for breakpoints.
    breakpoints: HashMap<i32, u64>,
    prepare_request: Option<i32>,
    steps: HashMap<u64, i32>,
    replies: usize,
    /// Counted from 0.
    fault: Option<(usize, ReplyFault)>,
}

/// Data that is read or written in the sizes of this machine: all ids have 8 bytes.
struct Data<'a>(&'a [u8]);

impl Data<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk().expect("a whole command");
        self.0 = rest;
        *taken
    }

    fn id(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }

    fn number(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    fn text(&mut self) -> String {
        let length = self.number() as usize;
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }
}

fn text(value: &str) -> Vec<u8> {
    [&(value.len() as i32).to_be_bytes()[..], value.as_bytes()].concat()
}

fn number(value: i32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

fn id(value: u64) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

fn location(class: u64, method: u64) -> Vec<u8> {
    [vec![1], id(class), id(method), id(0)].concat()
}

impl CountingVm {
    /// A machine with these threads on the other side of a stream.
    pub(super) fn start(stream: DuplexStream, threads: &[u64]) -> CountingVm {
        let (outgoing, mut packets) = mpsc::unbounded_channel::<Vec<u8>>();
        let state = VmState { counts: threads.iter().map(|thread| (*thread, 0)).collect(), ..VmState::default() };
        let vm = CountingVm { state: Arc::new(Mutex::new(state)), outgoing };
        let (mut read, mut write) = split(stream);
        let reading = vm.clone();
        tokio::spawn(async move {
            let mut hello = [0; 14];
            read.read_exact(&mut hello).await.unwrap();
            reading.outgoing.send(HANDSHAKE.to_vec()).unwrap();
            loop {
                let mut header = [0; 11];
                if read.read_exact(&mut header).await.is_err() {
                    return;
                }
                let length = u32::from_be_bytes(header[..4].try_into().unwrap()) as usize;
                let mut data = vec![0; length - 11];
                read.read_exact(&mut data).await.unwrap();
                let packet = u32::from_be_bytes(header[4..8].try_into().unwrap());
                reading.handle(packet, (header[9], header[10]), &data);
            }
        });
        tokio::spawn(async move {
            while let Some(packet) = packets.recv().await {
                if write.write_all(&packet).await.is_err() {
                    return;
                }
            }
        });
        vm
    }

    pub(super) fn counts(&self) -> HashMap<u64, u32> {
        lock(&self.state).counts.clone()
    }

    pub(super) fn replies(&self) -> usize {
        lock(&self.state).replies
    }

    /// The reply with that number from now on is refused or late.
    pub(super) fn fail_reply(&self, number: usize, fault: ReplyFault) {
        let mut state = lock(&self.state);
        state.fault = Some((state.replies + number, fault));
    }

    pub(super) fn fall_silent(&self) {
        lock(&self.state).is_silent = true;
    }

    pub(super) fn hold_calls(&self, holds: bool) {
        lock(&self.state).holds_calls = holds;
        self.advance();
    }

    pub(super) fn load_classes_in_calls(&self) {
        lock(&self.state).loads_in_calls = true;
    }

    pub(super) fn send_garbage(&self) {
        self.outgoing.send(vec![255; 16]).unwrap();
    }

    /// A running thread reaches the breakpoint of a method, if there is one.
    pub(super) fn reach_breakpoint(&self, thread: u64, method: u64) {
        let request = {
            let mut state = lock(&self.state);
            let request = state.breakpoints.iter().find(|(_, it)| **it == method).map(|(request, _)| *request);
            request.filter(|_| state.suspend_at_event(thread))
        };
        if let Some(request) = request {
            self.send_event(2, request, [id(thread), location(APP, method)].concat());
        }
    }

    /// A running thread loads a class, if that is watched.
    pub(super) fn load_class(&self, thread: u64) {
        let request = {
            let mut state = lock(&self.state);
            state.prepare_request.filter(|_| state.suspend_at_event(thread))
        };
        if let Some(request) = request {
            self.send_event(8, request, [id(thread), vec![1], id(OTHER), text("LOther;"), number(7)].concat());
        }
    }

    /// A thread is suspended at an event of a kind that no client knows.
    pub(super) fn send_unknown_event(&self, thread: u64) {
        if lock(&self.state).suspend_at_event(thread) {
            self.send_event(77, 1, [id(thread), vec![1, 2, 3]].concat());
        }
    }

    fn send_event(&self, kind: u8, request: i32, data: Vec<u8>) {
        let event = [vec![1], number(1), vec![kind], number(request), data].concat();
        let header = [number(11 + event.len() as i32), number(1), vec![0, 64, 100]].concat();
        self.outgoing.send([header, event].concat()).unwrap();
    }

    fn send_reply(&self, packet: u32, reply: Result<Vec<u8>, u16>, is_late: bool) {
        let (error, data) = reply.map_or_else(|error| (error, Vec::new()), |data| (0, data));
        let header = [number(11 + data.len() as i32), packet.to_be_bytes().to_vec(), vec![0x80]].concat();
        let bytes = [header, error.to_be_bytes().to_vec(), data].concat();
        let outgoing = self.outgoing.clone();
        match is_late {
            false => drop(outgoing.send(bytes)),
            true => drop(tokio::spawn(async move {
                super::pass(Duration::from_secs(25)).await;
                let _ = outgoing.send(bytes);
            })),
        }
    }

    fn handle(&self, packet: u32, command: (u8, u8), data: &[u8]) {
        let mut state = lock(&self.state);
        if state.is_silent {
            return;
        }
        let fault = state.next_fault();
        let reply = match fault {
            Some(ReplyFault::Refused) => Some(Err(INTERNAL)),
            _ => match command {
                (3, 3) => state.begin_call(packet, Data(data)),
                _ => Some(state.answer(command, Data(data))),
            },
        };
        let loads = reply.is_none() && state.loads_in_calls;
        drop(state);
        if loads {
            self.load_class(Data(&data[8..]).id());
        }
        if let Some(reply) = reply {
            self.send_reply(packet, reply, fault == Some(ReplyFault::Late));
        }
        self.advance();
    }

    /// Lets the threads that run go on: calls return, steps end.
    fn advance(&self) {
        let (returned, steps) = {
            let mut state = lock(&self.state);
            let runs = |state: &VmState, thread: &u64| state.counts.get(thread) == Some(&0);
            let mut returning: Vec<u64> = state.calls.keys().filter(|it| runs(&state, it)).copied().collect();
            returning.retain(|_| !state.holds_calls && !state.is_silent);
            let mut returned = Vec::new();
            for thread in returning {
                let packet = state.calls.remove(&thread).unwrap();
                state.suspend_at_event(thread);
                returned.push((packet, state.next_fault()));
            }
            let steps_on = |state: &VmState, it: &u64| runs(state, it) && !state.calls.contains_key(it);
            let stepping: Vec<u64> = state.steps.keys().filter(|it| steps_on(&state, it)).copied().collect();
            let mut steps = Vec::new();
            for thread in stepping {
                state.suspend_at_event(thread);
                steps.push((thread, state.steps.remove(&thread).unwrap()));
            }
            (returned, steps)
        };
        for (packet, fault) in returned {
            // The boolean `true`, and no exception.
            let value = [vec![b'Z', 1], vec![b'L'], id(0)].concat();
            let reply = if fault == Some(ReplyFault::Refused) { Err(INTERNAL) } else { Ok(value) };
            self.send_reply(packet, reply, fault == Some(ReplyFault::Late));
        }
        for (thread, request) in steps {
            self.send_event(1, request, [id(thread), location(APP, 1)].concat());
        }
    }
}

impl VmState {
    fn next_fault(&mut self) -> Option<ReplyFault> {
        self.replies += 1;
        self.fault.filter(|(number, _)| *number + 1 == self.replies).map(|(_, fault)| fault)
    }

    /// `false`: the thread does not run, so it reaches nothing.
    fn suspend_at_event(&mut self, thread: u64) -> bool {
        let count = self.counts.entry(thread).or_default();
        if *count > 0 || self.is_silent {
            return false;
        }
        *count = 1;
        self.at_event.insert(thread);
        true
    }

    fn resume_thread(&mut self, thread: u64) {
        let count = self.counts.entry(thread).or_default();
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.at_event.remove(&thread);
        }
    }

    /// `None`: the reply comes when the call has returned.
    fn begin_call(&mut self, packet: u32, mut data: Data<'_>) -> Option<Result<Vec<u8>, u16>> {
        let (_class, thread) = (data.id(), data.id());
        if self.calls.contains_key(&thread) {
            return Some(Err(ALREADY_INVOKING));
        }
        if !self.at_event.contains(&thread) {
            return Some(Err(INVALID_THREAD));
        }
        self.calls.insert(thread, packet);
        self.resume_thread(thread);
        None
    }

    fn answer(&mut self, command: (u8, u8), mut data: Data<'_>) -> Result<Vec<u8>, u16> {
        Ok(match command {
            (1, 1) => [text("a test"), number(17), number(0), text("17"), text("CountingVM")].concat(),
            (1, 2) => {
                let class = match data.text().as_str() {
                    "LApp;" => APP,
                    "Ljava/lang/Object;" => OBJECT,
                    _ => return Ok(number(0)),
                };
                [number(1), vec![1], id(class), number(7)].concat()
            }
            (1, 4) => {
                let mut threads: Vec<u64> = self.counts.keys().copied().collect();
                threads.sort_unstable();
                [number(threads.len() as i32), threads.into_iter().flat_map(id).collect()].concat()
            }
            (1, 6) => {
                self.counts.values_mut().for_each(|count| *count = 0);
                Vec::new()
            }
            (1, 7) => [8; 5].into_iter().flat_map(number).collect(),
            (1, 8) => {
                self.all += 1;
                self.counts.values_mut().for_each(|count| *count += 1);
                Vec::new()
            }
            (1, 9) => {
                self.all = self.all.saturating_sub(1);
                let threads: Vec<u64> = self.counts.keys().copied().collect();
                threads.into_iter().for_each(|thread| self.resume_thread(thread));
                Vec::new()
            }
            (1, 17) => vec![1; 32],
            (1, 20) => [number(1), vec![1], id(APP), text("LApp;"), text(""), number(7)].concat(),
            (2, 1) => text(match data.id() {
                APP => "LApp;",
                OTHER => "LOther;",
                _ => "Ljava/lang/Object;",
            }),
            (2, 6) => [number(1), vec![b'I'], number(5)].concat(),
            (2, 7) => text("App.java"),
            (2, 10) => number(0),
            (2, 14) => match data.id() {
                OBJECT => number(0),
                _ => [number(1), id(1), text("total"), text("I"), text(""), number(8)].concat(),
            },
            (2, 15) => match data.id() {
                OBJECT => number(0),
                _ => {
                    let method = |it, name, kind| [id(it), text(name), text(kind), text(""), number(8)].concat();
                    let methods = [method(1, "main", "()V"), method(2, "call", "()Z"), method(3, "flag", "()Z")];
                    [number(3), methods.concat()].concat()
                }
            },
            (3, 1) => id(if data.id() == OBJECT { 0 } else { OBJECT }),
            (6, 1) => [id(0), id(9), number(1), id(0), number(10)].concat(),
            (6, 5) => return Err(101),
            (9, 7 | 8) | (1, 10) => Vec::new(),
            (11, 1) => text(&format!("thread-{}", data.id())),
            (11, 2) => {
                *self.counts.entry(data.id()).or_default() += 1;
                Vec::new()
            }
            (11, 3) => {
                self.resume_thread(data.id());
                Vec::new()
            }
            (11, 4) => [number(1), number(0)].concat(),
            (11, 6 | 7) if self.counts.get(&data.id()) == Some(&0) => return Err(NOT_SUSPENDED),
            (11, 6) => [number(1), id(77), location(APP, 1)].concat(),
            (11, 7) => number(1),
            (11, 8) => number(0),
            (11, 9) => [vec![b'L'], id(0)].concat(),
            (15, 1) => number(self.add_request(data)),
            (15, 2) => {
                let [_kind] = data.take();
                let request = data.number();
                self.breakpoints.remove(&request);
                self.steps.retain(|_, it| *it != request);
                Vec::new()
            }
            _ => return Err(99),
        })
    }

    fn add_request(&mut self, mut data: Data<'_>) -> i32 {
        self.last_request += 1;
        let [kind, _policy] = data.take();
        let _count = data.number();
        match kind {
            1 => {
                let [_modifier] = data.take();
                self.steps.insert(data.id(), self.last_request);
            }
            2 => {
                let [_modifier, _tag] = data.take();
                let _class = data.id();
                self.breakpoints.insert(self.last_request, data.id());
            }
            8 => self.prepare_request = self.prepare_request.or(Some(self.last_request)),
            _ => {}
        }
        self.last_request
    }
}
