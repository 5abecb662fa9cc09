//! Arbitrary generator texts: `cargo +nightly fuzz run spec`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nandscape_trace::{OpenOptions, Target, WorkloadSpec, open};

fuzz_target!(|text: &str| {
    // Only generators: a text that names a file would read this machine's files.
    if let Ok(WorkloadSpec::Generator { .. }) = text.parse() {
        let target = Target { capacity_bytes: 1 << 30, page_bytes: 4096 };
        if let Ok(reader) = open(text, &OpenOptions::default(), target) {
            assert!(reader.take(1000).all(|record| record.is_ok()));
        }
    }
});
