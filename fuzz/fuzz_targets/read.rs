//! Arbitrary bytes through every reader: `cargo +nightly fuzz run read`. Byte 0 chooses the format; a number beyond the registry
//! leaves it to detection. The corpus is also replayed by an ordinary test of the trace crate.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nandscape_trace::{OpenOptions, Target, Workload, formats};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let format = formats::FORMATS.get(usize::from(*choice)).filter(|format| format.info.name != "columns");
    let options = OpenOptions { format: format.map(|f| f.info.name.to_owned()), ..OpenOptions::default() };
    if let Ok(reader) = Workload::from_bytes("fuzz", rest, &options, Target::NONE).and_then(|w| w.open()) {
        // A few KiB can expand to gigabytes of records; the first ones show whatever there is to see.
        assert!(reader.take(100_000).filter(Result::is_err).count() <= 1);
    }
});
