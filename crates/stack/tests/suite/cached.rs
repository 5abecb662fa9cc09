//! `[cache]` and `[disk]`: checked, printed so that they read back, and run by traces, generators and job
//! files.

use nandscape_stack::cache::{NO_CACHE, knows};
use nandscape_stack::{CompareOptions, Run, RunOptions, StackConfig, Typed, compare, replay};
use nandscape_testkit::subsystem::{self, Trial};
use std::fmt::Write as _;

/// A flash device of 64 MiB, a disk of 1 GiB.
const SMALL: &[&str] = &[
    "device.channels=2",
    "device.dies_per_channel=2",
    "device.planes_per_die=1",
    "device.blocks_per_plane=64",
    "device.pages_per_block=64",
    "device.page=4KiB",
    "ftl.op=0.2",
    "disk.size=1GiB",
];

fn check(text: &str, sets: &[&str]) -> Result<StackConfig, String> {
    let mut typed = Typed::new();
    typed.merge_text("test.toml", text).map_err(|e| e.to_string())?;
    for pair in sets {
        typed.set_pair(pair).map_err(|e| e.to_string())?;
    }
    typed.check().map_err(|e| e.to_string())
}

fn small(sets: &[&str]) -> StackConfig {
    check("", &[SMALL, sets].concat()).unwrap()
}

fn run(config: &StackConfig, workload: &str) -> Run {
    let run = replay(config, workload, &RunOptions::default()).unwrap();
    assert_eq!(run.result.error, None, "{}", run.label);
    run
}

const ZIPF: &str = "zipf:count=20k,span=96MiB,read=50%,bs=4k";

#[test]
fn mistakes_name_key_value_and_expectation() {
    for (text, sets, wanted) in [
        ("[cache]\nprest = \"bcache\"", &[][..], &["cache.prest", "preset"][..]),
        ("", &["cache.preset=bcash"], &["bcash", "bcache"]),
        ("", &["cache.preset=bcache", "cache.mode=write-only"], &["cache.mode", "write-only", "write-back"]),
        (
            "",
            &["cache.preset=nandscape", "cache.device=floppy"],
            &["cache.device = 'floppy'", "flash, disk, rated"],
        ),
        ("", &["cache.device=ram", "cache.fast.read_rat=1"], &["cache.fast.read_rat", "read_rate"]),
        ("", &["cache.device=flash", "cache.fast.read_rate=1"], &["cache.fast.read_rate", "[device]"]),
        ("", &["disk.rmp=1"], &["disk.rmp", "rpm"]),
        ("", &["disk.rpm=0"], &["disk.rpm = '0'", "100 to 100000"]),
        ("", &["disk.preset=tape"], &["disk.preset = 'tape'", "article-hdd"]),
        ("", &["disk.inner_rate=200"], &["disk.inner_rate", "at most outer_rate"]),
        ("", &["disk.preset=flash", "disk.size=1GiB"], &["disk.size", "[disk.stack]"]),
        ("", &["disk.stack.device.channels=4"], &["disk.stack", "disk.preset = flash"]),
        (
            "",
            &["disk.preset=flash", "disk.stack.devise.channels=4"],
            &["disk.stack.devise", "known: cache, device"],
        ),
        ("", &["disk.preset=flash", "disk.stack.disk.preset=ram"], &["disk.stack", "flash stack"]),
        ("", &["cache.preset=none", "cache.mode=write-back"], &["cache.mode", "no cache"]),
        ("", &["disk.count=0"], &["disk.count = '0'", "1 to 64"]),
        ("", &["cache.quota=ns2=25%"], &["cache.quota = 'ns2=25%'", "ns1 to ns1"]),
        ("", &["cache.quota=25%"], &["cache.quota = '25%'", "such as ns1=25%"]),
        ("", &["cache.quota=ns1=lots"], &["cache.quota = 'lots'", "10000b"]),
        ("", &["cache.devices=2"], &["cache.devices = '2'", "1 with cache.device = flash"]),
        ("", &["cache.preset=none", "cache.quota=ns1=1b"], &["cache.quota", "no cache"]),
    ] {
        let error = check(text, sets).map(|_| ()).unwrap_err();
        for part in wanted {
            assert!(error.contains(part), "{text} {sets:?}: {error}");
        }
    }
}

