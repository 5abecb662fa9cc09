//! A cleaner's clock turned by hand, and a small cache that does what the policies plan: a number of dirty
//! blocks, and a disk that writes them after a fixed time.

use super::*;
use std::collections::VecDeque;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn policy_of(
    name: &str,
    typed: &[(&str, &str)],
    shape: (u32, u32, u32),
) -> Result<Box<dyn Cleaning + Send>, ParamError> {
    let typed = typed.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    build(name, "cache.", &typed, shape)
}

/// Of a fully associative cache with 1000 slots of 4 KiB.
fn policy(name: &str, typed: &[(&str, &str)]) -> Box<dyn Cleaning + Send> {
    policy_of(name, typed, (1000, 1000, 4096)).unwrap()
}

fn view(at_ns: u64, dirty: u32) -> View {
    View {
        at: SimTime(at_ns),
        slots: 1000,
        used: 1000,
        dirty,
        oldest: None,
        last_request: SimTime(at_ns),
        cleaning: 0,
        cleaned: 0,
        started: 0,
        writes: 0,
        waited: 0,
        ways: 1000,
        fullest: (dirty > 0).then_some((0, dirty)),
        oldest_set: None,
    }
}

/// Dirty blocks as times, and what is under way. Every block is a disk write of its own, as with random
/// writes.
struct Cache {
    policy: Box<dyn Cleaning + Send>,
    /// Since when each block is dirty; those under way come first.
    dirty: VecDeque<u64>,
    /// When each block under way will have been written.
    under_way: VecDeque<u64>,
    disk_free: u64,
    write_ns: u64,
    is_busy: bool,
    started: u64,
    /// When cleaning of each block began.
    begun: Vec<u64>,
    again: u64,
}

impl Cache {
    fn new(policy: Box<dyn Cleaning + Send>, write_ns: u64) -> Self {
        Self {
            policy,
            dirty: VecDeque::new(),
            under_way: VecDeque::new(),
            disk_free: 0,
            write_ns,
            is_busy: true,
            started: 0,
            begun: Vec::new(),
            again: u64::MAX,
        }
    }

    fn ask(&mut self, at: u64) {
        let seen = View {
            oldest: self.dirty.front().map(|at| SimTime(*at)),
            last_request: SimTime(if self.is_busy { at } else { 0 }),
            cleaning: self.under_way.len() as u32,
            cleaned: self.started - self.under_way.len() as u64,
            started: self.started,
            writes: self.started,
            slots: 1 << 20,
            ways: 1 << 20,
            ..view(at, self.dirty.len() as u32)
        };
        let plan = self.policy.plan(&seen);
        assert!(plan.again.is_none_or(|again| again.0 > at), "asks again at once: {plan:?} at {at}");
        self.again = plan.again.map_or(u64::MAX, |again| again.0);
        let left = (self.dirty.len() - self.under_way.len()) as u32;
        for _ in 0..plan.blocks.min(plan.writes).min(left) {
            self.disk_free = self.disk_free.max(at) + self.write_ns;
            self.under_way.push_back(self.disk_free);
            self.begun.push(at);
            self.started += 1;
        }
    }

    /// A block becomes dirty each `every_ns` from `from` until `until`; gives the dirty count at the end of
    /// each second.
    fn run(&mut self, from: u64, until: u64, every_ns: u64) -> Vec<u32> {
        let (mut next_dirty, mut next_sample, mut samples) = (from + every_ns, from + SECOND, Vec::new());
        loop {
            let done = self.under_way.front().copied().unwrap_or(u64::MAX);
            let at = done.min(self.again).min(next_dirty).min(next_sample);
            if at > until {
                return samples;
            }
            if at == next_sample {
                samples.push(self.dirty.len() as u32);
                next_sample += SECOND;
                continue;
            }
            if at == done {
                self.under_way.pop_front();
                self.dirty.pop_front();
            }
            if at == next_dirty {
                self.dirty.push_back(at);
                next_dirty += every_ns;
            }
            self.ask(at);
        }
    }
}

#[test]
fn every_policy_builds_with_its_defaults_and_leaves_a_clean_cache_alone() {
    for entry in CLEANINGS {
        let plan = policy(entry.info.name, &[]).plan(&view(SECOND, 0));
        assert_eq!(plan.blocks, 0, "{}", entry.info.name);
        assert!(!entry.info.params.iter().any(|p| CAPS.params.iter().any(|cap| cap.name == p.name)));
    }
}

