//! Opening workloads: specs, options, wrappers together, compression, standard errors.

use nandscape_core::{IoRecord, TraceError, TraceOp};
use nandscape_trace::{OpenOptions, StatsOptions, Target, TraceStats, Workload, convert, open};
use std::io::Write;
use std::path::Path;

const TARGET: Target = Target { capacity_bytes: 1 << 30, ..Target::NONE };
const MIB: u64 = 1 << 20;

fn all(text: &str, options: &OpenOptions) -> Result<Vec<IoRecord>, TraceError> {
    open(text, options, TARGET)?.collect()
}

fn file(dir: &Path, name: &str, bytes: &[u8]) -> String {
    let path = dir.join(name);
    std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

const SMALL: &str =
    "ts_us,op,offset,len\n0,W,1048576,4096\n10.5,R,1048576,512\n20,D,0,2097152\n30,F,0,0\n40,W,8192,4096\n";

#[test]
fn native_csv_is_read_as_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "t.csv", SMALL.as_bytes());
    let records = all(&path, &OpenOptions::default()).unwrap();
    let got: Vec<_> = records.iter().map(|r| (r.at.as_ns(), r.op, r.offset, r.len)).collect();
    assert_eq!(
        got,
        [
            (0, TraceOp::Write, MIB, 4096),
            (10_500, TraceOp::Read, MIB, 512),
            (20_000, TraceOp::Trim, 0, 2 * MIB),
            (30_000, TraceOp::Flush, 0, 0),
            (40_000, TraceOp::Write, 8192, 4096)
        ]
    );
    let mut out = Vec::new();
    convert(open(&path, &OpenOptions::default(), TARGET).unwrap(), "csv", &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), SMALL.replace("10.5,", "10.500,"));
}

#[test]
fn compression_is_found_by_content() {
    let dir = tempfile::tempdir().unwrap();
    let plain = all(&file(dir.path(), "t.csv", SMALL.as_bytes()), &OpenOptions::default()).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(SMALL.as_bytes()).unwrap();
    let packed = [gzip.finish().unwrap(), zstd::encode_all(SMALL.as_bytes(), 3).unwrap()];
    for (index, bytes) in packed.iter().enumerate() {
        let path = file(dir.path(), &format!("odd-name-{index}"), bytes);
        assert_eq!(all(&path, &OpenOptions::default()).unwrap(), plain);
    }
}

#[test]
fn dense_remap_repeat_and_limit_work_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "t.csv", SMALL.as_bytes());
    let options = OpenOptions { remap_dense: true, repeat: 2, ..OpenOptions::default() };
    let got: Vec<_> = all(&path, &options).unwrap().iter().map(|r| (r.at.as_ns(), r.offset, r.len)).collect();
    let pass = [(0, 4096, 4096), (10_500, 4096, 512), (20_000, 0, 8192), (30_000, 0, 0), (40_000, 0, 4096)];
    let second = pass.map(|(at, offset, len)| (at + 50_000, offset, len));
    assert_eq!(got, [pass, second].concat());
    let workload = Workload::new(&path, &options, TARGET).unwrap();
    assert_eq!(workload.span_bytes().unwrap(), 8192);
    let plain = OpenOptions { repeat: 2, ..OpenOptions::default() };
    assert_eq!(Workload::new(&path, &plain, TARGET).unwrap().span().unwrap().1, Some(10));
    let stats = TraceStats::of(workload.open().unwrap(), StatsOptions::default()).unwrap();
    assert_eq!(stats.max_end, 8192);
    assert_eq!(workload.open().unwrap().count(), 10);
    assert_eq!(workload.open().unwrap().count(), 10, "a workload opens again");

    let options = OpenOptions { limit: Some(2), ..options };
    assert_eq!(all(&path, &options).unwrap().len(), 4);
}

#[test]
fn several_volumes_stand_side_by_side_or_are_filtered() {
    let text = "ts_us,op,offset,len,volume,hint\n0,W,0,4096,3,1\n1,W,4096,4096,8,2\n2,W,4096,4096,3,0\n";
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "v.csv", text.as_bytes());
    let got: Vec<_> =
        all(&path, &OpenOptions::default()).unwrap().iter().map(|r| (r.offset, r.hint)).collect();
    assert_eq!(got, [(0, 1), (MIB + 4096, 2), (4096, 0)]);
    let only = OpenOptions { volumes: vec!["8".to_owned()], ..OpenOptions::default() };
    assert_eq!(all(&path, &only).unwrap().iter().map(|r| r.offset).collect::<Vec<_>>(), [4096]);
    let none = OpenOptions { volumes: vec!["5".to_owned()], ..OpenOptions::default() };
    let error = all(&path, &none).unwrap_err().to_string();
    assert!(error.contains("volume 5") && error.contains("3, 8"), "{error}");
}

#[test]
fn kinds_of_blocks_come_with_a_column_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        "ts_us,op,offset,len,kind\n0,W,0,4096,journal\n1,W,4096,4096,file-data\n2,W,8192,4096,inode-table\n";
    let path = file(dir.path(), "k.csv", text.as_bytes());
    let mut reader = open(&path, &OpenOptions { repeat: 2, ..OpenOptions::default() }, TARGET).unwrap();
    let mut kinds = Vec::new();
    while let Some(record) = reader.next() {
        record.unwrap();
        kinds.push(reader.origin().kind.name());
    }
    assert_eq!(kinds, ["journal", "file-data", "inode-table", "journal", "file-data", "inode-table"]);
    let path = file(dir.path(), "w.csv", b"ts_us,op,offset,len,kind\n0,W,0,4096,jurnal\n");
    let error = all(&path, &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("jurnal") && error.contains("inode-table"), "{error}");
}

