//! Replies on a paced clock: not before the model's device would have answered, and in that order.

use crate::support;

use nandscape_engine::Clock;
use nandscape_nbd::server::ServerOptions;
use nandscape_nbd::wire::command;
use std::time::{Duration, Instant};
use support::{PAGE, Served, request};

#[test]
fn a_reply_does_not_come_before_the_model_gives_it() {
    let served = Served::with_clock(ServerOptions::default(), Clock::Paced);
    let mut client = served.client("ns1", true);
    let model = nandscape_stack_program_ns();
    let started = Instant::now();
    for i in 0..20 {
        client.write(i * PAGE, &[i as u8; 4096]);
    }
    assert!(started.elapsed() >= 20 * Duration::from_nanos(model), "{:?}", started.elapsed());
    for i in 0..20 {
        assert_eq!(client.read(i * PAGE, 4096), [i as u8; 4096]);
    }
}

/// Time of a program on the default device.
fn nandscape_stack_program_ns() -> u64 {
    nandscape_stack::Typed::new().check().unwrap().timing.program_ns
}

#[test]
fn an_erased_page_is_answered_before_the_programs_sent_ahead_of_it() {
    let served = Served::with_clock(ServerOptions::default(), Clock::Paced);
    let mut client = served.client("ns1", true);
    let mut bytes = Vec::new();
    for i in 0..8 {
        bytes.extend(request(command::WRITE, 0, i, i * PAGE, 4096, &[1; 4096]));
    }
    // An unmapped page takes no time in the model.
    bytes.extend(request(command::READ, 0, 99, 100 * PAGE, 4096, &[]));
    client.send(&bytes);
    assert_eq!(client.answer(4096).cookie, 99);
    let mut cookies: Vec<u64> = (0..8).map(|_| client.answer(0).cookie).collect();
    cookies.sort_unstable();
    assert_eq!(cookies, [0, 1, 2, 3, 4, 5, 6, 7]);
    // Goodbye with answers outstanding: they come first.
    client.send(&request(command::WRITE, 0, 7, 0, 4096, &[2; 4096]));
    client.send(&request(command::DISC, 0, 0, 0, 0, &[]));
    assert_eq!(client.answer(0).cookie, 7);
    assert!(client.is_closed());
}