#[test]
fn a_volume_has_a_quota_and_blocks_are_striped_over_several_devices() {
    let sets = ["cache.device=rated", "cache.size=16MiB"];
    let used = |more: &[&str]| {
        let result = run(&small(&[&sets[..], more].concat()), ZIPF).result.cache.unwrap();
        (result.report.used, result.report.counters.read_hits, result.device)
    };
    let all = used(&[]);
    // A few slots become free with the next commit.
    assert!((4000..=4096).contains(&all.0) && all.2 == "rated", "{all:?}");
    let bound = used(&["cache.quota=ns1=25%"]);
    assert!((1000..=1024).contains(&bound.0), "{bound:?}");
    assert!(bound.1 < all.1);
    let striped = used(&["cache.devices=3"]);
    // The same blocks in the same slots; when commits and cleaning come differs with the speed of the
    // devices, and a few hits with them.
    assert_eq!(striped.2, "3 x rated");
    assert!(striped.1.abs_diff(all.1) * 100 <= all.1, "{striped:?} {all:?}");
    let timeless = ["cache.mode=write-through", "cache.metadata=none", "cache.cleaning=none"];
    let [one, three] =
        ["cache.devices=1", "cache.devices=3"].map(|of| used(&[&timeless[..], &[of]].concat()));
    assert_eq!((one.0, one.1), (three.0, three.1));
}

#[test]
fn what_is_printed_reads_back() {
    for sets in [
        &["cache.preset=flashcache", "cache.fallow_delay=2s", "cache.size=16MiB"][..],
        &["cache.device=ram", "cache.devices=3", "cache.quota=ns1=25%,ns2=10b", "disk.count=2"],
        &[
            "cache.device=rated",
            "cache.fast.random_read=100",
            "cache.eviction=lru",
            "disk.preset=ram",
            "disk.size=1GiB",
        ],
        &["cache.preset=none", "disk.rpm=5400", "disk.count=3"],
        &["disk.preset=flash", "disk.stack.device.preset=thesis", "disk.stack.ftl.op=0.5"],
        &["cache.preset=rapidcache"],
    ] {
        let config = check("", sets).unwrap();
        let again = check(&config.to_toml(), &[]).unwrap_or_else(|e| panic!("{e}\n{}", config.to_toml()));
        assert_eq!((again.to_toml(), again.hash()), (config.to_toml(), config.hash()), "{sets:?}");
    }
    assert!(
        !check("", &[]).unwrap().to_toml().contains("cache"),
        "nothing is said of a cache where there is none"
    );
}

#[test]
fn a_name_is_known_where_a_policy_has_it() {
    assert!(knows("flashcache", "fallow_delay", &[]) && !knows("bcache", "fallow_delay", &[]));
    assert!(knows("bcache", "small", &[("eviction", "s3-fifo")]) && !knows("bcache", "small", &[]));
    assert!(knows("bcache", "device", &[]) && !knows(NO_CACHE, "device", &[]));
}

