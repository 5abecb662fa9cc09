//! A server over a device in memory, through a socket: every command, both kinds of replies, errors, several
//! clients, stopping.

use crate::support;

use nandscape_nbd::server::ServerOptions;
use nandscape_nbd::wire::{command, command_flag};
use support::{Client, PAGE, Served, option_bytes, request};

const PERM: u32 = 1;
const INVAL: u32 = 22;
const NOSPC: u32 = 28;
const NOTSUP: u32 = 95;

/// Command, flags, offset, length, payload, and the error that answers them.
type Bad<'a> = (u16, u16, u64, u32, &'a [u8], u32);

fn pattern(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

#[test]
fn what_is_written_is_read_at_any_offset_and_length_with_both_kinds_of_replies() {
    let served = Served::new(ServerOptions::default());
    for is_structured in [false, true] {
        let mut client = served.client("ns1", is_structured);
        for (seed, (offset, len)) in
            [(0, 1), (1, 511), (4095, 2), (PAGE, 4096), (3 * PAGE - 7, 3 * 4096 + 14), (1 << 20, 1 << 20)]
                .into_iter()
                .enumerate()
        {
            let data = pattern(seed as u8, len);
            client.write(offset, &data);
            assert_eq!(client.read(offset, len as u32), data, "{offset}+{len}");
        }
    }
}

#[test]
fn trimmed_and_zeroed_ranges_read_as_zeroes_and_only_whole_pages_become_holes() {
    let served = Served::new(ServerOptions::default());
    let mut client = served.client("ns1", true);
    client.write(0, &pattern(1, 10 * 4096));
    assert_eq!(client.ask(command::TRIM, 0, PAGE, 4096, &[]).errno, 0);
    assert_eq!(client.ask(command::WRITE_ZEROES, 0, 3 * PAGE - 100, 4096 + 200, &[]).errno, 0);
    assert_eq!(
        client
            .ask(command::WRITE_ZEROES, command_flag::NO_HOLE | command_flag::FUA, 6 * PAGE, 4096, &[])
            .errno,
        0
    );
    let mut expected = pattern(1, 10 * 4096);
    expected[4096..8192].fill(0);
    expected[3 * 4096 - 100..4 * 4096 + 100].fill(0);
    expected[6 * 4096..7 * 4096].fill(0);
    assert_eq!(client.read(0, 10 * 4096), expected);
    // Page 1 was trimmed, page 3 zeroed whole; page 6 was asked to stay.
    let data = |pages: u32| [(pages * 4096).to_be_bytes(), 0u32.to_be_bytes()].concat();
    let hole = |pages: u32| [(pages * 4096).to_be_bytes(), 3u32.to_be_bytes()].concat();
    let map = client.ask(command::BLOCK_STATUS, 0, 0, 12 * 4096, &[]);
    assert_eq!(map.data, [data(1), hole(1), data(1), hole(1), data(6), hole(2)].concat());
    let one = client.ask(command::BLOCK_STATUS, command_flag::REQ_ONE, 100, 12 * 4096, &[]);
    assert_eq!(one.data, [3996u32.to_be_bytes(), 0u32.to_be_bytes()].concat());
}

#[test]
fn ranges_without_data_are_told_by_their_length_in_structured_reads() {
    let served = Served::new(ServerOptions::default());
    let (mut client, mut plain) = (served.client("ns1", true), served.client("ns1", false));
    let data = pattern(9, 4096);
    for page in [0, 2, 3, 7] {
        client.write(page * PAGE, &data);
    }
    // Zeroes that were written are data, whatever they read as.
    client.write(5 * PAGE, &[0; 4096]);
    let whole = client.ask(command::READ, 0, 0, 10 * PAGE as u32, &[]);
    let at = |chunks: &[(u16, u64)]| -> Vec<(u16, u64)> {
        chunks.iter().map(|(kind, page)| (*kind, page * PAGE)).collect()
    };
    assert_eq!(whole.chunks, at(&[(1, 0), (2, 1), (1, 2), (2, 4), (1, 5), (2, 6), (1, 7), (2, 8)]));
    assert_eq!(whole.data, plain.read(0, 10 * PAGE as u32));
    let one = client.ask(command::READ, command_flag::DF, 0, 10 * PAGE as u32, &[]);
    assert_eq!((one.chunks, &one.data), (vec![(1, 0)], &whole.data), "one chunk was asked for");
    let hole = client.ask(command::READ, command_flag::DF, 20 * PAGE + 5, 3_000_000, &[]);
    assert_eq!((hole.chunks, hole.data.len()), (vec![(2, 20 * PAGE + 5)], 3_000_000));
    // Odd ends; a piece of a page alone is not worth a chunk.
    let odd = client.ask(command::READ, 0, PAGE - 10, 2 * PAGE as u32 + 20, &[]);
    assert_eq!(odd.chunks, [(1, PAGE - 10), (2, PAGE), (1, 2 * PAGE)]);
    assert_eq!(odd.data, plain.read(PAGE - 10, 2 * PAGE as u32 + 20));
    assert_eq!(client.ask(command::READ, 0, PAGE + 10, 4000, &[]).chunks, [(1, PAGE + 10)]);
    assert_eq!(client.ask(command::TRIM, 0, 2 * PAGE, 2 * PAGE as u32, &[]).errno, 0);
    let trimmed = client.ask(command::READ, 0, 0, 5 * PAGE as u32, &[]);
    assert_eq!(trimmed.chunks, at(&[(1, 0), (2, 1)]));
    assert_eq!(trimmed.data, [&data[..], &[0; 4 * 4096]].concat());
}

#[test]
fn reads_of_holes_stand_in_their_place_among_other_replies() {
    let served = Served::new(ServerOptions::default());
    let mut client = served.client("ns1", true);
    let (mut bytes, mut kept) = (Vec::new(), vec![0; 64 * 4096]);
    for i in 0..600u64 {
        let (page, len) = (i * 37 % 60, (i % 4 + 1) as usize * 4096);
        let range = page as usize * 4096..page as usize * 4096 + len;
        let offset = page * PAGE;
        match i % 3 {
            0 => {
                kept[range.clone()].copy_from_slice(&pattern(i as u8 | 1, len));
                bytes.extend(request(command::WRITE, 0, i, offset, len as u32, &kept[range]));
            }
            1 => {
                kept[range].fill(0);
                bytes.extend(request(command::TRIM, 0, i, offset, len as u32, &[]));
            }
            _ => bytes.extend(request(command::FLUSH, 0, i, 0, 0, &[])),
        }
        bytes.extend(request(command::READ, 0, 1000 + i, 0, 64 * 4096, &[]));
    }
    // What each read must give, in the order of the requests.
    let mut reader = Client { stream: client.stream.try_clone().unwrap(), is_structured: true };
    std::thread::scope(|scope| {
        scope.spawn(|| client.send(&bytes));
        let mut holes = 0;
        for i in 0..600u64 {
            assert_eq!(reader.answer(0).cookie, i);
            let answer = reader.answer(0);
            assert_eq!((answer.cookie, answer.errno, answer.data.len()), (1000 + i, 0, 64 * 4096));
            holes += answer.chunks.iter().filter(|(kind, _)| *kind == 2).count();
            if i == 599 {
                assert!(answer.data == kept, "the last read gives what all writes and trims left");
            }
        }
        assert!(holes > 600, "{holes} holes");
    });
}

#[test]
fn every_bad_request_has_its_error_and_the_connection_goes_on() {
    let served = Served::new(ServerOptions::default());
    for is_structured in [false, true] {
        let mut client = served.client("ns1", is_structured);
        let size = served.engine.namespaces()[0].capacity_bytes;
        let page = vec![7; 4096];
        let table: &[Bad] = &[
            (command::READ, 0, size, 1, &[], INVAL),
            (command::READ, 0, size - 1, 2, &[], INVAL),
            (command::READ, 0, u64::MAX, 4096, &[], INVAL),
            (command::READ, 0, 0, 0, &[], INVAL),
            (command::READ, 0, 0, u32::MAX, &[], INVAL),
            (command::READ, command_flag::NO_HOLE, 0, 4096, &[], INVAL),
            (command::WRITE, 0, size - 1, 4096, &page, NOSPC),
            (command::WRITE, 1 << 9, 0, 4096, &page, INVAL),
            (command::TRIM, 0, size, 4096, &[], INVAL),
            (command::WRITE_ZEROES, 0, size, 4096, &[], NOSPC),
            (command::WRITE_ZEROES, command_flag::NO_HOLE | command_flag::FAST_ZERO, 0, 4096, &[], NOTSUP),
            (command::FLUSH, 0, 0, 1, &[], INVAL),
            (command::CACHE, 0, size, 1, &[], INVAL),
            (99, 0, 0, 4096, &[], INVAL),
        ];
        for (kind, flags, offset, len, payload, errno) in table {
            let answer = client.ask(*kind, *flags, *offset, *len, payload);
            assert_eq!(answer.errno, *errno, "{kind} {flags:#x} {offset}+{len}");
            assert_eq!(answer.data.is_empty(), !is_structured, "words come with structured replies");
        }
        client.write(size - 4096, &page);
        assert_eq!(client.read(size - 4096, 4096), page);
    }
    let mut plain = served.client("ns1", false);
    assert_eq!(plain.ask(command::BLOCK_STATUS, 0, 0, 4096, &[]).errno, INVAL, "it was not negotiated");
    assert_eq!(plain.ask(command::READ, command_flag::DF, 0, 4096, &[]).errno, INVAL, "nor were chunks");
}

#[test]
fn a_read_only_export_refuses_writes_and_swallows_their_payload() {
    let served = Served::new(ServerOptions::default());
    let mut client = served.client("ns2", false);
    for kind in [command::WRITE, command::TRIM, command::WRITE_ZEROES] {
        let payload: &[u8] = if kind == command::WRITE { &[1; 4096] } else { &[] };
        assert_eq!(client.ask(kind, 0, 0, 4096, payload).errno, PERM);
    }
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0, &[]).errno, 0);
    assert_eq!(client.read(0, 4096), [0; 4096]);
}

