//! The client against a scripted virtual machine over an in-memory stream.

use tokio::io::DuplexStream;

use super::*;
use crate::commands::objects::StringValue;
use crate::commands::threads::ThreadName;
use crate::commands::virtual_machine::{AllThreads, Version};
use crate::events::JdwpEvent;
use crate::packet::encode_reply;
use crate::values::ObjectId;

/// The other side: it reads commands and sends what it is told to.
struct ScriptedVm {
    stream: DuplexStream,
}

impl ScriptedVm {
    async fn accept(mut stream: DuplexStream, sizes: [i32; 5]) -> ScriptedVm {
        let mut hello = [0; 14];
        stream.read_exact(&mut hello).await.unwrap();
        assert_eq!(&hello, HANDSHAKE);
        stream.write_all(HANDSHAKE).await.unwrap();
        let mut vm = ScriptedVm { stream };
        let (id, set, command, _) = vm.next_command().await;
        assert_eq!((set, command), (1, 7), "the sizes of ids are asked first");
        let data: Vec<u8> = sizes.into_iter().flat_map(i32::to_be_bytes).collect();
        vm.send(encode_reply(id, 0, &data)).await;
        vm
    }

    async fn next_command(&mut self) -> (u32, u8, u8, Vec<u8>) {
        let mut header = [0; 11];
        self.stream.read_exact(&mut header).await.unwrap();
        let length = u32::from_be_bytes(header[..4].try_into().unwrap()) as usize;
        let mut data = vec![0; length - 11];
        self.stream.read_exact(&mut data).await.unwrap();
        (u32::from_be_bytes(header[4..8].try_into().unwrap()), header[9], header[10], data)
    }

    async fn send(&mut self, packet: Bytes) {
        self.stream.write_all(&packet).await.unwrap();
    }
}

async fn opened(sizes: [i32; 5]) -> (JdwpClient, JdwpEvents, tokio::task::JoinHandle<String>, ScriptedVm) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (opened, vm) = tokio::join!(JdwpClient::open(ours), ScriptedVm::accept(theirs, sizes));
    let (client, events, driver) = opened.unwrap();
    (client, events, tokio::spawn(driver), vm)
}

#[tokio::test]
async fn ids_have_the_sizes_that_the_virtual_machine_reports() {
    let (client, mut events, _driver, mut vm) = opened([2, 3, 4, 5, 6]).await;
    let call = client.request(&AllThreads {});
    let script = async {
        let (id, ..) = vm.next_command().await;
        vm.send(encode_reply(id, 0, &[0, 0, 0, 2, 0, 0, 0, 7, 1, 0, 0, 0])).await;
        // A breakpoint, in the sizes of thread (4), class (5), method (3), index (8).
        let mut event = vec![1, 0, 0, 0, 1, 2, 0, 0, 0, 9, 0, 0, 0, 7];
        event.extend([1, 0, 0, 0, 0, 8, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 5]);
        vm.send(encode_command(1, 64, 100, &event)).await;
    };
    let (threads, ()) = tokio::join!(call, script);
    assert_eq!(threads.unwrap(), [ObjectId(7), ObjectId(0x0100_0000)]);
    let composite = events.next().await.unwrap().unwrap();
    let JdwpEvent::Breakpoint { request: 9, thread: ObjectId(7), location } = composite.events[0] else { panic!() };
    assert_eq!((location.class.0, location.method.0, location.index), (8, 6, 5));
    let (call, request) = (client.request(&ThreadName { thread: ObjectId(0x0102_0304) }), vm.next_command());
    tokio::select! {
        _ = call => panic!("there was no reply"),
        (_, set, command, data) = request => assert_eq!((set, command, data), (11, 1, vec![1, 2, 3, 4])),
    }
}

