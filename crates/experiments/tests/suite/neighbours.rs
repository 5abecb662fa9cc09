//! The noisy-neighbour harness on a small drive: the victim feels the writer where they share dies, and not
//! in vertical sets.

use nandscape_experiments::neighbours::{SiteOptions, noisy_neighbour, render_cases};
use nandscape_jobs::JobFile;
use nandscape_stack::Typed;

const DEVICE: &str = "[device]\nchannels = 4\ndies_per_channel = 2\nplanes_per_die = 1\nblocks_per_plane = 64\npages_per_block = 32\n\
    [device.timing]\nscheduler = 'read-first'\n[namespaces]\ncount = 2\n[ftl]\nop = 0.5\n";
const JOBS: &str = "[noise]\nfilename=ns1\nrw=write\nbs=64k\niodepth=4\nsize=100%\ntime_based\nruntime=1d\n\
    [victim]\nfilename=ns2\nrw=randread\nnorandommap\nbs=16k\niodepth=2\nsize=100%\nio_size=32m\nexitall\n";

fn typed() -> Typed {
    let mut typed = Typed::new();
    typed.merge_text("test.toml", DEVICE).unwrap();
    typed
}

#[test]
fn a_victim_is_slowed_down_where_it_shares_dies() {
    let file = JobFile::parse("test.fio", JOBS).unwrap();
    let layouts = ["traditional", "vertical"];
    let cases =
        noisy_neighbour(&typed(), &file, "victim", &layouts, 100_000_000, SiteOptions::default()).unwrap();
    let cost: Vec<f64> = cases
        .iter()
        .map(|case| case.victim.read.latency_ns.mean / case.victim_alone.read.latency_ns.mean)
        .collect();
    assert!(cost[0] > 1.5, "traditional: {cost:?}");
    // The places differ, since a job draws by its number in the file.
    assert!((cost[1] - 1.0).abs() < 0.01, "no die and no channel in common: {cost:?}");
    for case in &cases {
        assert_eq!((case.victim.read.requests, case.victim_alone.read.requests), (2048, 2048));
        assert!(case.aggressors[0].write.bytes > 0 && case.aggressors_alone[0].write.bytes > 0);
    }
    let table = render_cases(&cases);
    assert_eq!(table.lines().count(), 1 + 2 * 4, "{table}");
    assert!(table.contains("vertical") && table.contains("together"), "{table}");
}

#[test]
fn a_victim_that_is_not_there_is_named() {
    let file = JobFile::parse("test.fio", JOBS).unwrap();
    let error = noisy_neighbour(&typed(), &file, "reader", &["vertical"], 1, SiteOptions::default());
    let message = error.unwrap_err().to_string();
    assert!(message.contains("test.fio") && message.contains("'reader'"), "{message}");
}

#[test]
fn recordings_are_neighbours_too() {
    // Generators stand for traces in files.
    let jobs = "[noise]\nread_iolog=uniform\\:bs=64k,span=50%,count=2000\nfilename=ns1\nloops=2\niodepth=4\n\
        [victim]\nread_iolog=uniform\\:bs=16k,span=50%,count=3000,read=100%\nfilename=ns2\niodepth=2\n";
    let file = JobFile::parse("test.fio", jobs).unwrap();
    let cases =
        noisy_neighbour(&typed(), &file, "victim", &["traditional", "vertical"], 1, SiteOptions::default())
            .unwrap();
    let mut cost = Vec::new();
    for case in &cases {
        // Alone they run to their end, together until the victim ends.
        let [alone, together] =
            [&case.aggressors_alone[0], &case.aggressors[0]].map(|job| job.write.requests);
        assert_eq!((alone, case.victim.read.requests), (4000, 3000), "{}", case.layout);
        assert!((100..4000).contains(&together), "{together}");
        cost.push(case.victim.read.latency_ns.mean / case.victim_alone.read.latency_ns.mean);
    }
    // The places differ, since a job draws by its number in the file.
    assert!(cost[0] > 1.5 && (cost[1] - 1.0).abs() < 0.05, "{cost:?}");
}
