//! A namespace over flash under the suite for subsystems, with every kind of scheduler.

use nandscape_core::{FlashDevice, Params};
use nandscape_media::{Fifo, ReadFirst, Scheduler, Serial};
use nandscape_namespace::NvmSubsystem;
use nandscape_testkit::conformance::{Device, device, shapes};
use nandscape_testkit::subsystem::{Trial, run};

fn single<D: FlashDevice + Send + 'static>(device: D) -> NvmSubsystem {
    let entry = nandscape_ftl::find("page-map").expect("registered");
    let ftl = (entry.build)(Box::new(device), &Params::defaults(entry.info)).expect("it fits");
    NvmSubsystem::plain(ftl)
}

fn passes<S: Scheduler + Send + 'static>() -> u64 {
    let shape = shapes().into_iter().find(|shape| shape.name == "two channels, two LUNs").expect("a shape");
    let make = || {
        let device: Device<S> = device::<S>(&shape, false);
        Box::new(single(device))
    };
    // Trims reach whole pages of 1 KiB.
    let trial = Trial { make: &make, unit_bytes: 512, is_zeroed: false, control: &|_, _, _| Ok(()) };
    let mut unknown = 0;
    for seed in 0..10 {
        let seen = run(&trial, seed, 400).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(seen.cache, None);
        unknown += seen.unknown;
    }
    unknown
}

#[test]
fn a_namespace_passes_the_suite_whether_completions_are_known_or_events() {
    assert_eq!(passes::<Serial>(), 0);
    assert_eq!(passes::<Fifo>(), 0);
    assert!(passes::<ReadFirst>() > 0);
}
