//! What a message costs: whole conversations through a pipe, so that framing, envelopes, queues and wake-ups count.
//!
//! `cargo bench --bench dap`. Goals: at least 400,000 events of 1 KB a second; one of 10 MB within 40 ms.

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tether_dap::{DapClient, DapConnection, DapIncoming};
use tokio::io::AsyncWriteExt;
use tokio::runtime::Runtime;

const BATCH: usize = 10_000;

/// The bytes of one event whose body has about this length.
fn event(length: usize) -> Vec<u8> {
    let text = "x".repeat(length);
    let body = format!(r#"{{"seq":1,"type":"event","event":"stopped","body":{{"reason":"step","text":"{text}"}}}}"#);
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// From the first byte written into the pipe to the last event in the consumer's hands.
fn receive(runtime: &Runtime, bytes: &[u8], count: usize) -> Duration {
    let (read, mut write) = runtime.block_on(async {
        let (write, read) = tokio::net::unix::pipe::pipe().unwrap();
        (read, write)
    });
    let bytes = bytes.to_vec();
    runtime.block_on(async move {
        let (_client, mut inbox, driver) = DapClient::over(DapConnection::over(read, tokio::io::sink()));
        tokio::spawn(driver);
        let began = Instant::now();
        let writing = tokio::spawn(async move { write.write_all(&bytes).await.unwrap() });
        for _ in 0..count {
            assert!(matches!(inbox.next().await, Some(DapIncoming::Event(_))));
        }
        writing.await.unwrap();
        began.elapsed()
    })
}

fn bench(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut group = criterion.benchmark_group("dap");
    let small = event(1_000).repeat(BATCH);
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("events_of_1_kb", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| receive(&runtime, &small, BATCH)).sum());
    });
    let large = event(10_000_000);
    group.throughput(Throughput::Bytes(large.len() as u64));
    group.bench_function("an_event_of_10_mb", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| receive(&runtime, &large, 1)).sum());
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
