//! The body of the fuzz target `nbd`, on its corpus.

use nandscape_nbd::Export;
use nandscape_nbd::negotiation::{Negotiation, Progress, TlsState};
use nandscape_nbd::transmission::{BatchLimits, Plan, Stop};
use std::path::Path;

/// Requests that were planned.
fn feed(bytes: &[u8]) -> usize {
    let Some((choice, mut input)) = bytes.split_first() else { return 0 };
    let export = Export {
        name: "ns1".to_owned(),
        description: String::new(),
        namespace: 0,
        size: 1 << 20,
        preferred_block: 4096,
        is_read_only: false,
    };
    let tls = if choice & 1 == 0 { TlsState::Absent } else { TlsState::Required };
    let mut negotiation = Negotiation::new([export].into(), tls);
    let mut out = Vec::new();
    let session = loop {
        let Ok((taken, progress)) = negotiation.advance(input, &mut out) else { return 0 };
        input = &input[taken..];
        match progress {
            Progress::Again => {}
            Progress::StartTls => negotiation.secured(),
            Progress::Transmit(session) => break session,
            Progress::More | Progress::Close => return 0,
        }
    };
    let mut plan = Plan::default();
    let mut planned = 0;
    loop {
        let filled = plan.fill(&session, input, BatchLimits { requests: 16, bytes: 1 << 16 });
        let Ok((taken, stop)) = filled else { return planned };
        planned += plan.entries.len();
        assert!(plan.entries.len() <= 16);
        if stop != Stop::Full {
            return planned;
        }
        assert!(taken > 0);
        input = &input[taken..];
    }
}

#[test]
fn the_fuzz_corpus_is_taken_without_a_panic() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/nbd");
    let mut planned = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        planned += feed(&bytes);
        // Cut short, and with each of the first bytes changed.
        for at in 0..bytes.len().min(400) {
            feed(&bytes[..at]);
            for mask in [0x01, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= mask;
                feed(&changed);
            }
        }
    }
    assert!(planned > 20, "only {planned} requests of the corpus got through");
}
