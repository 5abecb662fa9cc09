//! Random commands of several hosts and namespaces against a model that only knows the rules: which ids are
//! open may differ from it by what the controller may choose freely, nothing else may.

use crate::directives::bench::{Bench, Device, Step};
use nandscape_core::NvmeStatus;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MSL: u16 = 4;

#[derive(Clone, Debug)]
enum Action {
    Write(u32, u16),
    Step(Step),
}

fn action() -> impl Strategy<Value = Action> {
    let nsid = || 1u32..4;
    let id = || 0u16..8;
    prop_oneof![
        12 => (nsid(), id()).prop_map(|(n, i)| Action::Write(n, i)),
        3 => (0usize..4).prop_map(|c| Action::Step(Step::As(c))),
        3 => (nsid(), prop::bool::weighted(0.8)).prop_map(|(n, e)| Action::Step(Step::Streams(n, e))),
        2 => (nsid(), 0u16..6).prop_map(|(n, c)| Action::Step(Step::Allocate(n, c))),
        2 => (nsid(), id()).prop_map(|(n, i)| Action::Step(Step::ReleaseId(n, i))),
        1 => nsid().prop_map(|n| Action::Step(Step::ReleaseResources(n))),
        1 => nsid().prop_map(|n| Action::Step(Step::Format(n))),
        1 => (nsid(), any::<bool>()).prop_map(|(n, p)| Action::Step(Step::Protect(n, p))),
        1 => (0usize..4).prop_map(|c| Action::Step(Step::Reset(c))),
        1 => (0usize..4).prop_map(|c| Action::Step(Step::Start(c))),
        1 => any::<bool>().prop_map(|e| Action::Step(Step::Streams(u32::MAX, e))),
    ]
}

/// What must hold whatever happened, seen through what hosts read.
fn sums(bench: &mut Bench) -> Result<(), TestCaseError> {
    bench.directives.check_invariants();
    let mut allocated = 0;
    let mut shared = 0;
    // Controllers 0 and 2 are of one host.
    for controller in [0, 1, 3] {
        bench.step(&Step::As(controller)).unwrap();
        for nsid in 1..=3 {
            let Ok(parameters) = bench.parameters(nsid) else { continue };
            let ids = bench.open_ids(nsid).unwrap();
            prop_assert!(ids.is_sorted_by(|a, b| a < b), "ids {ids:?} ascend");
            prop_assert!(!ids.contains(&0));
            prop_assert_eq!(ids.len(), usize::from(parameters.nso), "NSO counts what is open");
            allocated += parameters.nsa;
            if parameters.nsa == 0 {
                shared += parameters.nso;
            } else {
                prop_assert!(parameters.nso <= parameters.nsa);
            }
        }
    }
    let subsystem = bench.parameters(u32::MAX).unwrap();
    prop_assert_eq!(subsystem.msl, MSL);
    prop_assert_eq!(allocated + subsystem.nssa, MSL, "what is not allocated is shared");
    prop_assert_eq!(shared, subsystem.nsso, "NSSO is the sum of NSO on shared resources");
    prop_assert!(subsystem.nsso <= subsystem.nssa);
    prop_assert_eq!(bench.open_ids(u32::MAX).unwrap().len(), usize::from(shared));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_write_never_fails_and_the_counts_agree(actions in prop::collection::vec(action(), 1..120)) {
        let mut bench = Bench::new(Device::Streams);
        let mut present = 0;
        let mut running = [true; 4];
        // By host and namespace: ids that a write opened and that nothing but the controller may have closed.
        let mut may_be_open: BTreeMap<(usize, u32), BTreeSet<u16>> = BTreeMap::new();
        for action in actions {
            let host = [0, 1, 0, 3][present];
            match action {
                Action::Write(nsid, id) if running[present] => {
                    let open = bench.parameters(nsid).ok();
                    let total = bench.parameters(u32::MAX).unwrap();
                    let log = bench.step(&Step::Write(nsid, id)).unwrap();
                    prop_assert!(log <= u32::from(MSL));
                    // Unstreamed exactly if the rules say so.
                    let has_stream = id > 0 && open.is_some_and(|own| own.nsa > 0 || total.nssa > 0);
                    prop_assert_eq!(log > 0, has_stream, "write to {} of namespace {}", id, nsid);
                    if has_stream {
                        may_be_open.entry((host, nsid)).or_default().insert(id);
                        prop_assert!(bench.open_ids(nsid).unwrap().contains(&id), "the last write's id is open");
                    }
                }
                Action::Step(step) => {
                    // A controller in reset answers nothing.
                    if !running[present] && !matches!(step, Step::As(_) | Step::Start(_) | Step::Reset(_)) {
                        continue;
                    }
                    let result = bench.step(&step);
                    match (&step, result) {
                        (Step::As(controller), _) => present = *controller,
                        (Step::Reset(controller), _) => running[*controller] = false,
                        (Step::Start(controller), _) => running[*controller] = true,
                        (Step::ReleaseId(nsid, id), Ok(_)) => {
                            may_be_open.entry((host, *nsid)).or_default().remove(id);
                        }
                        (Step::Streams(nsid, false), Ok(_)) if *nsid <= 3 => {
                            may_be_open.remove(&(host, *nsid));
                        }
                        (Step::Format(nsid) | Step::Protect(nsid, true), Ok(_)) => {
                            may_be_open.retain(|(_, other), _| other != nsid);
                        }
                        (Step::Streams(..), Err(status)) => prop_assert!(
                            matches!(status, NvmeStatus::StreamResources | NvmeStatus::WriteProtected),
                            "enable gives {status}"
                        ),
                        (Step::Allocate(..), Err(status)) => prop_assert!(
                            matches!(status, NvmeStatus::StreamResources | NvmeStatus::WriteProtected | NvmeStatus::InvalidField),
                            "allocate gives {status}"
                        ),
                        _ => {}
                    }
                }
                Action::Write(..) => {}
            }
            let keep = present;
            for nsid in 1..=3 {
                let host = [0, 1, 0, 3][present];
                if let Ok(open) = bench.open_ids(nsid) {
                    let may = may_be_open.get(&(host, nsid)).cloned().unwrap_or_default();
                    prop_assert!(open.iter().all(|id| may.contains(id)), "{open:?} of {may:?}");
                }
            }
            sums(&mut bench)?;
            bench.step(&Step::As(keep)).unwrap();
        }
    }
}

#[test]
fn ten_thousand_ids_go_through_four_resources() {
    let mut bench = Bench::new(Device::Streams);
    bench.step(&Step::Streams(1, true)).unwrap();
    for round in 0..2 {
        for id in 1..=10_000u16 {
            let log = bench.step(&Step::Write(1, id)).unwrap();
            assert!((1..=4).contains(&log), "round {round}, id {id}: log {log}");
        }
    }
    assert_eq!(bench.open_ids(1).unwrap(), [9997, 9998, 9999, 10_000]);
    let report = bench.directives.report(&bench.logs);
    assert_eq!((report.opened, report.evicted), (20_000, 19_996));
    assert_eq!(report.streams.iter().map(|stream| stream.writes).sum::<u64>(), 20_000);
    assert_eq!(bench.logs.renewed.len(), 19_996, "every resource but the first four held another stream");
}
