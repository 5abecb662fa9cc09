//! Arbitrary requests on a device, compared with what a plain array would answer.

use super::*;
use proptest::prelude::*;

fn session(is_read_only: bool) -> Session {
    let export = Export {
        name: "ns1".to_owned(),
        description: String::new(),
        namespace: 0,
        size: 100 << 20,
        preferred_block: 4096,
        is_read_only,
    };
    Session { export, is_structured: true, has_status: true, refuses: Refuses::Nothing }
}

const LIMITS: BatchLimits = BatchLimits { requests: 8, bytes: 1 << 20 };

fn bytes(header: &Header, payload: usize) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(REQUEST_MAGIC.to_be_bytes());
    out.extend(header.flags.to_be_bytes());
    out.extend(header.kind.to_be_bytes());
    out.extend(header.cookie.to_be_bytes());
    out.extend(header.offset.to_be_bytes());
    out.extend(header.len.to_be_bytes());
    out.resize(HEADER_BYTES + payload, 0xaa);
    out
}

#[test]
fn a_plan_stops_at_its_bounds_and_goes_on_after_them() {
    let read = |len| bytes(&Header { flags: 0, kind: command::READ, cookie: 0, offset: 0, len }, 0);
    let mut plan = Plan::default();
    let many = read(4096).repeat(10);
    assert_eq!(plan.fill(&session(false), &many, LIMITS), Ok((8 * HEADER_BYTES, Stop::Full)));
    // One request alone may be longer than a batch, and none comes with it.
    let long = [read(4 << 20), read(1)].concat();
    assert_eq!(plan.fill(&session(false), &long, LIMITS), Ok((HEADER_BYTES, Stop::Full)));
    assert_eq!(plan.fill(&session(false), &long[..20], LIMITS), Ok((0, Stop::Needs(HEADER_BYTES))));
    let write = bytes(&Header { flags: 0, kind: command::WRITE, cookie: 0, offset: 0, len: 100 }, 99);
    assert_eq!(plan.fill(&session(false), &write, LIMITS), Ok((0, Stop::Needs(HEADER_BYTES + 100))));
    assert_eq!(plan.fill(&session(true), &write, LIMITS), Ok((HEADER_BYTES + 99, Stop::Skip(1))));
}

#[test]
fn a_stopping_session_refuses_everything_but_goodbye() {
    let session = Session { refuses: Refuses::Everything, ..session(false) };
    let header = |kind| Header { flags: 0, kind, cookie: 0, offset: 0, len: 1 };
    for kind in [command::READ, command::WRITE, command::FLUSH, command::BLOCK_STATUS, 99] {
        assert_eq!(session.check(&header(kind)).unwrap_err().errno, Errno::Shutdown);
    }
    assert_eq!(session.check(&header(command::DISC)), Ok(Action::Disconnect));
}

fn header() -> impl Strategy<Value = Header> {
    let edge = prop_oneof![Just(0u64), Just(100 << 20), Just(u64::MAX), 0..(200u64 << 20), any::<u64>()];
    let len = prop_oneof![Just(0u32), 0..10_000u32, Just(32 << 20), Just((32 << 20) + 1), any::<u32>()];
    let flags = prop_oneof![Just(0u16), 0..32u16, any::<u16>()];
    (flags, 0..10u16, any::<u64>(), edge, len).prop_map(|(flags, kind, cookie, offset, len)| Header {
        flags,
        kind,
        cookie,
        offset,
        len,
    })
}

proptest! {
    #[test]
    fn nothing_that_is_let_through_leaves_the_export(header in header(), is_read_only: bool) {
        let session = session(is_read_only);
        match session.check(&header) {
            Err(_) | Ok(Action::Disconnect | Action::Flush) => {}
            Ok(action) => {
                prop_assert!(header.len > 0);
                prop_assert!(header.offset.checked_add(u64::from(header.len)).unwrap() <= session.export.size);
                let moves = matches!(action, Action::Read | Action::Write);
                prop_assert!(!moves || header.len <= MAX_REQUEST_BYTES);
                let reads = matches!(action, Action::Read | Action::Cache | Action::Status);
                prop_assert!(reads || !is_read_only);
            }
        }
    }

    #[test]
    fn plans_make_progress_stay_in_the_input_and_within_their_bounds(
        headers in prop::collection::vec((header(), 0..5000usize), 0..20),
        tail in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut input = Vec::new();
        for (header, payload) in &headers {
            let payload = if header.kind == command::WRITE { *payload } else { 0 };
            let len = if payload > 2500 { payload as u32 } else { header.len };
            input.extend(bytes(&Header { len, ..*header }, payload));
        }
        input.extend(tail);
        let session = session(false);
        let mut plan = Plan::default();
        let mut at = 0;
        while let Ok((taken, stop)) = plan.fill(&session, &input[at..], LIMITS) {
            prop_assert!(taken <= input.len() - at);
            prop_assert!(plan.entries.len() <= LIMITS.requests);
            prop_assert_eq!(plan.reply_bytes, plan.entries.iter().map(|entry| entry.reply_bytes).sum::<usize>());
            prop_assert!(plan.reply_bytes <= LIMITS.bytes + MAX_REQUEST_BYTES as usize + 1000);
            for entry in &plan.entries {
                if let Ok(Action::Write) = entry.action {
                    prop_assert!(entry.payload + entry.header.len as usize <= taken);
                }
            }
            at += taken;
            match stop {
                Stop::Full => prop_assert!(taken > 0),
                Stop::Needs(bytes) => {
                    prop_assert!(bytes > input.len() - at, "it was all there");
                    prop_assert!(bytes <= HEADER_BYTES + MAX_REQUEST_BYTES as usize);
                    break;
                }
                Stop::Skip(bytes) => {
                    prop_assert!(bytes > 0 && at == input.len());
                    break;
                }
                Stop::Disconnect => break,
            }
        }
    }
}