#[test]
fn a_cache_over_flash_spares_the_disk_and_reports_what_the_flash_wrote() {
    let alone = run(&small(&["cache.preset=none"]), ZIPF);
    let cached = run(&small(&["cache.preset=nandscape"]), ZIPF);
    assert_eq!((alone.label.as_str(), cached.label.as_str()), ("none", "nandscape"));
    assert_eq!(alone.result.run.workload_hash, cached.result.run.workload_hash);
    let (alone_ns, cached_ns) = (alone.result.speed.time.simulated_ns, cached.result.speed.time.simulated_ns);
    assert!(cached_ns < alone_ns, "the cache makes it faster: {cached_ns} and {alone_ns} ns");
    assert!(
        alone.result.flash.by_cause.is_empty() && alone.result.waf.pages.is_none(),
        "a disk has no flash"
    );
    let (cache, disk) = (cached.result.cache.unwrap(), alone.result.cache.unwrap());
    assert_eq!((cache.device.as_str(), cache.disk.as_str()), ("flash", "article-hdd of 1 GiB"));
    assert_eq!((disk.hit_ratio, disk.report.fast.write_bytes), (Some(0.0), 0));
    assert!(cache.read_hit_ratio > Some(0.3) && cache.write_hit_ratio > Some(0.3), "{cache:?}");
    let page = 4096.0;
    let waf = cached.result.flash.programs as f64 * page / cache.report.fast.write_bytes as f64;
    assert_eq!(cache.device_waf, Some(waf), "what was programmed for each byte that the cache wrote");
    assert!(waf >= 1.0, "{waf}");
    let host = cached.result.host;
    assert_eq!(cache.report.counters.reads + cache.report.counters.writes, host.reads + host.writes);
    assert!(cache.report.disk().read_bytes < disk.report.disk().read_bytes / 2, "the disk is spared");
    let text = nandscape_report::render_detail(&run(&small(&["cache.preset=nandscape"]), ZIPF), None);
    for part in ["nandscape: write-back", "hit ratio", "cache device", "bytes programmed for each byte"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn every_preset_runs_every_kind_of_workload() {
    let jobs = "[global]\nsize=32m\nbs=4k\niodepth=8\n[writer]\nrw=randwrite\nnumber_ios=2000\n[reader]\nrw=randread\nnumber_ios=2000\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.fio");
    std::fs::write(&path, jobs).unwrap();
    let configs: Vec<StackConfig> = nandscape_cache::presets::PRESETS
        .iter()
        .map(|preset| preset.info.name)
        .chain([NO_CACHE])
        .map(|name| small(&[&format!("cache.preset={name}")]))
        .collect();
    for workload in [ZIPF, path.to_str().unwrap()] {
        let runs =
            compare(&configs, &[workload.to_owned()], CompareOptions::default(), &RunOptions::default());
        let runs = runs.unwrap();
        let mut names = String::new();
        for run in &runs {
            assert_eq!(run.result.error, None, "{}: {workload}", run.label);
            write!(names, "{} ", run.label).unwrap();
        }
        assert_eq!(names, "nandscape dm-cache-fiu flashcache enhanceio rapidcache bcache dm-cache none ");
        let hashes: Vec<_> = runs.iter().map(|run| &run.result.run.workload_hash).collect();
        if workload == ZIPF {
            assert!(hashes.iter().all(|hash| *hash == hashes[0]), "every cache got the same requests");
        }
    }
}

#[test]
fn runs_repeat() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = folder.path().join("jobs.fio");
    std::fs::write(
        &jobs,
        "[global]\nbs=4k\niodepth=8\nsize=24m\nnumber_ios=4000\n\
         [mix]\nfilename=ns1\nrw=randrw\nbssplit=512/20:4k/50:24k/30\nfsync=100\n\
         [trims]\nfilename=ns2\nrw=randtrimwrite\n",
    )
    .unwrap();
    let rated = ["cache.preset=bcache", "cache.device=article-ssd", "cache.size=16MiB"];
    let flash = [
        "cache.preset=nandscape",
        "cache.admission=all",
        "cache.size=8MiB",
        "device.timing.scheduler=read-first",
    ];
    let sets = ["cache.preset=flashcache", "cache.size=8MiB", "disk.order=elevator", "disk.count=2"];
    let two = ["cache.preset=nandscape", "cache.cleaning=alru", "cache.size=8MiB", "disk.count=2"];
    for (sets, workload) in
        [(&rated[..], ZIPF), (&flash, ZIPF), (&sets, jobs.to_str().unwrap()), (&two, jobs.to_str().unwrap())]
    {
        let config = small(sets);
        let result = || {
            let mut result = run(&config, workload).result;
            result.set_wall(0.0);
            serde_json::to_value(result).unwrap()
        };
        let first = result();
        assert!(
            first["cache"]["counters"]["write_insertions"].as_u64() > Some(0),
            "{sets:?}: {}",
            first["cache"]
        );
        assert_eq!(first, result(), "{sets:?}");
    }
}