#[test]
fn errors_name_the_key_the_value_and_what_was_expected() {
    let error = |name, typed: &[_]| match policy_of(name, typed, (8, 8, 4096)) {
        Ok(_) => panic!("{name} {typed:?} is taken"),
        Err(error) => error.to_string(),
    };
    assert!(error("pi", &[]).contains("unknown cleaning 'pi'; known: none, pi-rate"));
    assert!(error("none", &[("clean_low", "1%")]).contains("unknown key 'cache.clean_low'"));
    let low = error("watermarks", &[("clean_low", "60%")]);
    assert_eq!(low, "cache.clean_low = '60%': expected no more than clean_high, which is 50%");
    assert!(error("pi-rate", &[("rate_max", "1k")]).contains("no less than rate_min, which is 4KiB"));
    assert!(error("pi-rate", &[("rate_update", "0s")]).contains("more than 0s"));
    assert!(error("none", &[("clean_iops", "0")]).contains("cache.clean_iops = '0'"));
}

#[test]
fn watermarks_begin_above_the_high_and_end_at_the_low_one() {
    let mut policy = policy("watermarks", &[]);
    let mut blocks = |dirty| policy.plan(&view(0, dirty)).blocks;
    assert_eq!([blocks(450), blocks(500)], [0, 0]);
    assert_eq!([blocks(501), blocks(470), blocks(451)], [51, 20, 1]);
    assert_eq!([blocks(450), blocks(500), blocks(600)], [0, 0, 64]);
}

#[test]
fn what_is_under_way_counts_as_clean() {
    let mut policy = policy("watermarks", &[]);
    assert_eq!(policy.plan(&View { cleaning: 20, ..view(0, 531) }).blocks, 44, "64 in all");
    assert_eq!(policy.plan(&View { cleaning: 60, ..view(0, 590) }).blocks, 4, "no more than 64 under way");
}

#[test]
fn watermarks_of_a_set_name_the_set() {
    let typed = [("clean_set_high", "30%"), ("clean_set_low", "10%")];
    let mut policy = policy_of("watermarks", &typed, (1000, 100, 4096)).unwrap();
    let mut plan = |dirty| policy.plan(&View { ways: 100, fullest: Some((7, dirty)), ..view(0, dirty) });
    assert_eq!(plan(30), Plan::NONE);
    assert_eq!(plan(31), Plan { set: Some(7), ..Plan::of(21, Order::Disk) });
    assert_eq!(plan(10), Plan::NONE);
}

#[test]
fn blocks_past_the_maximum_age_are_cleaned_below_the_marks() {
    let mut policy = policy("watermarks", &[("clean_max_age", "60s")]);
    assert_eq!(policy.needs(), Needs::SinceDirty);
    let mut plan = |at| policy.plan(&View { oldest: Some(SimTime(SECOND)), ..view(at, 10) });
    assert_eq!(plan(61 * SECOND - 1), Plan { again: Some(SimTime(61 * SECOND)), ..Plan::NONE });
    let expected = Plan { until: Some(SimTime(SECOND)), ..Plan::of(64, Order::Oldest) };
    assert_eq!(plan(61 * SECOND), expected);
}

#[test]
fn a_set_is_cleaned_down_to_its_threshold_a_few_blocks_at_a_time() {
    let mut policy = policy_of("set-threshold", &[], (1000, 100, 4096)).unwrap();
    let mut plan = |dirty, cleaning| {
        policy.plan(&View { ways: 100, fullest: Some((3, dirty)), cleaning, ..view(0, dirty) })
    };
    assert_eq!(plan(20, 0), Plan::NONE);
    assert_eq!(plan(21, 0), Plan { set: Some(3), writes: 2, ..Plan::of(1, Order::Disk) });
    assert_eq!([plan(50, 0).blocks, plan(50, 3).blocks, plan(50, 4).blocks], [4, 1, 0]);
}

