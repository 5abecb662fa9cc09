//! Every layer over bytes and a journal, on flash that rots, cannot be read, loses a die, slows down, and
//! whose programs and erases fail: a host that knows what it wrote and whose data each fault hit compares
//! every page. A damaged page gives an error, and no other page does; the error stays through collections and
//! starts until the page is written anew; blocks that run out leave a device that is read-only and can be
//! read.
//!
//! `FAULT_LAYER` and `FAULT_SEED` limit a test to one scenario; a failure prints the command.
//! `FAULT_SCENARIOS` sets how many each layer gets of each kind.

mod medium;
mod model;

use medium::{Held, Sabotage};
use model::{Host, Seen};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{Ftl, Ppn, UnitId};
use nandscape_ftl::{Journal, JournalOptions, find, infos};
use nandscape_media::faults::{Fault, FaultPlan, Scripted};
use nandscape_media::{Scheduler, Serial, Timed, Timing};
use nandscape_testkit::crash::nand;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

const TIMING: Timing =
    Timing { read_ns: 1, program_ns: 10, erase_ns: 50, channel_bytes_per_s: 1_000_000_000, command_ns: 0 };

/// Scenarios of each kind and layer.
const SCENARIOS: u64 = 80;

/// Requests of a scenario.
const STEPS: u32 = 240;

/// Channels, blocks of each, pages of a block, bytes of a page: one sector a page, or two.
const SHAPES: [(u32, u32, u32, u32); 2] = [(2, 14, 8, 512), (2, 18, 4, 1024)];

fn medium(layer: &str, seed: u64, plan: FaultPlan) -> Held {
    let shape = SHAPES[(seed % 2) as usize];
    Held::new(nand(shape, layer.contains("sbm")), plan)
}

fn open(layer: &str, held: &Held) -> Result<Box<dyn Ftl + Send>, String> {
    let entry = find(layer).unwrap_or_else(|| panic!("{layer} is not registered"));
    let params = entry.tiny(&[]).map_err(|error| error.to_string())?;
    let geometry = *nandscape_core::BlockState::geometry(held);
    let device = Timed::new(held.clone(), Serial::new(&geometry, &TIMING));
    let options = JournalOptions { interval: Some(40), ..JournalOptions::default() };
    let journal = Journal::open(device, options).map_err(|error| format!("journal: {error}"))?;
    (entry.build)(Box::new(journal), &params).map_err(|error| error.to_string())
}

fn start(layer: &str, seed: u64, plan: FaultPlan) -> Result<Host, String> {
    let held = medium(layer, seed, plan);
    Ok(Host::new(open(layer, &held)?, held))
}

/// Random requests with a look at everything now and then, until the device is read-only or the requests end.
fn drive(host: &mut Host, seed: u64, steps: u32) -> Result<(), String> {
    let mut rng = seeded(seed ^ 0x5EED);
    for step in 0..steps {
        if !host.step(&mut rng)? {
            let before = host.ftl.read_only();
            before.ok_or("a write was refused as read-only, and the device does not say so")?;
            host.seen.read_only += 1;
            for _ in 0..8 {
                host.step(&mut rng)?;
            }
            if host.ftl.read_only() != before {
                return Err(format!("read-only since {before:?}, and then since {:?}", host.ftl.read_only()));
            }
            host.check()?;
            break;
        }
        if step % 16 == 0 {
            host.check()?;
        }
    }
    host.check()?;
    host.ftl.check_invariants();
    host.seen.collections += host.ftl.stats().gc_runs;
    host.seen.lost_at_end += host.lost() as u64;
    Ok(())
}

/// One scenario of a kind: a layer and a seed to a verdict.
type Scenario = fn(&str, u64) -> Result<Seen, String>;

fn run(test: &str, scenario: Scenario) -> Seen {
    let variable = |name: &str| std::env::var(name).ok();
    let number = |name: &str| {
        variable(name)
            .map(|text| text.parse::<u64>().unwrap_or_else(|_| panic!("{name}={text}: expected a number")))
    };
    let only = variable("FAULT_LAYER");
    let seeds = match number("FAULT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + number("FAULT_SCENARIOS").unwrap_or(SCENARIOS),
    };
    let mut all = Seen::default();
    let layers = infos().into_iter().map(|info| info.name);
    for layer in layers.filter(|layer| only.as_deref().is_none_or(|only| only == *layer)) {
        for seed in seeds.clone() {
            let outcome = catch_unwind(AssertUnwindSafe(|| scenario(layer, seed)));
            let outcome = outcome.unwrap_or_else(|_| Err("panic, see above".to_owned()));
            match outcome {
                Ok(seen) => all.add(&Seen { scenarios: 1, ..seen }),
                Err(error) => panic!(
                    "{layer}, seed {seed}: {error}\n  repeat with: FAULT_LAYER={layer} FAULT_SEED={seed} \
                     cargo test -p nandscape-ftl --test suite faults::{test} -- --exact --nocapture"
                ),
            }
        }
    }
    // Printing macros are captured in tests that pass.
    let _ = writeln!(std::io::stderr(), "{test}: {all:?}");
    all
}