#[test]
fn several_disks_are_several_namespaces() {
    let config = small(&["cache.preset=nandscape", "disk.count=2"]);
    let subsystem = nandscape_stack::build_subsystem(&config).unwrap();
    let names: Vec<_> =
        subsystem.namespaces().iter().map(|info| (info.name.as_str(), info.capacity_bytes)).collect();
    assert_eq!(names, [("ns1", 1 << 30), ("ns2", 1 << 30)]);
    let error = replay(&config, ZIPF, &RunOptions::default()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("expected one for a trace or generator, but there are 2"), "{error}");
}

#[test]
fn a_flash_stack_may_be_behind_the_cache_too() {
    let sets =
        ["cache.device=ram", "cache.size=8MiB", "disk.preset=flash", "disk.stack.device.preset=thesis"];
    let result = run(&check("", &sets).unwrap(), ZIPF).result;
    assert!(
        result.flash.by_cause.is_empty(),
        "flash of the slow side is not counted as that of the fast one"
    );
}

#[test]
fn what_keeps_no_bytes_and_what_keeps_bytes_are_both_built() {
    let config = small(&["cache.preset=nandscape", "cache.device=ram", "cache.size=8MiB"]);
    let subsystem = nandscape_stack::build_storing(&config).unwrap();
    assert_eq!((subsystem.inspect().sets(), subsystem.namespaces().len()), (0, 1));
    let over_flash = nandscape_stack::build_storing(&small(&["cache.preset=nandscape"])).unwrap();
    assert_eq!(over_flash.inspect().sets(), 1);
}

/// Small zones: a die each.
const ZONES: &[&str] =
    &["cache.preset=nandscape", "zone.dies=1", "cache.eviction=fifo", "cache.admission=all"];

fn over(stack: &str, sets: &[&str]) -> StackConfig {
    let mut typed = Typed::new();
    typed.set_stack(stack).unwrap();
    [SMALL, ZONES, sets].concat().iter().for_each(|pair| {
        if stack != "zone-cache" || !pair.starts_with("ftl.") {
            typed.set_pair(pair).unwrap();
        }
    });
    typed.check().unwrap()
}

#[test]
fn zones_of_a_cache_are_never_collected() {
    let load = "zipf:count=60k,span=192MiB,read=50%,bs=4k";
    let [block, mapped, zones] =
        ["block", "zone-map", "zone-cache"].map(|stack| run(&over(stack, &[]), load));
    assert_eq!(
        [&block.label, &mapped.label, &zones.label],
        ["nandscape", "nandscape over zone-map", "nandscape over zone-cache"]
    );
    let waf = |run: &Run| run.result.cache.as_ref().unwrap().device_waf.unwrap();
    assert!(
        waf(&zones) < 1.2 && waf(&block) > 1.3 && waf(&mapped) > 1.3,
        "{} {} {}",
        waf(&zones),
        waf(&block),
        waf(&mapped)
    );
    let moved = |run: &Run| run.result.flash.by_cause.get("gc").is_some_and(|counts| counts.programs > 0);
    assert!(moved(&block) && moved(&mapped), "the drive and the host move pages");
    let resets = zones.result.between.zones.as_ref().expect("it has zones").counts.resets;
    assert!(resets > 10, "{resets} resets");
    let hits = |run: &Run| run.result.cache.as_ref().unwrap().hit_ratio.unwrap();
    assert!(
        hits(&zones) > 0.5 * hits(&block) && hits(&zones) < hits(&block),
        "{} {}",
        hits(&zones),
        hits(&block)
    );
}

#[test]
fn zones_of_a_cache_hold_what_was_written() {
    for (block, mode) in [("4k", "write-back"), ("16k", "write-through"), ("8k", "write-back")] {
        let sets = [
            "disk.size=2MiB",
            "device.blocks_per_plane=40",
            "device.pages_per_block=16",
            &format!("cache.block={block}"),
            &format!("cache.mode={mode}"),
            "cache.size=512KiB",
        ];
        let make = || nandscape_stack::build_storing(&over("zone-cache", &sets)).unwrap();
        let trial = Trial { make: &make, unit_bytes: 512, is_zeroed: true, control: &|_, _, _| Ok(()) };
        for seed in 0..6 {
            let seen = subsystem::run(&trial, seed, 400).unwrap_or_else(|error| panic!("{sets:?}: {error}"));
            assert!(seen.cache.is_some());
        }
    }
}