#[test]
fn wrong_descriptions_say_what_was_expected() {
    let check = |text: &str, options: &OpenOptions, parts: &[&str]| {
        let error =
            open(text, options, TARGET).err().unwrap_or_else(|| panic!("{text} was accepted")).to_string();
        for part in parts {
            assert!(error.contains(part), "{text}: {error}");
        }
    };
    let plain = OpenOptions::default();
    check("uniform:spam=1", &plain, &["unknown key 'spam'", "span"]);
    check("uniform:bs=4q", &plain, &["bs = '4q'", "size"]);
    check("uniform:count", &plain, &["key=value"]);
    check("uniform:count=1,count=2", &plain, &["given twice"]);
    check("uniform:count=0", &plain, &["1 request or more"]);
    check("uniform:count=5,size=1M", &plain, &["not both"]);
    check("uniform:span=2GiB", &plain, &["capacity of 1073741824"]);
    check("uniform:span=1k", &plain, &["at least one request"]);
    check("uniform:read=60%,trim=60%", &plain, &["at most 1 together"]);
    check("hotcold:f=0", &plain, &["at least one of"]);
    check("unifrom:bs=4k", &plain, &["unknown generator 'unifrom'", "uniform"]);
    check("no/such/file", &plain, &["no/such/file"]);
    check("uniform", &OpenOptions { repeat: 0, ..plain.clone() }, &["repeat = 0"]);
    check("uniform", &OpenOptions { time_scale: f64::NAN, ..plain.clone() }, &["time_scale"]);
    check("uniform", &OpenOptions { format: Some("csv".into()), ..plain.clone() }, &["apply to files"]);
    check(
        "some/file",
        &OpenOptions { format: Some("cvs".into()), ..plain.clone() },
        &["unknown format 'cvs'", "csv"],
    );
    let error = open("uniform:span=50%", &plain, Target::NONE).err().unwrap().to_string();
    assert!(error.contains("size in bytes"), "{error}");
}

#[test]
fn generators_keep_to_their_area_count_and_mix() {
    for name in ["uniform", "zipf", "hotcold", "sequential"] {
        let text = format!("{name}:span=10MiB,offset=1MiB,bs=8k,count=20k,read=30%,trim=5%,gap=50us,seed=7");
        let reader = open(&text, &OpenOptions::default(), TARGET).unwrap();
        assert!(reader.info().has_real_times && reader.info().expected_records == Some(20_000));
        let records: Vec<_> = reader.collect::<Result<_, _>>().unwrap();
        assert_eq!(records.len(), 20_000);
        assert!(
            records.iter().all(|r| r.offset >= MIB && r.offset + r.len <= 11 * MIB && r.offset % 8192 == 0)
        );
        assert!(records.iter().enumerate().all(|(i, r)| r.at.as_ns() == i as u64 * 50_000 && r.len == 8192));
        let share = |op| records.iter().filter(|r| r.op == op).count() as f64 / 20_000.0;
        assert!(
            (share(TraceOp::Read) - 0.3).abs() < 0.02 && (share(TraceOp::Trim) - 0.05).abs() < 0.01,
            "{name}"
        );
        assert_eq!(all(&text, &OpenOptions::default()).unwrap(), records, "{name} repeats");
        if name != "sequential" {
            let other = text.replace("seed=7", "seed=8");
            assert_ne!(all(&other, &OpenOptions::default()).unwrap(), records);
        }
    }
}

#[test]
fn sequential_covers_its_span_once_by_default() {
    let records = all("sequential:span=80%,bs=64k", &OpenOptions::default()).unwrap();
    let end = (TARGET.capacity_bytes as f64 * 0.8) as u64;
    assert_eq!(records.len() as u64, end / 65536);
    assert!(records.iter().enumerate().all(|(i, r)| r.offset == i as u64 * 65536));
    let wrapped = all("sequential:span=1MiB,bs=256k,count=6", &OpenOptions::default()).unwrap();
    assert_eq!(wrapped.iter().map(|r| r.offset >> 18).collect::<Vec<_>>(), [0, 1, 2, 3, 0, 1]);
}

#[test]
fn hot_places_take_their_share() {
    let records =
        all("hotcold:span=100MiB,count=50k,f=10%,r=90%,hints=true", &OpenOptions::default()).unwrap();
    let hot = records.iter().filter(|r| r.offset < 10 * MIB).count() as f64 / 50_000.0;
    assert!((hot - 0.9).abs() < 0.01, "{hot}");
    assert!(records.iter().all(|r| r.hint == if r.offset < 10 * MIB { 1 } else { 2 }));
}

#[test]
fn time_going_back_is_an_error_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "t.csv", b"ts_us,op,offset,len\n5,W,0,512\n4,W,0,512\n6,W,0,512\n");
    let mut reader = open(&path, &OpenOptions::default(), TARGET).unwrap();
    assert!(reader.next().unwrap().is_ok());
    let error = reader.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("line 3") && error.contains("goes back") && error.contains("t.csv"), "{error}");
    assert!(reader.next().is_none());
}

/// Another seed has other pages, of which a dense space is made anew.
#[test]
fn repetitions_of_a_generator_are_dense_by_themselves() {
    let options = OpenOptions { remap_dense: true, ..OpenOptions::default() };
    let workload = Workload::new("uniform:span=50%,bs=4k,count=500", &options, TARGET).unwrap();
    let read = |repetition| -> Vec<_> {
        workload.open_again(repetition).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let (first, again) = (read(0), read(1));
    assert_ne!(first, again);
    for records in [first, again] {
        assert!(records.iter().all(|record| record.end() <= 500 * 4096), "{:?}", records.last());
    }
}