#[test]
fn a_write_longer_than_allowed_is_swallowed_and_refused() {
    let served = Served::new(ServerOptions::default());
    let mut client = served.client("ns1", false);
    let len = (32 << 20) + 1;
    client.send(&request(command::WRITE, 0, 1, 0, len, &[]));
    // The refusal need not wait for the payload.
    assert_eq!(client.answer(0).errno, INVAL);
    client.send(&vec![0x60; len as usize]);
    assert_eq!(client.read(0, 1), [0]);
}

#[test]
fn requests_sent_in_one_piece_are_answered_in_order() {
    let served = Served::new(ServerOptions::default());
    let mut client = served.client("ns1", true);
    let mut bytes = Vec::new();
    for i in 0..1000u64 {
        let page = i % 50;
        bytes.extend(request(command::WRITE, 0, 2 * i, page * PAGE, 4096, &pattern(i as u8, 4096)));
        // Among them what fails, and what is a batch of its own.
        match i % 4 {
            0 => bytes.extend(request(command::READ, 0, 2 * i + 1, u64::MAX, 1, &[])),
            1 => bytes.extend(request(
                command::BLOCK_STATUS,
                command_flag::REQ_ONE,
                2 * i + 1,
                page * PAGE,
                4096,
                &[],
            )),
            _ => bytes.extend(request(command::READ, 0, 2 * i + 1, page * PAGE, 4096, &[])),
        }
    }
    let mut reader = Client { stream: client.stream.try_clone().unwrap(), is_structured: true };
    std::thread::scope(|scope| {
        scope.spawn(|| client.send(&bytes));
        for i in 0..1000u64 {
            assert_eq!(reader.answer(0).cookie, 2 * i);
            let answer = reader.answer(4096);
            assert_eq!(answer.cookie, 2 * i + 1);
            match i % 4 {
                0 => assert_eq!(answer.errno, INVAL),
                1 => assert_eq!(answer.data, [4096u32.to_be_bytes(), [0; 4]].concat()),
                _ => assert_eq!(answer.data, pattern(i as u8, 4096)),
            }
        }
    });
}