/// Whether a test was asked for everything, so that what it must have met can be demanded.
fn is_whole() -> bool {
    ["FAULT_LAYER", "FAULT_SEED", "FAULT_SCENARIOS"].iter().all(|name| std::env::var(name).is_err())
}

/// Drives, starts again, and looks whether the same pages are there and the same are not; then writes
/// everything anew.
fn through_a_start(layer: &str, seed: u64, plan: FaultPlan) -> Result<Seen, String> {
    let held = medium(layer, seed, plan);
    let mut host = Host::new(open(layer, &held)?, held.clone());
    drive(&mut host, seed, STEPS)?;
    if host.ftl.read_only().is_none() && held.state().is_journal_whole() {
        let shut = host.ftl.shutdown(host.now);
        if shut.is_ok() && held.state().is_journal_whole() {
            host.restart(|held| open(layer, held))?;
            drive(&mut host, seed + 1_000_000, STEPS / 4)?;
        }
    }
    if host.ftl.read_only().is_none() && host.rewrite()? {
        host.check()?;
    }
    let counts = held.state().counts();
    Ok(Seen {
        checksum_errors: host.ftl.device().tally().health.checksum_errors,
        programs_failed: counts.programs,
        erases_failed: counts.erases,
        ..host.seen
    })
}

#[test]
fn rot_is_an_error_of_the_rotten_pages_alone() {
    fn scenario(layer: &str, seed: u64) -> Result<Seen, String> {
        let plan = FaultPlan { seed, rot: 0.004 * (1 + seed % 10) as f64, ..FaultPlan::default() };
        through_a_start(layer, seed, plan)
    }
    let seen = run("rot_is_an_error_of_the_rotten_pages_alone", scenario);
    if is_whole() {
        assert!(seen.lost_at_end > 100 && seen.healed > 100 && seen.checksum_errors > 1000, "{seen:?}");
        assert!(seen.restarts > 100 && seen.collections > 1000, "{seen:?}");
    }
}

#[test]
fn a_rotten_oob_is_an_error_of_its_page_alone() {
    fn scenario(layer: &str, seed: u64) -> Result<Seen, String> {
        let mut rng = seeded(seed ^ 0x00B);
        let held = medium(layer, seed, FaultPlan::default());
        let geometry = *nandscape_core::BlockState::geometry(&held);
        // Logical page, stream and sequence number are 14 bytes after those of the page.
        let rot = |rng: &mut _| Scripted {
            at: below(rng, 700),
            fault: Fault::Rot {
                page: Ppn(below(rng, u64::from(geometry.pages())) as u32),
                bit: 8 * u64::from(geometry.page_bytes) + below(rng, 8 * 14),
            },
        };
        let script = (0..30 * (1 + seed % 4)).map(|_| rot(&mut rng)).collect();
        through_a_start(layer, seed, FaultPlan { seed, script, ..FaultPlan::default() })
    }
    let seen = run("a_rotten_oob_is_an_error_of_its_page_alone", scenario);
    if is_whole() {
        assert!(seen.lost_at_end > 100 && seen.healed > 100 && seen.checksum_errors > 1000, "{seen:?}");
        assert!(seen.restarts > 100 && seen.collections > 1000, "{seen:?}");
    }
}

#[test]
fn an_unreadable_page_stays_one_through_collections_and_starts_until_it_is_written() {
    fn scenario(layer: &str, seed: u64) -> Result<Seen, String> {
        let plan = FaultPlan { seed, unreadable: 0.003 * (1 + seed % 10) as f64, ..FaultPlan::default() };
        through_a_start(layer, seed, plan)
    }
    let test = "an_unreadable_page_stays_one_through_collections_and_starts_until_it_is_written";
    let seen = run(test, scenario);
    if is_whole() {
        assert!(seen.lost_at_end > 100 && seen.healed > 100 && seen.restarts > 100, "{seen:?}");
        assert!(seen.collections > 1000 && seen.checksum_errors == 0, "{seen:?}");
    }
}

#[test]
fn failing_programs_lose_nothing() {
    fn scenario(layer: &str, seed: u64) -> Result<Seen, String> {
        let plan = FaultPlan { seed, program: 0.0005 * (1 + seed % 10) as f64, ..FaultPlan::default() };
        through_a_start(layer, seed, plan)
    }
    let seen = run("failing_programs_lose_nothing", scenario);
    assert_eq!(seen.lost + seen.lost_at_end, 0, "{seen:?}");
    if is_whole() {
        assert!(seen.programs_failed > 500 && seen.restarts > 50 && seen.read_only > 10, "{seen:?}");
    }
}

