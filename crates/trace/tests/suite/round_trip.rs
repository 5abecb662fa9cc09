//! What a writer writes, its reader reads back: for arbitrary requests, up to what the format can hold.

use nandscape_core::{IoRecord, SimTime, TraceError, TraceOp, TraceReader, WorkloadInfo};
use nandscape_trace::{Converted, OpenOptions, Target, Workload, convert, formats};
use proptest::prelude::*;

struct List(std::vec::IntoIter<IoRecord>);

impl Iterator for List {
    type Item = Result<IoRecord, TraceError>;
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Ok)
    }
}

impl TraceReader for List {
    fn info(&self) -> WorkloadInfo {
        WorkloadInfo::default()
    }
}

fn list(records: &[IoRecord]) -> List {
    let owned: Vec<_> = records.into();
    List(owned.into_iter())
}

fn read(call: &str, bytes: &[u8]) -> Result<Vec<IoRecord>, TraceError> {
    let options = OpenOptions { format: Some(call.to_owned()), ..OpenOptions::default() };
    Workload::from_bytes("trace", bytes, &options, Target::NONE)?.open()?.collect()
}

/// What a format can hold.
struct Form {
    call: &'static str,
    /// Resolution of its clock in ns.
    tick: u64,
    /// Whether times come back relative to the first.
    from_first: bool,
    /// Addresses and lengths in sectors: both, only starts, or neither.
    sectors: (bool, bool),
    ops: &'static [TraceOp],
    hints: bool,
}

const RW: &[TraceOp] = &[TraceOp::Read, TraceOp::Write];
const ALL: &[TraceOp] = &TraceOp::ALL;
/// Those of objects, which a file has all or none of.
const OBJECTS: &[TraceOp] = ALL.split_at(10).1;
const OTHERS: &[TraceOp] = ALL.split_at(10).0;

const fn form(
    call: &'static str,
    tick: u64,
    from_first: bool,
    sectors: (bool, bool),
    ops: &'static [TraceOp],
) -> Form {
    Form { call, tick, from_first, sectors, ops, hints: false }
}

const FORMS: &[Form] = &[
    form("csv", 1, false, (false, false), OTHERS),
    Form { hints: true, ..form("csv", 1, false, (false, false), OBJECTS) },
    Form { hints: true, ..form("nst", 1, false, (false, false), ALL) },
    form("msr", 100, true, (false, false), RW),
    form("spc", 1, false, (true, false), RW),
    form("mqsim", 1, false, (true, true), RW),
    form("mqsim:unit=us", 1000, false, (true, true), RW),
    form("mqsim:unit=ps", 1, false, (true, true), RW),
    form("disksim", 1, false, (true, true), RW),
    form("fio", 1000, false, (false, false), &[TraceOp::Read, TraceOp::Write, TraceOp::Trim, TraceOp::Flush]),
    form("alibaba", 1000, true, (false, false), RW),
];

/// Requests that the format can hold without loss, in time order. Times are kept small enough for every unit.
fn fitted(form: &Form, raw: &[(u32, u64, u64, u8, u16)]) -> Vec<IoRecord> {
    let mut now = 0;
    raw.iter()
        .map(|&(gap, offset, len, op, hint)| {
            now += u64::from(gap) / form.tick * form.tick;
            let cut = |value: u64, in_sectors: bool| if in_sectors { value / 512 * 512 } else { value };
            let op = form.ops[usize::from(op) % form.ops.len()];
            let (offset, len) = (cut(offset, form.sectors.0), cut(len, form.sectors.1).max(512));
            let (offset, len) = match op {
                TraceOp::Flush => (0, 0),
                _ if op.zone_action().is_some() && offset % 2 == 0 => (offset, 0),
                _ => (offset, len),
            };
            IoRecord { at: SimTime(now), offset, len, volume: 0, hint: if form.hints { hint } else { 0 }, op }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn readers_give_back_what_writers_were_given(
        raw in prop::collection::vec((any::<u32>(), 0..1u64 << 49, 1..1u64 << 40, any::<u8>(), any::<u16>()), 1..40)
    ) {
        for form in FORMS {
            let mut records = fitted(form, &raw);
            let mut out = Vec::new();
            let converted = convert(list(&records), form.call, &mut out).unwrap();
            prop_assert_eq!(converted, Converted { written: records.len() as u64, has_volumes: false });
            let back = read(form.call, &out).unwrap();
            if form.from_first {
                let first = records[0].at.as_ns();
                for record in &mut records {
                    record.at = SimTime(record.at.as_ns() - first);
                }
            }
            prop_assert_eq!(back, records, "{}", form.call);
        }
    }
}

#[test]
fn every_writable_format_is_tried() {
    for format in formats::FORMATS.iter().filter(|format| format.is_writable()) {
        assert!(FORMS.iter().any(|form| form.call == format.info.name), "{}", format.info.name);
    }
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let io = |op, offset| IoRecord { at: SimTime::ZERO, offset, len: 512, volume: 0, hint: 0, op };
    let records =
        [io(TraceOp::Write, 0), io(TraceOp::Trim, 0), io(TraceOp::Read, 100), io(TraceOp::Write, 512)];
    let error = convert(list(&records), "mqsim", &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("mqsim cannot hold D at 0 of 512 B"), "{error}");
    assert!(OBJECTS.iter().all(|op| op.is_object_op()) && !OTHERS.iter().any(|op| op.is_object_op()));
    for op in TraceOp::ALL.into_iter().filter(|op| op.block_op().is_none()) {
        for format in ["fio", "msr", "spc", "mqsim", "disksim", "alibaba"] {
            let error = convert(list(&[io(op, 0)]), format, &mut Vec::new()).unwrap_err().to_string();
            let expected = format!("{format} cannot hold {} at 0 of 512 B: expected", op.letter());
            assert!(error.contains(&expected), "{error}");
        }
    }
    let mixed = [io(TraceOp::Write, 0), io(TraceOp::ObjectWrite, 0)];
    let error = convert(list(&mixed), "csv", &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("csv cannot hold w at 0 of 512 B: expected objects from the first"), "{error}");
    let error = read("csv", b"ts_us,op,offset,len\n0,w,0,512\n").unwrap_err().to_string();
    assert!(error.contains("expected a column volume"), "{error}");
    let error = convert(list(&records), "systor", &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("cannot be written") && error.contains("csv, nst"), "{error}");
}

#[test]
fn a_damaged_native_binary_is_noticed() {
    let records: Vec<_> = (0..100u64)
        .map(|i| IoRecord {
            at: SimTime(i),
            offset: i * 512,
            len: 512,
            volume: 0,
            hint: 0,
            op: TraceOp::Write,
        })
        .collect();
    let mut good = Vec::new();
    convert(list(&records), "nst", &mut good).unwrap();
    // Every byte that is looked at: header, records, count and sum of the closing record, its operation.
    let looked_at = (0..good.len() - 32 + 16).chain([good.len() - 2]);
    for at in looked_at {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        assert!(read("nst", &bad).is_err(), "byte {at}");
    }
}
