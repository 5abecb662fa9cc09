//! Arbitrary bytes as an NBD client's: `cargo +nightly fuzz run nbd`. Byte 0 chooses whether TLS is required. What follows goes through the
//! negotiation and, if an export is chosen, through the planning of requests. An ordinary test of the nbd crate replays the corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nandscape_nbd::Export;
use nandscape_nbd::negotiation::{Negotiation, Progress, TlsState};
use nandscape_nbd::transmission::{BatchLimits, Plan, Stop};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, mut input)) = bytes.split_first() else { return };
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
        let Ok((taken, progress)) = negotiation.advance(input, &mut out) else { return };
        input = &input[taken..];
        match progress {
            Progress::Again => {}
            Progress::StartTls => negotiation.secured(),
            Progress::Transmit(session) => break session,
            Progress::More | Progress::Close => return,
        }
    };
    let mut plan = Plan::default();
    while let Ok((taken, Stop::Full)) =
        plan.fill(&session, input, BatchLimits { requests: 16, bytes: 1 << 16 })
    {
        assert!(taken > 0 && plan.entries.len() <= 16);
        input = &input[taken..];
    }
});
