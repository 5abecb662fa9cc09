//! Every reader on a small sample made for it. `UPDATE_GOLDEN=1` rewrites the parsed forms; the difference is
//! reviewed.

use nandscape_trace::{OpenOptions, Target, convert, formats, open};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// Sample, format that detection must find or options that name it.
const SAMPLES: &[(&str, &str, Option<&str>)] = &[
    ("sample.csv", "csv", None),
    ("files.ops.csv", "ops", None),
    ("files.strace", "strace", None),
    ("msr.csv", "msr", None),
    ("spc.spc", "spc", None),
    ("mqsim.trace", "mqsim", None),
    ("disksim.trace", "disksim", None),
    ("blkparse.txt", "blkparse", None),
    ("blkparse-zones.txt", "blkparse", None),
    ("fio-v3.log", "fio", None),
    ("fio-v2.log", "fio", None),
    ("fio-v1.iolog", "fio", None),
    ("systor.csv", "systor", None),
    ("alibaba.csv", "alibaba", None),
    ("tencent.csv", "tencent", None),
    ("fiu.fiu", "fiu", None),
    ("arc.lis", "lis", None),
    ("blocks.ids", "ids", None),
    ("ids.u32le", "ids-le", None),
    ("v1.vscsi", "vscsi", None),
    ("v2.vscsi", "vscsi", None),
    ("cache.oracleGeneral", "oracle-general", None),
    (
        "columns.txt",
        "columns",
        Some(
            "columns:time=0:ms,volume=1,op=2,offset=3:sectors,len=4:sectors,read=load,write=store,header=1,sep=semicolon",
        ),
    ),
    ("sample.nst", "nst", None),
];

fn parsed(path: &Path, format: Option<&str>) -> String {
    let options = OpenOptions { format: format.map(str::to_owned), ..OpenOptions::default() };
    let mut reader = open(path.to_str().unwrap(), &options, Target::NONE).unwrap();
    let mut out = String::new();
    for record in reader.by_ref() {
        let r = record.unwrap();
        writeln!(out, "{} {} {} {} {} {}", r.at.as_ns(), r.op.letter(), r.offset, r.len, r.volume, r.hint)
            .unwrap();
    }
    let i = reader.info();
    let times = if i.has_real_times { "real" } else { "no" };
    writeln!(
        out,
        "{}: {} records, {times} times, {} reversals, {} skipped",
        i.format, i.records, i.time_reversals, i.skipped
    )
    .unwrap();
    out
}

#[test]
fn every_reader_reads_its_sample() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    if update {
        let source =
            open(directory.join("sample.csv").to_str().unwrap(), &OpenOptions::default(), Target::NONE)
                .unwrap();
        let mut out = Vec::new();
        convert(source, "nst", &mut out).unwrap();
        std::fs::write(directory.join("sample.nst"), out).unwrap();
    }
    for &(name, format, options) in SAMPLES {
        let got = parsed(&directory.join(name), options);
        assert!(got.contains(&format!("\n{format}: ")), "{name} was read as {got}");
        let expected = directory.join(format!("{name}.parsed"));
        if update {
            std::fs::write(&expected, &got).unwrap();
        }
        assert_eq!(got, std::fs::read_to_string(&expected).unwrap(), "{name}");
    }
}

#[test]
fn every_format_has_a_sample() {
    let sampled: BTreeSet<_> = SAMPLES.iter().map(|sample| sample.1).collect();
    let registered: BTreeSet<_> = formats::FORMATS.iter().map(|format| format.info.name).collect();
    assert_eq!(sampled, registered);
}
