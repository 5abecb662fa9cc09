//! Tables of options and answers, and arbitrary bytes.

use super::*;
use crate::wire::{BASE_ALLOCATION, flag, info};
use proptest::prelude::*;

fn exports() -> Arc<[Export]> {
    let export = |name: &str, is_read_only| Export {
        name: name.to_owned(),
        description: format!("about {name}"),
        namespace: 0,
        size: 1 << 20,
        preferred_block: 16384,
        is_read_only,
    };
    Arc::new([export("ns1", false), export("ns2", true)])
}

fn option(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_u64(OPTION_MAGIC);
    bytes.put_u32(kind);
    bytes.put_u32(data.len() as u32);
    bytes.put(data);
    bytes
}

fn go(name: &str, wanted: &[u16]) -> Vec<u8> {
    let mut data = Vec::new();
    data.put_u32(name.len() as u32);
    data.put(name.as_bytes());
    data.put_u16(wanted.len() as u16);
    for kind in wanted {
        data.put_u16(*kind);
    }
    data
}

fn contexts(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = Vec::new();
    data.put_u32(name.len() as u32);
    data.put(name.as_bytes());
    data.put_u32(queries.len() as u32);
    for query in queries {
        data.put_u32(query.len() as u32);
        data.put(query.as_bytes());
    }
    data
}

/// The replies to options: option, type, data.
fn replies(mut out: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
    let mut replies = Vec::new();
    while !out.is_empty() {
        let mut take = Take(out);
        assert_eq!(take.u64(), Some(OPTION_REPLY_MAGIC));
        let (option, kind) = (take.u32().unwrap(), take.u32().unwrap());
        replies.push((option, kind, take.string().unwrap().to_vec()));
        out = take.0;
    }
    replies
}

/// A negotiation behind its flags.
fn begun(tls: TlsState) -> Negotiation {
    let mut negotiation = Negotiation::new(exports(), tls);
    let (taken, progress) = negotiation.advance(&3u32.to_be_bytes(), &mut Vec::new()).unwrap();
    assert!(taken == 4 && matches!(progress, Progress::Again));
    negotiation
}

/// The answers to one option.
fn ask(negotiation: &mut Negotiation, kind: u32, data: &[u8]) -> (Vec<(u32, u32, Vec<u8>)>, Progress) {
    let input = option(kind, data);
    let mut out = Vec::new();
    let (taken, progress) = negotiation.advance(&input, &mut out).unwrap();
    assert_eq!(taken, input.len());
    let replies = replies(&out);
    assert!(replies.iter().all(|(option, ..)| *option == kind));
    (replies, progress)
}

/// The type of the last answer to one option.
fn verdict(negotiation: &mut Negotiation, kind: u32, data: &[u8]) -> u32 {
    ask(negotiation, kind, data).0.last().expect("an answer").1
}

#[test]
fn go_gives_size_flags_and_what_was_asked_for() {
    let mut negotiation = begun(TlsState::Absent);
    let (replies, progress) =
        ask(&mut negotiation, option::GO, &go("ns1", &[info::NAME, info::DESCRIPTION, 77]));
    let Progress::Transmit(session) = progress else { panic!("{progress:?}") };
    assert_eq!(session.export.name, "ns1");
    let kinds: Vec<u32> = replies.iter().map(|(_, kind, _)| *kind).collect();
    assert_eq!(
        kinds,
        [option_reply::INFO, option_reply::INFO, option_reply::INFO, option_reply::INFO, option_reply::ACK]
    );
    let mut export = Take(&replies[0].2);
    assert_eq!((export.u16(), export.u64()), (Some(info::EXPORT), Some(1 << 20)));
    let flags = export.u16().unwrap();
    assert_eq!(flags & (flag::READ_ONLY | flag::SEND_DF), 0, "no DF without structured replies");
    assert_ne!(flags & flag::CAN_MULTI_CONN, 0);
    let mut sizes = Take(&replies[3].2);
    assert_eq!(sizes.u16(), Some(info::BLOCK_SIZE));
    assert_eq!((sizes.u32(), sizes.u32(), sizes.u32()), (Some(1), Some(16384), Some(32 << 20)));
}

#[test]
fn the_empty_name_is_the_first_export_and_an_unknown_one_is_refused() {
    let mut negotiation = begun(TlsState::Absent);
    assert_eq!(verdict(&mut negotiation, option::GO, &go("nowhere", &[])), option_reply::ERR_UNKNOWN);
    assert_eq!(verdict(&mut negotiation, option::INFO, &go("ns2", &[])), option_reply::ACK);
    let (_, progress) = ask(&mut negotiation, option::GO, &go("", &[]));
    assert!(matches!(progress, Progress::Transmit(session) if session.export.name == "ns1"));
}

