//! Arbitrary generator texts.

use nandscape_trace::{OpenOptions, Target, WorkloadSpec, open};

pub fn feed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // Only generators: a text that names a file would read this machine's files.
    if let Ok(WorkloadSpec::Generator { .. }) = text.parse() {
        let target = Target { capacity_bytes: 1 << 30, ..Target::NONE };
        if let Ok(reader) = open(text, &OpenOptions::default(), target) {
            assert!(reader.take(1000).all(|record| record.is_ok()), "a generator fails while it runs");
        }
    }
}
