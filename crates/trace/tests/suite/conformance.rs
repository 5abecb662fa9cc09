//! Every registered format against wrong input: empty, cut off, garbled, oversized. Each gives at most one
//! clear error, ends there, never panics, and never allocates what the input claims.

use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_trace::{BoxReader, OpenOptions, Target, Workload, formats};
use std::path::{Path, PathBuf};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Every sample with the call that reads it: detection is left out, so that garbled bytes reach the reader.
fn samples() -> Vec<(String, String, Vec<u8>)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(golden()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Ok(parsed) = std::fs::read_to_string(golden().join(format!("{name}.parsed"))) else { continue };
        let format = parsed.lines().last().unwrap().split(':').next().unwrap();
        let call = match format {
            "columns" => {
                "columns:time=0:ms,volume=1,op=2,offset=3:sectors,len=4:sectors,read=load,write=store,header=1,sep=semicolon"
            }
            other => other,
        };
        out.push((name, call.to_owned(), std::fs::read(&path).unwrap()));
    }
    out.sort();
    assert!(out.len() >= formats::FORMATS.len());
    out
}

fn open_bytes(call: &str, bytes: &[u8]) -> Result<BoxReader, nandscape_core::TraceError> {
    let options = OpenOptions { format: Some(call.to_owned()), ..OpenOptions::default() };
    Workload::from_bytes("input", bytes, &options, Target::NONE)?.open()
}

/// Reads to the end; the records before the error and its message.
fn read(call: &str, bytes: &[u8]) -> (u64, Option<String>) {
    let mut reader = match open_bytes(call, bytes) {
        Ok(reader) => reader,
        Err(error) => return (0, Some(error.to_string())),
    };
    let (mut records, mut last) = (0, 0);
    while let Some(next) = reader.next() {
        match next {
            Ok(record) => {
                assert!(record.offset.checked_add(record.len).is_some(), "{call}: {record:?}");
                assert!(record.at.as_ns() >= last, "{call}: time goes back to {record:?}");
                last = record.at.as_ns();
                records += 1;
            }
            Err(error) => {
                assert!(reader.next().is_none() && reader.next().is_none(), "{call}: goes on after {error}");
                return (records, Some(error.to_string()));
            }
        }
    }
    assert!(reader.next().is_none());
    (records, None)
}

#[test]
fn empty_input_is_one_clear_error() {
    for (name, call, _) in samples() {
        let (records, error) = read(&call, b"");
        let error = error.unwrap_or_else(|| panic!("{name}: no error"));
        assert_eq!(records, 0);
        assert!(
            error.contains("no records") || error.contains("cut off") || error.contains("neither version"),
            "{name}: {error}"
        );
    }
    let detected = Workload::from_bytes("empty", b"", &OpenOptions::default(), Target::NONE).unwrap().open();
    let error = detected.err().unwrap().to_string();
    assert!(error.contains("no records"), "{error}");
}

#[test]
fn cut_off_input_gives_a_prefix_and_at_most_one_error() {
    for (name, call, bytes) in samples() {
        let (whole, error) = read(&call, &bytes);
        assert_eq!(error, None, "{name}");
        let mut errors = 0;
        for cut in 0..bytes.len() {
            let (records, error) = read(&call, &bytes[..cut]);
            assert!(records <= whole, "{name} cut at {cut}: {records} of {whole}");
            errors += usize::from(error.is_some());
            // Binary records show at once that one is incomplete; a cut line may look whole.
            if name.ends_with("vscsi") || name.ends_with("nst") {
                let is_border = name.ends_with("vscsi")
                    && cut > 0
                    && cut % if name.starts_with("v1") { 32 } else { 40 } == 0;
                assert_eq!(error.is_none(), is_border, "{name} cut at {cut}: {error:?}");
            }
        }
        assert!(errors > 0, "{name}: no cut is noticed");
    }
}

fn mutate(rng: &mut Xoshiro256PlusPlus, bytes: &[u8]) -> Vec<u8> {
    const SPICE: &[u8] = b"0123456789,.;- \t\n\rRWDFZAXNOC\0\xff:e+";
    let mut out = bytes.to_vec();
    for _ in 0..=below(rng, 4) {
        let at = below(rng, out.len() as u64 + 1) as usize;
        let any = below(rng, 256) as u8;
        let spice = SPICE[below(rng, SPICE.len() as u64) as usize];
        match below(rng, 7) {
            0 if at < out.len() => out[at] = any,
            1 if at < out.len() => out[at] = spice,
            2 if at < out.len() => out[at] ^= 1 << below(rng, 8),
            3 => out.insert(at, spice),
            4 if at < out.len() => drop(out.remove(at)),
            5 => drop(out.splice(at..at, b"99999999999999999999".iter().copied())),
            _ => {
                let len = below(rng, 40) as usize;
                let piece: Vec<u8> = out[at..].iter().copied().take(len).collect();
                drop(out.splice(at..at, piece));
            }
        }
    }
    out
}

