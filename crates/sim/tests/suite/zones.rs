//! Zone operations of a workload reach a subsystem as zone commands, and are measured.

use crate::replay::{List, PAGE, namespace, write};
use nandscape_core::command::Payload;
use nandscape_core::zone::{ZoneAction, ZoneCommand};
use nandscape_core::{
    BlockCommand, Command, Control, Extent, Inspect, IoRecord, Layered, Op, Submitted, Subsystem, TraceOp,
    delegate_clock,
};
use nandscape_media::Serial;
use nandscape_sim::{Pacing, Precondition, ReplayOptions, RunResult, Snapshot, replay};

/// Takes zone commands over a block namespace: appends go to one place, operations on states are flushes.
struct Zoned {
    below: Box<dyn Subsystem>,
    seen: Vec<ZoneCommand>,
}

impl nandscape_core::Clocked for Zoned {
    delegate_clock!(self, self.below);
}

nandscape_core::no_state!(impl [] Zoned: "a subsystem of a test");

impl Layered for Zoned {
    fn below(&self) -> &dyn Subsystem {
        &*self.below
    }

    fn below_mut(&mut self) -> &mut dyn Subsystem {
        &mut *self.below
    }

    fn submit(
        &mut self,
        namespace: u32,
        command: Command,
        payload: Payload<'_>,
        at: nandscape_core::SimTime,
    ) -> Submitted {
        let block = match command {
            Command::Zone(zone) => {
                let block = match zone {
                    ZoneCommand::Append { len, hint, .. } => {
                        BlockCommand::new(Op::Write, Extent::new(0, len), hint)
                    }
                    _ => BlockCommand::FLUSH,
                };
                self.seen.push(zone);
                block.into()
            }
            block => block,
        };
        self.below.submit(namespace, block, payload, at)
    }

    fn inspect(&self) -> Inspect<'_> {
        self.below.inspect()
    }

    fn control(&mut self) -> Control<'_> {
        self.below.control()
    }

    fn counters_were_reset(&mut self) {}
}

fn run(subsystem: &mut dyn Subsystem, records: Vec<IoRecord>) -> RunResult {
    let options = ReplayOptions {
        pacing: Pacing::Closed { depth: 1 },
        precondition: &Precondition::default(),
        snapshot: Snapshot::Unused,
        until_steady: None,
        seed: 1,
        with_series: true,
        marks: &[],
        with_detail: false,
        stop: None,
    };
    replay(subsystem, &mut List(records.into_iter()), "list", &options, &mut || {}, &mut |_| {})
        .unwrap()
        .result
}

fn zone(op: TraceOp, offset: u64, len: u64) -> IoRecord {
    IoRecord { op, offset, len, ..write(0, 0, 0) }
}

#[test]
fn zone_operations_are_submitted_as_such_and_have_latencies_of_their_own() {
    let mut zoned = Zoned { below: namespace::<Serial>(), seen: Vec::new() };
    let page = u64::from(PAGE);
    let records = vec![
        zone(TraceOp::Open, 8 * page, 0),
        zone(TraceOp::Append, 8 * page, page),
        write(0, 3, 1),
        zone(TraceOp::Finish, 8 * page, 0),
        zone(TraceOp::Close, 0, 0),
        zone(TraceOp::Reset, 0, IoRecord::EVERY_ZONE),
    ];
    let result = run(&mut zoned, records);
    assert!(result.error.is_none());
    let manage = |action, zone| ZoneCommand::Manage { action, zone };
    let append =
        ZoneCommand::Append { zone: 8 * page, len: page, hint: nandscape_core::Hint(0), is_durable: false };
    assert_eq!(
        zoned.seen,
        [
            manage(ZoneAction::Open, Some(8 * page)),
            append,
            manage(ZoneAction::Finish, Some(8 * page)),
            manage(ZoneAction::Close, Some(0)),
            manage(ZoneAction::Reset, None),
        ]
    );
    assert_eq!(result.workload.requests, 6);
    assert_eq!((result.latency_ns.write.count, result.latency_ns.all.count), (2, 2), "an append is a write");
    assert_eq!(result.latency_ns.zone.unwrap().count, 4);
}

#[test]
fn a_block_device_refuses_zone_operations_by_name_and_documents_without_them_are_as_before() {
    for (op, expected) in [
        (TraceOp::Append, "request 2 (A offset 0 len 4096): zone append is not supported by this namespace"),
        (TraceOp::Reset, "request 2 (X offset 0 len 4096): reset zone is not supported by this namespace"),
    ] {
        let result = run(&mut *namespace::<Serial>(), vec![write(0, 0, 1), zone(op, 0, 4096)]);
        assert_eq!(result.error.unwrap().message, expected);
    }
    let result = run(&mut *namespace::<Serial>(), vec![write(0, 0, 1)]);
    let document = serde_json::to_value(&result).unwrap();
    assert!(document["latency_ns"].get("zone").is_none());
}