#[test]
fn failing_erases_lose_nothing() {
    fn scenario(layer: &str, seed: u64) -> Result<Seen, String> {
        let plan = FaultPlan { seed, erase: 0.002 * (1 + seed % 10) as f64, ..FaultPlan::default() };
        through_a_start(layer, seed, plan)
    }
    let seen = run("failing_erases_lose_nothing", scenario);
    assert_eq!(seen.lost + seen.lost_at_end, 0, "{seen:?}");
    if is_whole() {
        assert!(seen.erases_failed > 300 && seen.restarts > 50 && seen.read_only > 10, "{seen:?}");
    }
}

#[test]
fn a_stuck_die_takes_its_own_pages_and_no_others() {
    fn scenario(layer: &str, seed: u64) -> Result<Seen, String> {
        let mut rng = seeded(seed);
        let at = 20 + below(&mut rng, 300);
        let die = UnitId((seed / 2 % 2) as u32);
        let script = vec![Scripted { at, fault: Fault::Stuck { die } }];
        let mut host = start(layer, seed, FaultPlan { seed, script, ..FaultPlan::default() })?;
        drive(&mut host, seed, STEPS)?;
        Ok(host.seen)
    }
    let seen = run("a_stuck_die_takes_its_own_pages_and_no_others", scenario);
    if is_whole() {
        assert!(seen.lost_at_end > 1000 && seen.read_only > 50, "{seen:?}");
    }
}

#[test]
fn a_slow_die_changes_time_and_nothing_else() {
    fn scenario(layer: &str, seed: u64) -> Result<Seen, String> {
        let fault = Fault::Slow { die: UnitId((seed / 2 % 2) as u32), factor: 2 + (seed % 7) as u32 };
        let script = vec![Scripted { at: seed % 50, fault }];
        let mut slow = start(layer, seed, FaultPlan { seed, script, ..FaultPlan::default() })?;
        let mut plain = start(layer, seed, FaultPlan::default())?;
        drive(&mut slow, seed, STEPS)?;
        drive(&mut plain, seed, STEPS)?;
        if slow.contents() != plain.contents() || slow.ftl.stats() != plain.ftl.stats() {
            return Err("a slow die gives another run".to_owned());
        }
        if slow.now <= plain.now {
            return Err(format!("{} ns with a slow die, {} ns without", slow.now.0, plain.now.0));
        }
        Ok(slow.seen)
    }
    let seen = run("a_slow_die_changes_time_and_nothing_else", scenario);
    assert_eq!(seen.lost + seen.lost_at_end + seen.read_only, 0, "{seen:?}");
}

#[test]
fn spares_that_run_out_leave_a_device_that_can_be_read() {
    fn scenario(layer: &str, seed: u64) -> Result<Seen, String> {
        let (program, erase) = if seed % 4 < 2 { (0.03, 0.0) } else { (0.01, 0.15) };
        let mut host = start(layer, seed, FaultPlan { seed, program, erase, ..FaultPlan::default() })?;
        drive(&mut host, seed, 20 * STEPS)?;
        if host.ftl.read_only().is_none() {
            return Err("blocks fail for ever, and the device takes writes".to_owned());
        }
        Ok(host.seen)
    }
    let seen = run("spares_that_run_out_leave_a_device_that_can_be_read", scenario);
    assert_eq!((seen.lost + seen.lost_at_end, seen.read_only), (0, seen.scenarios), "{seen:?}");
}

#[test]
fn all_faults_together_never_give_wrong_bytes() {
    fn scenario(layer: &str, seed: u64) -> Result<Seen, String> {
        let mut rng = seeded(seed);
        let mut script = Vec::new();
        for _ in 0..below(&mut rng, 6) {
            let page = Ppn(below(&mut rng, 140) as u32);
            let at = below(&mut rng, 400);
            script.push(Scripted { at, fault: Fault::Unreadable { page } });
            script.push(Scripted { at: at + 3, fault: Fault::Rot { page, bit: at } });
        }
        let plan = FaultPlan {
            seed,
            program: 0.0015,
            erase: 0.004,
            unreadable: 0.01,
            rot: 0.01,
            script,
            ..FaultPlan::default()
        };
        through_a_start(layer, seed, plan)
    }
    let seen = run("all_faults_together_never_give_wrong_bytes", scenario);
    if is_whole() {
        assert!(seen.lost_at_end > 100 && seen.healed > 100 && seen.checksum_errors > 100, "{seen:?}");
        assert!(seen.programs_failed > 100 && seen.erases_failed > 100 && seen.restarts > 50, "{seen:?}");
    }
}

#[test]
fn a_medium_that_hands_out_rot_or_blames_good_pages_is_found() {
    for sabotage in [Sabotage::HandOutRot, Sabotage::BlameGood] {
        for layer in infos().into_iter().map(|info| info.name) {
            let is_found = |seed| {
                let plan = FaultPlan { seed, rot: 0.05, ..FaultPlan::default() };
                let held = medium(layer, seed, plan);
                let mut host = Host::new(open(layer, &held).expect("a new device"), held.clone());
                held.state().sabotage(sabotage);
                drive(&mut host, seed, STEPS).is_err()
            };
            assert!((1..=20).any(is_found), "{layer}: {sabotage:?} went unnoticed");
        }
    }
}