#[test]
fn fallow_blocks_go_at_their_age_and_at_the_speed_given() {
    let policy = policy("idle-age", &[("fallow_delay", "10s"), ("fallow_speed", "4")]);
    let mut cache = Cache::new(policy, MS);
    // 20 blocks in the first second, none later.
    cache.run(0, SECOND, 50 * MS);
    assert_eq!(cache.dirty.len(), 20);
    let left = cache.run(SECOND, 20 * SECOND, u64::MAX / 2);
    assert_eq!(left[..8], [20; 8], "none is 10 s old");
    assert_eq!(cache.begun[0], 50 * MS + 10 * SECOND);
    assert!(cache.begun.windows(2).all(|pair| pair[1] - pair[0] >= SECOND / 4));
    assert_eq!(left.last(), Some(&0));
}

#[test]
fn a_set_is_cleaned_at_the_first_pass_that_finds_it_old_enough() {
    let mut policy = policy_of("set-age", &[("set_age", "60s")], (1000, 100, 4096)).unwrap();
    assert_eq!(policy.needs(), Needs::OfSets);
    let mut plan = |at: u64, oldest: Option<(u32, u64)>, cleaning| {
        let oldest_set = oldest.map(|(set, since)| (set, SimTime(since * SECOND)));
        policy.plan(&View { cleaning, oldest_set, ..view(at * SECOND, 10) })
    };
    let wait = |at: u64| Plan { again: Some(SimTime(at * SECOND)), ..Plan::NONE };
    let clean = |set, blocks, until: u64| Plan {
        set: Some(set),
        until: Some(SimTime(until * SECOND)),
        ..Plan::of(blocks, Order::Disk)
    };
    assert_eq!(plan(5, None, 0), Plan::NONE);
    // The first pass is an interval after the first block.
    assert_eq!(plan(10, Some((3, 10)), 0), wait(70));
    assert_eq!(plan(70, Some((3, 10)), 0), clean(3, 64, 10));
    assert_eq!(plan(71, Some((3, 10)), 60), clean(3, 4, 10), "the pass goes on");
    // A set that was dirty soon after it waits for nearly two intervals.
    assert_eq!(plan(71, Some((5, 11)), 0), wait(130));
    assert_eq!(plan(130, Some((5, 11)), 64).blocks, 0, "as many as may be are under way");
    assert_eq!(plan(131, Some((5, 11)), 0), clean(5, 64, 70));
    // Passes that would find nothing are left out, and one that is late is made up for.
    assert_eq!(plan(1000, Some((7, 500)), 0), clean(7, 64, 550));
}

#[test]
fn the_age_of_a_set_grows_with_the_cache_in_whole_multiples() {
    let first_pass = |slots, typed: &[(&str, &str)]| {
        let mut policy = policy_of("set-age", typed, (slots, 256, 4096)).unwrap();
        policy.plan(&View { oldest_set: Some((0, SimTime(0))), ..view(0, 1) }).again
    };
    let per = [("set_age", "60s"), ("set_age_per", "1MiB")];
    for (slots, seconds) in [(128, 60), (256, 60), (511, 60), (512, 120), (1024, 240)] {
        assert_eq!(first_pass(slots, &per), Some(SimTime(seconds * SECOND)), "{slots} slots of 4 KiB");
    }
    assert_eq!(first_pass(1024, &per[..1]), Some(SimTime(60 * SECOND)));
    assert_eq!(first_pass(1024, &[("set_age", "0s")]), None);
}

#[test]
fn smq_cleans_only_when_idle_and_then_everything() {
    let mut policy = policy("smq", &[("smq_migration", "40k")]);
    let at = |at, dirty, cleaning| View { last_request: SimTime(0), cleaning, ..view(at, dirty) };
    assert_eq!(policy.plan(&at(SECOND - 1, 900, 0)), Plan { again: Some(SimTime(SECOND)), ..Plan::NONE });
    assert_eq!(policy.plan(&at(SECOND, 900, 0)), Plan::of(10, Order::Eviction));
    assert_eq!(policy.plan(&at(SECOND, 900, 7)).blocks, 3);
    assert_eq!(policy.plan(&at(SECOND, 3, 3)), Plan::NONE);
}