#[test]
fn a_flush_on_one_connection_covers_what_was_answered_on_another() {
    let served = Served::new(ServerOptions::default());
    let (mut one, mut other) = (served.client("ns1", false), served.client("ns1", false));
    one.write(0, &[1; 4096]);
    assert_eq!(other.ask(command::FLUSH, 0, 0, 0, &[]).errno, 0);
    assert_eq!(other.read(0, 4096), [1; 4096]);
    assert_eq!(served.engine.with(|subsystem, _| subsystem.inspect().host_counts(0).flushes), 1);
    assert_eq!(one.ask(command::WRITE, command_flag::FUA, 0, 4096, &[2; 4096]).errno, 0);
    assert_eq!(
        served.engine.with(|subsystem, _| subsystem.inspect().host_counts(0).flushes),
        2,
        "FUA is made durable"
    );
}

#[test]
fn garbage_half_requests_and_silence_do_not_hold_up_other_clients() {
    let served = Served::new(ServerOptions::default());
    let mut garbage = served.client("ns1", false);
    garbage.send(&[0xff; 100]);
    assert!(garbage.is_closed());
    let mut rude = Client { stream: served.connect(), is_structured: false };
    rude.greet();
    rude.send(&option_bytes(77, &[0; 8])[..20]);
    let mut half = served.client("ns1", false);
    half.send(&request(command::WRITE, 0, 0, 0, 32 << 20, &[1; 1000]));
    // A client that asks for much and takes nothing.
    let mut deaf = served.client("ns1", false);
    for cookie in 0..8 {
        deaf.send(&request(command::READ, 0, cookie, 0, 8 << 20, &[]));
    }
    let silent = served.connect();
    let mut client = served.client("ns1", true);
    client.write(0, &[3; 4096]);
    assert_eq!(client.read(0, 4096), [3; 4096]);
    drop((rude, half, deaf, silent));
    client.write(0, &[4; 4096]);
}

#[test]
fn one_client_too_many_is_turned_away_until_another_has_left() {
    let served = Served::new(ServerOptions { connections: 2, ..ServerOptions::default() });
    let (one, mut two) = (served.client("ns1", false), served.client("ns1", false));
    let mut three = Client { stream: served.connect(), is_structured: false };
    assert!(three.is_closed());
    two.write(0, &[1]);
    two.send(&request(command::DISC, 0, 0, 0, 0, &[]));
    assert!(two.is_closed());
    // It has left once its end is seen.
    served.client("ns1", false).write(0, &[2]);
    drop(one);
}

#[test]
fn a_server_that_stops_answers_what_arrived_and_ends_every_connection() {
    let mut served = Served::new(ServerOptions::default());
    let mut busy = served.client("ns1", false);
    busy.write(0, &[5; 4096]);
    let mut idle = Client { stream: served.connect(), is_structured: false };
    idle.greet();
    let mut deaf = served.client("ns1", false);
    deaf.send(&request(command::READ, 0, 0, 0, 8 << 20, &[]));
    deaf.send(&request(command::READ, 0, 1, 0, 8 << 20, &[]));
    served.stop().unwrap();
    assert!(busy.is_closed() && idle.is_closed());
    assert!(!served.socket().exists());
}