#[test]
fn garbled_input_never_panics() {
    const CASES: u32 = 4000;
    for (name, call, bytes) in samples() {
        let mut rng = seeded(2026);
        let (mut errors, mut named) = (0, 0);
        for _ in 0..CASES {
            let garbled = mutate(&mut rng, &bytes);
            if let (_, Some(error)) = read(&call, &garbled) {
                errors += 1;
                named +=
                    u32::from(error.contains("line ") || error.contains("offset ") || error.contains("no "));
            }
        }
        // Any four bytes are a block id, so that form only notices its length.
        assert!(errors > CASES / 20, "{name}: only {errors} of {CASES} noticed");
        assert!(named * 10 >= errors * 9, "{name}: only {named} of {errors} errors name a place");
    }
}

#[test]
fn detection_never_panics_on_garbled_input() {
    let mut rng = seeded(7);
    for (_, _, bytes) in samples() {
        for _ in 0..150 {
            let garbled = mutate(&mut rng, &bytes);
            let workload =
                Workload::from_bytes("input.bin", &garbled, &OpenOptions::default(), Target::NONE).unwrap();
            if let Ok(reader) = workload.open() {
                assert!(reader.take(10_000).filter(Result::is_err).count() <= 1);
            }
        }
    }
}

#[test]
fn oversized_input_is_refused() {
    let line = vec![b'1'; 70_000];
    for (name, call, bytes) in samples() {
        if bytes.contains(&0) || name.ends_with("u32le") {
            continue;
        }
        let text = [bytes.as_slice(), &line, b"\n"].concat();
        let (_, error) = read(&call, &text);
        let error = error.unwrap_or_else(|| panic!("{name}: a line of 70,000 B is accepted"));
        assert!(error.contains("65536"), "{name}: {error}");
    }
    let absurd = [
        ("csv", "ts_us,op,offset,len\n0,W,0,1099511627777\n", "2^40"),
        ("csv", "ts_us,op,offset,len\n0,W,18446744073709551615,1\n", "2^64"),
        ("csv", "ts_us,op,offset,len\n0,W,562949953421313,1\n", "memory address"),
        ("csv", "ts_us,op,offset,len\n9999999999999999,W,0,1\n", "100 years"),
        ("csv", "ts_us,op,offset,len\n0,W,0,0\n", "0 bytes"),
        ("csv", "ts_us,op,offset,len\n0,W,0\n", "ends before its len"),
        ("csv", "ts_us,op,offset,len\n0,W,0,1,2\n", "more columns"),
        ("csv", "0,W,0,1\n", "header"),
        ("csv", "ts_us,op,offset,len\n0,X,0,0\n1,A,0,0\n", "line 3: a read, write or append of 0 bytes"),
        (
            "csv",
            "ts_us,op,offset,len\n0,Q,0,1\n",
            "line 2: op is 'Q': expected R, W, D, Z or F, or A, X, N, O or C",
        ),
        (
            "blkparse",
            "8,0 0 1 0.000000001 1 D ZR [x]\n",
            "line 1: 'ZR' without its zone: expected start + count, from blkparse -f",
        ),
        ("blkparse", "8,0 0 1 0.000000001 1 D ZX 8 + 8 [x]\n", "line 1: RWBS is 'ZX': expected"),
        ("mqsim", "0 0 140737488355328 8 1\n", "memory address"),
        ("mqsim", "0 0 36028797018963968 8 1\n", "64 bits"),
        ("disksim", "9999999999999.0 0 8 8 1\n", "100 years"),
        ("mqsim", "0 0 8 8 2\n", "0 (write) or 1 (read)"),
        ("blkparse", "8,0 0 1 0.000000001 1 Q R 8 + 8 [x]\n", "blkparse:action=Q"),
    ];
    for (call, text, part) in absurd {
        let (_, error) = read(call, text.as_bytes());
        let error = error.unwrap_or_else(|| panic!("{text} is accepted"));
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn force_believes_far_addresses() {
    let options = OpenOptions { force: true, ..OpenOptions::default() };
    let far =
        Workload::from_bytes("far.mqsim", b"0 0 140737488355328 8 1\n", &options, Target::NONE).unwrap();
    let records: Vec<_> = far.open().unwrap().collect();
    assert_eq!(records[0].as_ref().unwrap().offset, 140_737_488_355_328 * 512);
}

#[test]
fn small_compressed_files_that_expand_hugely_are_streamed() {
    // 256 MiB of one line, a few KiB packed: read as lines, and refused at the first.
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    std::io::copy(&mut std::io::Read::take(std::io::repeat(b'7'), 256 << 20), &mut encoder).unwrap();
    let packed = encoder.finish().unwrap();
    assert!(packed.len() < 1 << 16);
    let (_, error) = read("msr", &packed);
    assert!(error.unwrap().contains("longer than"), "one line is too long");
}