#[test]
fn a_read_only_export_offers_no_writes() {
    let flags = exports()[1].flags(true);
    let writes = flag::SEND_FUA | flag::SEND_TRIM | flag::SEND_WRITE_ZEROES | flag::SEND_FAST_ZERO;
    assert_eq!(flags & (flag::READ_ONLY | writes), flag::READ_ONLY);
}

#[test]
fn malformed_options_are_answered_and_change_nothing() {
    let mut negotiation = begun(TlsState::Absent);
    let long = go(&"x".repeat(5000), &[]);
    let mut beyond = go("ns1", &[]);
    beyond.push(0);
    let mut short = go("ns1", &[info::NAME]);
    short.pop();
    let mut name_beyond = go("ns1", &[]);
    name_beyond[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    for data in [&[][..], &[0; 5], &long, &beyond, &short, &name_beyond] {
        assert_eq!(verdict(&mut negotiation, option::GO, data), option_reply::ERR_INVALID, "{data:?}");
    }
    assert_eq!(verdict(&mut negotiation, option::LIST, &[0]), option_reply::ERR_INVALID);
    assert_eq!(verdict(&mut negotiation, option::STRUCTURED_REPLY, &[0]), option_reply::ERR_INVALID);
    assert!(!negotiation.is_structured);
    assert_eq!(verdict(&mut negotiation, 4711, &[1, 2, 3]), option_reply::ERR_UNSUP);
    assert_eq!(verdict(&mut negotiation, option::STARTTLS, &[]), option_reply::ERR_POLICY);
}

#[test]
fn block_status_needs_structured_replies_and_holds_for_the_export_it_was_asked_for() {
    let mut negotiation = begun(TlsState::Absent);
    let query = contexts("ns1", &[BASE_ALLOCATION]);
    assert_eq!(verdict(&mut negotiation, option::SET_META_CONTEXT, &query), option_reply::ERR_INVALID);
    assert_eq!(verdict(&mut negotiation, option::STRUCTURED_REPLY, &[]), option_reply::ACK);
    let (listed, _) = ask(&mut negotiation, option::LIST_META_CONTEXT, &contexts("ns1", &["base:"]));
    assert_eq!(listed[0].2, [&0u32.to_be_bytes()[..], BASE_ALLOCATION.as_bytes()].concat());
    let (none, _) = ask(&mut negotiation, option::SET_META_CONTEXT, &contexts("ns1", &["base:", "qemu:x"]));
    assert_eq!(none.len(), 1, "a prefix chooses nothing");
    let (set, _) = ask(&mut negotiation, option::SET_META_CONTEXT, &query);
    assert_eq!(set[0].2[..4], 1u32.to_be_bytes());
    // The export without a name is the same one.
    assert!(negotiation.session(negotiation.find(b"").unwrap()).has_status);
    assert!(!negotiation.session(1).has_status);
    assert_eq!(
        verdict(&mut negotiation, option::SET_META_CONTEXT, &contexts("x", &[])),
        option_reply::ERR_UNKNOWN
    );
    assert!(!negotiation.session(0).has_status, "a failed choice leaves none behind");
}

#[test]
fn export_name_is_answered_with_or_without_zeroes_and_ends_the_connection_if_unknown() {
    for (flags, bytes) in [(3u32, 10), (1, 134)] {
        let mut negotiation = Negotiation::new(exports(), TlsState::Absent);
        negotiation.advance(&flags.to_be_bytes(), &mut Vec::new()).unwrap();
        let mut out = Vec::new();
        let (_, progress) = negotiation.advance(&option(option::EXPORT_NAME, b"ns2"), &mut out).unwrap();
        assert!(matches!(progress, Progress::Transmit(_)));
        assert_eq!(out.len(), bytes);
    }
    let error =
        begun(TlsState::Absent).advance(&option(option::EXPORT_NAME, b"\xff"), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("asked for by EXPORT_NAME"), "{error}");
}

#[test]
fn nothing_but_tls_and_goodbye_is_possible_where_tls_is_required() {
    let mut negotiation = begun(TlsState::Required);
    let reqd = option_reply::ERR_TLS_REQD;
    assert_eq!(verdict(&mut negotiation, option::GO, &go("ns1", &[])), reqd);
    assert_eq!(verdict(&mut negotiation, option::LIST, &[]), reqd);
    assert_eq!(verdict(&mut negotiation, option::STRUCTURED_REPLY, &[]), reqd);
    assert!(!negotiation.is_structured);
    let (_, progress) = ask(&mut negotiation, option::STARTTLS, &[]);
    assert!(matches!(progress, Progress::StartTls));
    negotiation.secured();
    assert_eq!(verdict(&mut negotiation, option::STARTTLS, &[]), option_reply::ERR_INVALID);
    let (_, progress) = ask(&mut negotiation, option::GO, &go("ns1", &[]));
    assert!(matches!(progress, Progress::Transmit(_)));
}

#[test]
fn long_options_are_skipped_absurd_ones_and_too_many_end_the_connection() {
    let mut negotiation = begun(TlsState::Absent);
    let mut out = Vec::new();
    let input = option(option::LIST, &vec![7; MAX_OPTION_BYTES + 1]);
    let mut at = 0;
    while at < input.len() {
        // In pieces, as it would arrive.
        let end = input.len().min(at + 5000);
        at += negotiation.advance(&input[at..end], &mut out).unwrap().0;
    }
    assert_eq!(replies(&out).iter().map(|reply| reply.1).collect::<Vec<_>>(), [option_reply::ERR_TOO_BIG]);
    for _ in 1..MAX_OPTIONS {
        verdict(&mut negotiation, option::LIST, &[]);
    }
    let error = negotiation.advance(&option(option::LIST, &[]), &mut out).unwrap_err();
    assert!(error.to_string().starts_with("more than "), "{error}");
    let mut absurd = option(option::LIST, &[]);
    absurd[12..].copy_from_slice(&u32::MAX.to_be_bytes());
    let error = begun(TlsState::Absent).advance(&absurd, &mut out).unwrap_err();
    assert!(error.to_string().contains(" of 4294967295 bytes: expected at most"), "{error}");
}

#[test]
fn wrong_flags_and_magic_end_the_connection() {
    for flags in [0u32, 2, 5, 0xffff_ffff] {
        let error = Negotiation::new(exports(), TlsState::Absent)
            .advance(&flags.to_be_bytes(), &mut Vec::new())
            .unwrap_err();
        assert!(error.to_string().starts_with(&format!("client flags {flags:#x}: expected 1")), "{error}");
    }
    let error = begun(TlsState::Absent).advance(&[9; 16], &mut Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("option begins with 0x0909090909090909"), "{error}");
}

/// Bytes that look like options often enough to get somewhere.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![Just(""), Just("ns1"), Just("ns2"), Just("nowhere")];
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        (0..13u32, prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(kind, data)| option(kind, &data)),
        (6..8u32, name, prop::collection::vec(any::<u16>(), 0..5))
            .prop_map(|(kind, name, wanted)| option(kind, &go(name, &wanted))),
        (9..11u32, any::<[u8; 6]>()).prop_map(|(kind, tail)| {
            let mut data = contexts("ns1", &[BASE_ALLOCATION]);
            let at = usize::from(tail[0]) % data.len();
            data[at] = tail[1];
            option(kind, &data)
        }),
        Just(option(option::STRUCTURED_REPLY, &[])),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Feeds all of `input` in pieces of `piece` bytes; gives what was put out, and whether a session came of it.
fn feed(mut negotiation: Negotiation, input: &[u8], piece: usize) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    let (mut start, mut end) = (0, 0);
    loop {
        match negotiation.advance(&input[start..end], &mut out) {
            Ok((taken, progress)) => {
                start += taken;
                assert!(start <= end);
                match progress {
                    Progress::Again => assert!(taken > 0, "no progress"),
                    Progress::More if end == input.len() => return (out, false),
                    Progress::More => end = input.len().min(end + piece),
                    Progress::Transmit(_) => return (out, true),
                    Progress::StartTls => negotiation.secured(),
                    Progress::Close => return (out, false),
                }
            }
            Err(_) => return (out, false),
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_end_in_order_however_they_are_cut(
        flags in prop_oneof![Just(3u32), Just(1), any::<u32>()],
        noise in noise(),
        piece in 1..50usize,
        tls in prop_oneof![Just(TlsState::Absent), Just(TlsState::Required)],
    ) {
        let input = [&flags.to_be_bytes()[..], &noise].concat();
        let whole = feed(Negotiation::new(exports(), tls), &input, input.len());
        // What is put out is bounded by what can be said about two exports, for each option.
        prop_assert!(whole.0.len() <= (MAX_OPTIONS as usize + 1) * 400);
        let cut = feed(Negotiation::new(exports(), tls), &input, piece);
        prop_assert_eq!(whole, cut);
    }
}