#[test]
fn the_cleaner_takes_everything_under_load_too_a_few_blocks_at_a_time() {
    let mut policy = policy("cleaner", &[("cleaner_migration", "40k")]);
    let mut blocks = |dirty, cleaning| {
        let plan = policy.plan(&View { cleaning, ..view(SECOND, dirty) });
        assert_eq!(plan, Plan::of(plan.blocks, Order::Disk), "no set, no age, no time to wait for");
        plan.blocks
    };
    assert_eq!([blocks(1, 0), blocks(10, 0), blocks(900, 0)], [1, 10, 10]);
    assert_eq!([blocks(900, 7), blocks(900, 10), blocks(3, 3), blocks(0, 0)], [3, 0, 0, 0]);
    // A block becomes dirty every 10 ms and the disk takes 1 ms: none is left for the next.
    let mut cache = Cache::new(policy_of("cleaner", &[], (1000, 1000, 4096)).unwrap(), MS);
    cache.dirty = (0..500).map(|_| 0).collect();
    cache.ask(0);
    let left = cache.run(0, 10 * SECOND, 10 * MS);
    assert!(left.iter().skip(1).all(|dirty| *dirty <= 1), "{left:?}");
}

/// As in Open-CAS's timing tests: staleness, activity and number of buffers, each with the clock just before
/// and just at the limit.
#[test]
fn alru_keeps_to_staleness_activity_and_buffers() {
    let fresh = || policy("alru", &[]);
    let seen = |at: u64, oldest: u64, request: u64| View {
        oldest: Some(SimTime(oldest)),
        last_request: SimTime(request),
        ..view(at, 500)
    };
    assert_eq!(fresh().plan(&seen(120 * SECOND - 1, 0, 0)).blocks, 0, "not stale");
    assert_eq!(fresh().plan(&seen(120 * SECOND, 0, 0)).blocks, 100);
    assert_eq!(fresh().plan(&seen(130 * SECOND, 0, 120 * SECOND + 1)).blocks, 0, "active");
    assert_eq!(fresh().plan(&seen(130 * SECOND, 0, 120 * SECOND)).blocks, 100);
    let mut policy = fresh();
    let slept = policy.plan(&seen(119 * SECOND, 0, 0));
    assert_eq!(slept.again, Some(SimTime(139 * SECOND)), "sleeps 20 s");
    assert_eq!(policy.plan(&seen(139 * SECOND - 1, 0, 0)).blocks, 0);
    assert_eq!(
        policy.plan(&View { cleaning: 1, ..seen(139 * SECOND, 0, 0) }).blocks,
        0,
        "one pass at a time"
    );
    assert_eq!(policy.plan(&seen(139 * SECOND, 0, 0)).until, Some(SimTime(19 * SECOND)));
}

/// From the target on and with `r` blocks a second becoming dirty, the excess is `r / 0.015 (exp(-0.005 t) -
/// exp(-0.02 t))`: the step response of the published gains (`s^2 + s / 40 + 1 / 10000`), highest 92 s after
/// the start.
#[test]
fn the_controller_follows_its_closed_form_and_settles_at_the_target() {
    let rate = 100.0;
    let mut cache = Cache::new(policy_of("pi-rate", &[], (10_000, 10_000, 4096)).unwrap(), 100_000);
    cache.dirty = (0..1000).map(|_| 0).collect();
    let dirty = cache.run(0, 2000 * SECOND, 10 * MS);
    for t in [20u32, 50, 92, 150, 300, 600] {
        let s = f64::from(t);
        let excess = rate / 0.015 * ((-0.005 * s).exp() - (-0.02 * s).exp());
        let measured = f64::from(dirty[t as usize - 1]) - 1000.0;
        assert!((measured - excess).abs() < 0.12 * 31.5 * rate, "{measured} and not {excess} after {t} s");
    }
    let settled = &dirty[1800..];
    assert!(settled.iter().all(|dirty| (900..=1100).contains(dirty)), "{settled:?}");
}

#[test]
fn the_integral_does_not_wind_up_while_the_disk_cannot_follow() {
    // 200 blocks a second become dirty for 10 min; the disk writes 100. Then 10 a second.
    let mut cache = Cache::new(policy_of("pi-rate", &[], (100_000, 100_000, 4096)).unwrap(), 10 * MS);
    let high = *cache.run(0, 600 * SECOND, 5 * MS).last().unwrap();
    assert!(high > 20_000, "{high}");
    let dirty = cache.run(600 * SECOND, 3600 * SECOND, 100 * MS);
    let low = *dirty.iter().min().unwrap();
    assert!((8_000..11_000).contains(&low), "goes down to the target of 10,000 and not to {low}");
}