#[tokio::test]
async fn replies_come_in_any_order_and_errors_are_named() {
    let (client, _events, driver, mut vm) = opened([8; 5]).await;
    let calls = async {
        let (version, text) =
            tokio::join!(client.request(&Version {}), client.request(&StringValue { string: ObjectId(1) }));
        assert_eq!(
            version.unwrap_err().to_string(),
            "VirtualMachine.Version failed: the virtual machine has ended (JDWP error 112)"
        );
        assert_eq!(text.unwrap(), "Grüße");
    };
    let script = async {
        let ((first, ..), (second, ..)) = (vm.next_command().await, vm.next_command().await);
        vm.send(encode_reply(second, 0, &[&[0, 0, 0, 7], "Grüße".as_bytes()].concat())).await;
        vm.send(encode_reply(77, 0, &[])).await;
        vm.send(encode_reply(first, 112, &[])).await;
    };
    tokio::join!(calls, script);
    drop(vm);
    assert_eq!(driver.await.unwrap(), "the virtual machine closed it");
    let error = client.request(&Version {}).await.unwrap_err();
    assert_eq!(error, JdwpError::Closed("the virtual machine closed it".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn silence_and_garbage_are_errors() {
    let (ours, theirs) = tokio::io::duplex(64);
    let error = JdwpClient::open(ours).await.err().unwrap();
    assert!(error.to_string().contains("no answer within 10s"), "{error}");
    drop(theirs);
    let (ours, mut theirs) = tokio::io::duplex(64);
    theirs.write_all(b"HTTP/1.1 400 Bad Request").await.unwrap();
    let error = JdwpClient::open(ours).await.err().unwrap();
    assert!(error.to_string().contains("the answer was \"HTTP/1.1"), "{error}");

    let (client, _events, _driver, vm) = opened([8; 5]).await;
    let error = client.request(&Version {}).await.unwrap_err();
    assert_eq!(error.to_string(), "VirtualMachine.Version was not answered within 10s");
    drop(vm);
    let (client, _events, driver, mut vm) = opened([8; 5]).await;
    vm.send(Bytes::from_static(&[255, 255, 255, 255, 0, 0, 0, 0])).await;
    let reason = driver.await.unwrap();
    assert!(reason.contains("a packet of 4294967295 bytes"), "{reason}");
    assert!(client.request(&Version {}).await.unwrap_err().is_closed());
}

#[tokio::test]
async fn sizes_that_are_none_end_the_start() {
    let (ours, theirs) = tokio::io::duplex(1 << 10);
    let (opened, _vm) = tokio::join!(JdwpClient::open(ours), ScriptedVm::accept(theirs, [8, 8, 9, 8, 8]));
    assert!(opened.err().unwrap().to_string().contains("an id of 9 bytes"));
}

#[tokio::test]
async fn a_flood_of_events_ends_the_connection_instead_of_filling_the_memory() {
    let (_client, _events, driver, mut vm) = opened([8; 5]).await;
    let packet = encode_command(1, 64, 100, &[0; 1 << 20]);
    let flood = async {
        for _ in 0..100 {
            if vm.stream.write_all(&packet).await.is_err() {
                return;
            }
        }
        panic!("100 MiB of events were taken");
    };
    let (reason, ()) = tokio::join!(driver, flood);
    assert!(reason.unwrap().contains("more events than could be taken"));
}

#[tokio::test(start_paused = true)]
async fn commands_are_sent_in_the_order_of_the_calls_and_a_late_reply_reaches_who_waits_for_it() {
    let (client, _events, _driver, mut vm) = opened([8; 5]).await;
    let first = client.send(&ThreadName { thread: ObjectId(1) }).unwrap();
    let second = client.send(&ThreadName { thread: ObjectId(2) }).unwrap();
    let given_up = client.request(&Version {}).await.unwrap_err();
    assert!(matches!(given_up, JdwpError::TimedOut { .. }), "{given_up}");
    let ((one, .., data), (two, ..)) = (vm.next_command().await, vm.next_command().await);
    assert_eq!(data, 1u64.to_be_bytes());
    vm.send(encode_reply(two, 13, &[])).await;
    vm.send(encode_reply(one, 0, &[0, 0, 0, 1, b'a'])).await;
    assert_eq!(first.reply().await.unwrap(), "a");
    assert!(second.reply().await.unwrap_err().has_code(JdwpErrorCode::THREAD_NOT_SUSPENDED));
}

#[tokio::test]
async fn of_events_that_cannot_be_read_the_thread_is_known() {
    let (_client, mut events, _driver, mut vm) = opened([8; 5]).await;
    // The start of a thread, then an event of an unknown kind.
    let started = [vec![6, 0, 0, 0, 9], 7u64.to_be_bytes().to_vec()].concat();
    let unknown = [vec![77, 0, 0, 0, 9], 8u64.to_be_bytes().to_vec(), vec![1, 2]].concat();
    let composite = [vec![1, 0, 0, 0, 2], started, unknown].concat();
    vm.send(encode_command(1, 64, 100, &composite)).await;
    let read = events.next().await.unwrap().unwrap();
    assert_eq!(read.events, [JdwpEvent::ThreadStart { request: 9, thread: ObjectId(7) }]);
    assert_eq!((read.suspend_policy, read.unreadable.unwrap().thread), (1, Some(ObjectId(8))));
    // The unloading of a class has no thread, and an empty packet says nothing.
    for (packet, is_error) in [(vec![1, 0, 0, 0, 1, 9, 0, 0, 0, 9, 0, 0, 0, 99], false), (vec![], true)] {
        vm.send(encode_command(1, 64, 100, &packet)).await;
        let read = events.next().await.unwrap();
        assert_eq!(read.is_err(), is_error);
        assert!(read.ok().is_none_or(|read| read.unreadable.unwrap().thread.is_none()));
    }
}
