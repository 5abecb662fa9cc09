//! Requests that are longer than a connection's own buffers: they share one memory, wait for it, and nobody
//! waits for ever.

#[path = "suite/support/mod.rs"]
mod support;

use nandscape_nbd::limits::LEAST_MEMORY_BYTES;
use nandscape_nbd::server::ServerOptions;
use nandscape_nbd::wire::command;
use std::time::Duration;
use support::{Served, request};

const MIB: u32 = 1 << 20;
/// Of the 13 MiB that the namespace has.
const LONG: u32 = 5 * MIB;

/// Room for some requests of [`LONG`], and clients that may be slow for so long.
fn options(patience: Duration) -> ServerOptions {
    ServerOptions { memory_bytes: LEAST_MEMORY_BYTES, patience, ..ServerOptions::default() }
}

/// A test that takes longer has found a hang, and not a slow machine.
const FOR_EVER: Duration = Duration::from_secs(3600);

#[test]
fn more_long_requests_than_there_is_memory_for_are_all_answered() {
    let served = Served::new(options(FOR_EVER));
    std::thread::scope(|scope| {
        for number in 0..10_u8 {
            let mut client = served.client("ns1", number.is_multiple_of(2));
            scope.spawn(move || {
                let data = vec![number + 1; LONG as usize];
                for _ in 0..3 {
                    client.write(0, &data);
                    let read = client.read(0, LONG);
                    assert!(read.iter().all(|byte| (1..=10).contains(byte)), "what nobody wrote");
                    // The whole write is one command.
                    assert_eq!(read, vec![read[0]; LONG as usize], "two writes are mixed");
                }
            });
        }
    });
}

#[test]
fn a_read_and_a_write_of_any_length_around_a_connections_own_buffers_go_well() {
    let served = Served::new(options(FOR_EVER));
    let mut client = served.client("ns1", false);
    for len in [MIB - 28, MIB, MIB + (64 << 10) - 28, MIB + (64 << 10) - 27, MIB + (64 << 10), 2 * MIB + 1] {
        let data: Vec<u8> = (0..len).map(|byte| (byte % 251) as u8).collect();
        client.write(7, &data);
        assert_eq!(client.read(7, len), data, "{len}");
        // With short ones in front and behind, in one piece.
        let mut bytes = request(command::READ, 0, 1, 0, 1, &[]);
        bytes.extend(request(command::WRITE, 0, 2, 9, len, &data));
        bytes.extend(request(command::READ, 0, 3, 9, len, &[]));
        bytes.extend(request(command::WRITE, 0, 4, 0, 3, b"abc"));
        bytes.extend(request(command::READ, 0, 5, 0, 3, &[]));
        std::thread::scope(|scope| {
            let mut stream = client.stream.try_clone().unwrap();
            scope.spawn(move || std::io::Write::write_all(&mut stream, &bytes).unwrap());
            assert_eq!(client.answer(1).cookie, 1);
            assert_eq!(client.answer(0).cookie, 2);
            assert_eq!(client.answer(len as usize).data, data, "{len}");
            assert_eq!(client.answer(0).cookie, 4);
            assert_eq!(client.answer(3).data, b"abc");
        });
    }
}

#[test]
fn clients_that_hold_memory_and_do_nothing_end_when_others_wait() {
    let served = Served::new(options(Duration::from_millis(50)));
    let mut idle = Vec::new();
    for _ in 0..3 {
        // One announces a payload that does not come, the other takes no reply.
        let mut half = served.client("ns1", false);
        half.send(&request(command::WRITE, 0, 1, 0, LONG, &[1; 1000]));
        let mut deaf = served.client("ns1", false);
        deaf.send(&request(command::READ, 0, 1, 0, LONG, &[]));
        idle.extend([half, deaf]);
    }
    let mut client = served.client("ns1", false);
    let data = vec![7; LONG as usize];
    for _ in 0..3 {
        client.write(0, &data);
        assert_eq!(client.read(0, LONG), data);
    }
    // Short requests wait for nobody, and those who hold nothing stay.
    let mut quiet = served.client("ns1", false);
    quiet.write(0, b"short");
    assert_eq!(quiet.read(0, 5), b"short");
}

#[test]
fn a_server_that_stops_refuses_requests_that_wait_for_memory() {
    let mut served = Served::new(options(FOR_EVER));
    let mut clients: Vec<_> = (0..8).map(|_| served.client("ns1", false)).collect();
    for client in &mut clients {
        // Some get memory for a payload that does not come, and the others wait for it.
        client.send(&request(command::WRITE, 0, 1, 0, LONG, &[1; 1000]));
    }
    served.stop().unwrap();
    for client in &mut clients {
        assert!(client.is_closed());
    }
}
