//! Arbitrary bytes from an NBD client. Byte 0 chooses whether TLS is required. What follows goes through the
//! negotiation and, if an export is chosen, through the planning of requests.

use nandscape_nbd::Export;
use nandscape_nbd::negotiation::{Negotiation, Progress, TlsState};
use nandscape_nbd::transmission::{BatchLimits, Plan, Stop};

/// How many requests were planned.
pub fn feed(bytes: &[u8]) -> usize {
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
        assert!(plan.entries.len() <= 16, "{} requests in a batch of 16", plan.entries.len());
        if stop != Stop::Full {
            return planned;
        }
        assert!(taken > 0, "a full batch took no input");
        input = &input[taken..];
    }
}
