//! Arbitrary bytes through every trace reader. Byte 0 chooses the format; a number beyond the registry leaves
//! it to detection.

use nandscape_trace::{OpenOptions, Target, Workload, formats};

/// A few KiB can expand to gigabytes of records; the first ones show whatever there is to see.
const RECORDS: usize = 100_000;

pub fn feed(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let format = formats::FORMATS.get(usize::from(*choice)).filter(|format| format.info.name != "columns");
    let options = OpenOptions { format: format.map(|f| f.info.name.to_owned()), ..OpenOptions::default() };
    if let Ok(reader) = Workload::from_bytes("fuzz", rest, &options, Target::NONE).and_then(|w| w.open()) {
        assert!(reader.take(RECORDS).filter(Result::is_err).count() <= 1, "a reader goes on after an error");
    }
}