#[test]
fn the_rate_keeps_to_its_bounds_unless_hosts_are_idle() {
    let typed = [("rate_max", "400KiB"), ("rate_target", "0"), ("rate_batch", "1")];
    let rate = |is_busy, more: &[(&'static str, &'static str)]| {
        let mut cache = Cache::new(policy("pi-rate", &[&typed[..], more].concat()), 1000);
        cache.is_busy = is_busy;
        cache.dirty = (0..100_000).map(|_| 0).collect();
        cache.ask(40 * SECOND);
        cache.run(40 * SECOND, 140 * SECOND, u64::MAX / 2);
        cache.begun.len()
    };
    // 2 s are made up for at the start.
    let busy = rate(true, &[]);
    assert!((9_900..=10_300).contains(&busy), "{busy}");
    assert_eq!(rate(false, &[]), 100_000);
    let idle = rate(false, &[("rate_idle_max", "800KiB")]);
    assert!((19_900..=20_100).contains(&idle), "200 a second, none of them saved up: {idle}");
}

#[test]
fn no_rate_is_kept_above_a_share_as_long_as_blocks_wait_for_slots() {
    let typed = [("rate_high", "60%"), ("rate_high_after", "2s"), ("rate_in_turn", "true")];
    let mut policy = policy("pi-rate", &typed);
    let mut blocks = |ms, dirty, waited| {
        let plan = policy.plan(&View { waited, ..view(60 * SECOND + ms * MS, dirty) });
        assert!(plan.again.is_some());
        assert_eq!(plan.in_turn, plan.blocks == 16, "not while somebody waits");
        plan.blocks
    };
    // What the rate itself allows at the start; then nothing for long.
    assert_eq!([blocks(0, 900, 0), blocks(1, 900, 0)], [16, 16]);
    assert_eq!(blocks(2, 600, 1), 16, "not above the share");
    assert_eq!([blocks(3, 601, 1), blocks(4, 600, 1), blocks(5, 551, 1)], [51, 50, 1], "down to 5 % less");
    assert_eq!(blocks(6, 550, 1), 16);
    assert_eq!([blocks(7, 900, 1), blocks(2002, 900, 1)], [128, 128]);
    assert_eq!(blocks(2003, 900, 1), 16, "nobody has waited for 2 s");
    assert_eq!([blocks(2004, 900, 2), blocks(4004, 600, 2)], [128, 50]);
    assert_eq!([blocks(4005, 600, 3), blocks(6006, 600, 3)], [50, 16]);
}

/// In every window, whatever the policy below would like.
#[test]
fn caps_are_never_exceeded_in_any_window() {
    for (typed, per_second, burst) in [
        (vec![("clean_iops", "300")], 300, 3.0),
        (vec![("clean_bandwidth", "1MiB")], 256, 2.56),
        (vec![("clean_bandwidth", "1MiB"), ("clean_iops", "100"), ("clean_burst", "0s")], 100, 1.0),
        (vec![("clean_bandwidth", "100KiB"), ("clean_iops", "100"), ("clean_burst", "1s")], 25, 25.0),
    ] {
        let typed: Vec<_> = typed.into_iter().chain([("clean_high", "0"), ("clean_low", "0")]).collect();
        let mut cache = Cache::new(policy("watermarks", &typed), 100_000);
        cache.run(0, 20 * SECOND, MS);
        for (i, from) in cache.begun.iter().enumerate() {
            for (n, to) in cache.begun[i..].iter().enumerate() {
                let most = burst + (to - from) as f64 * f64::from(per_second) / 1e9;
                assert!((n + 1) as f64 <= most + 1e-6, "{} in {} ns, {typed:?}", n + 1, to - from);
            }
        }
        let all = cache.begun.len() as u32;
        assert!(all >= 20 * per_second * 98 / 100, "and they are used: {all}, {typed:?}");
    }
}

#[test]
fn a_cap_limits_writes_of_neighbours_and_not_their_blocks() {
    let mut policy = policy("watermarks", &[("clean_high", "0"), ("clean_low", "0"), ("clean_iops", "100")]);
    let plan = policy.plan(&view(SECOND, 500));
    assert_eq!((plan.blocks, plan.writes), (64, 1));
    let after = View { started: 64, writes: 1, ..view(SECOND + 1, 436) };
    let plan = policy.plan(&after);
    assert_eq!((plan.blocks, plan.again), (0, Some(SimTime(SECOND + 10 * MS))));
}
