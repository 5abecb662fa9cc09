//! Phases of a run: lasting changes of a rate, a latency or write amplification, in words.
//!
//! The rule, for each measure alone. The run is cut into bins of equal time, at most [`MOST_BINS`] and no
//! more than the series has intervals. A window is a sixteenth of the bins, at least [`LEAST_WINDOW`] of
//! them. A border between bins is a change if
//!
//! * the medians of the windows before and after it differ by [`FACTOR`] or more,
//! * more than seven eighths of the bins of each window are on its side of the middle between both medians,
//!   which noise and single spikes are not, and
//! * the quarters of the windows next to the border differ by the square root of that factor, which a drift
//!   does not.
//!
//! The sharpest of neighbouring borders counts, and the medians of whole phases must differ by the factor
//! too. A measure with more than [`MOST_CHANGES`] changes varies and has no phases; neither has a series
//! shorter than three windows. The work grows with the length of the series.

use crate::Run;
use crate::metrics::program_bytes;
use crate::number::Kind;
use nandscape_sim::JobSeries;
use nandscape_sim::histogram::LogHistogram;
use nandscape_sim::metrics::Series;

const MOST_BINS: usize = 256;
const LEAST_WINDOW: usize = 8;
const FACTOR: f64 = 1.5;
const MOST_CHANGES: usize = 4;
/// Less than this share of the largest value counts as this share, so that a measure may change to 0.
const NOTHING: f64 = 0.001;
/// Changes of several measures within this share of the run are one.
const TOGETHER: f64 = 1.0 / 32.0;
/// Values within this share of each other are alike.
const ALIKE: f64 = 0.15;
/// Sentences above the figures.
const MOST_SENTENCES: usize = 6;

/// One interval of a measure: the value is `sum / over`, and there is none over 0.
#[derive(Clone, Copy, Debug)]
struct Interval {
    end_ns: u64,
    sum: f64,
    over: f64,
}

impl Interval {
    fn value(&self) -> Option<f64> {
        (self.over > 0.0).then(|| self.sum / self.over)
    }
}

/// What is measured over time, in the order of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    WriteRate,
    ReadRate,
    Waf,
    WriteP99,
    ReadP99,
}

impl Measure {
    const fn name(self) -> &'static str {
        match self {
            Self::WriteRate => "the write rate",
            Self::ReadRate => "the read rate",
            Self::Waf => "write amplification",
            Self::WriteP99 => "the p99 of writes",
            Self::ReadP99 => "the p99 of reads",
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            _ if value <= 0.0 => "0".to_owned(),
            Self::WriteRate | Self::ReadRate => Kind::Rate.show_alone(value),
            Self::Waf => format!("{value:.2}"),
            Self::WriteP99 | Self::ReadP99 => Kind::Nanos.show_alone(value),
        }
    }
}

/// A measure that changed: medians of the phases before and after.
#[derive(Clone, Copy, Debug)]
struct Change {
    at_ns: u64,
    before: f64,
    after: f64,
}

/// Measures that changed at the same time.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    /// When it begins, since the start of the run.
    pub at_ns: u64,
    changes: Vec<(Measure, Change)>,
}

impl Phase {
    /// Whether the same measures change at about the same time between about the same values.
    fn is_like(&self, other: &Self) -> bool {
        let is_near = |a: f64, b: f64, share: f64| (a - b).abs() <= share * a.abs().max(b.abs());
        let is_same = |(a, b): (&(Measure, Change), &(Measure, Change))| {
            a.0 == b.0 && is_near(a.1.before, b.1.before, ALIKE) && is_near(a.1.after, b.1.after, ALIKE)
        };
        self.changes.len() == other.changes.len()
            && is_near(self.at_ns as f64, other.at_ns as f64, TOGETHER)
            && self.changes.iter().zip(&other.changes).all(is_same)
    }

    /// `From 7 s the write rate is 120.0 MB/s, before it 480.0 MB/s.`
    pub fn sentence(&self) -> String {
        let part = |(place, (measure, change)): (usize, &(Measure, Change))| {
            let (is, it) = if place == 0 { ("is ", " it") } else { ("", "") };
            let [after, before] = [change.after, change.before].map(|value| measure.show(value));
            format!("{} {is}{after}, before{it} {before}", measure.name())
        };
        let parts: Vec<String> = self.changes.iter().enumerate().map(part).collect();
        format!("From {} {}.", Kind::Nanos.show_alone(self.at_ns as f64), parts.join("; "))
    }
}

/// The phases that follow the first one, in order of time; none without a series.
pub(crate) fn phases(run: &Run) -> Vec<Phase> {
    let measures = match (&run.jobs, &run.series) {
        (Some(jobs), _) => of_jobs(run, jobs),
        (None, Some(series)) => of_series(run, series),
        (None, None) => return Vec::new(),
    };
    let mut out: Vec<Phase> = Vec::new();
    for (measure, intervals) in &measures {
        let together = intervals.last().map_or(0.0, |last| last.end_ns as f64 * TOGETHER) as u64;
        for change in changes(intervals) {
            match out.iter_mut().find(|phase| phase.at_ns.abs_diff(change.at_ns) <= together) {
                Some(phase) => phase.changes.push((*measure, change)),
                None => out.push(Phase { at_ns: change.at_ns, changes: vec![(*measure, change)] }),
            }
        }
    }
    out.sort_by_key(|phase| phase.at_ns);
    out
}

/// Whose phases begin when, for the lines above the figures; `all` stands for all of several runs. Runs that
/// change alike, as where the load changed, share the sentence of the first.
pub(crate) fn sentences(runs: &[&Run], all: &str) -> Vec<(String, String)> {
    let mut known: Vec<(Phase, Vec<&str>)> = Vec::new();
    for run in runs {
        for phase in phases(run) {
            match known.iter_mut().find(|(other, _)| other.is_like(&phase)) {
                Some((_, names)) => names.push(run.name()),
                None => known.push((phase, vec![run.name()])),
            }
        }
    }
    known.sort_by_key(|(phase, _)| phase.at_ns);
    let line = |(phase, names): (Phase, Vec<&str>)| {
        let who = if names.len() == runs.len() && runs.len() > 1 { all.to_owned() } else { names.join(", ") };
        (who, phase.sentence())
    };
    known.into_iter().take(MOST_SENTENCES).map(line).collect()
}

fn of_series(run: &Run, series: &Series) -> Vec<(Measure, Vec<Interval>)> {
    let page = program_bytes(&run.result).filter(|_| run.result.cache.is_none()).unwrap_or(0.0);
    let mut out = Measures::default();
    let mut before = (0, 0, 0, 0);
    for sample in &series.samples {
        let now = (
            sample.simulated_ns,
            sample.host.write_bytes,
            sample.host.read_bytes,
            sample.causes.total().programs,
        );
        let p99 = |histogram: &LogHistogram| (histogram.total() > 0).then(|| histogram.quantile(0.99));
        out.push(
            now.0,
            [now.1 - before.1, now.2 - before.2],
            (now.3 - before.3) as f64 * page,
            [p99(&sample.write_latency), p99(&sample.read_latency)],
        );
        before = now;
    }
    out.list(page > 0.0)
}

fn of_jobs(run: &Run, series: &JobSeries) -> Vec<(Measure, Vec<Interval>)> {
    let page = program_bytes(&run.result).filter(|_| run.result.cache.is_none()).unwrap_or(0.0);
    let mut out = Measures::default();
    let mut before = 0;
    for window in &series.windows {
        let programs = window.sets.iter().map(|set| set.programs).sum::<u64>();
        let bytes = |op: usize| window.rows.iter().map(|row| row[op].bytes).sum();
        let p99 = |op: usize| {
            let mut all = LogHistogram::default();
            window.rows.iter().for_each(|row| all.add_sparse(&row[op].buckets));
            (all.total() > 0).then(|| all.quantile(0.99))
        };
        out.push(window.end_ns, [bytes(1), bytes(0)], (programs - before) as f64 * page, [p99(1), p99(0)]);
        before = programs;
    }
    out.list(page > 0.0)
}

/// Intervals of every measure, in the order of [`Measure`].
#[derive(Default)]
struct Measures {
    last_ns: u64,
    intervals: [Vec<Interval>; 5],
}

impl Measures {
    /// Bytes written and read, bytes programmed, and the p99 of writes and reads, of an interval.
    fn push(&mut self, end_ns: u64, bytes: [u64; 2], programmed: f64, p99: [Option<u64>; 2]) {
        let ns = end_ns.saturating_sub(self.last_ns) as f64;
        self.last_ns = end_ns;
        let mut push =
            |at: usize, sum: f64, over: f64| self.intervals[at].push(Interval { end_ns, sum, over });
        push(0, bytes[0] as f64, ns / 1e9);
        push(1, bytes[1] as f64, ns / 1e9);
        push(2, programmed, bytes[0] as f64);
        push(3, p99[0].map_or(0.0, |p99| p99 as f64 * ns), p99[0].map_or(0.0, |_| ns));
        push(4, p99[1].map_or(0.0, |p99| p99 as f64 * ns), p99[1].map_or(0.0, |_| ns));
    }

    fn list(self, has_flash: bool) -> Vec<(Measure, Vec<Interval>)> {
        use Measure::{ReadP99, ReadRate, Waf, WriteP99, WriteRate};
        let all = [WriteRate, ReadRate, Waf, WriteP99, ReadP99].into_iter().zip(self.intervals);
        all.filter(|(measure, _)| has_flash || *measure != Waf).collect()
    }
}

/// The intervals spread evenly over bins of equal time.
fn bins(intervals: &[Interval], count: usize) -> Vec<Option<f64>> {
    let mut bins = vec![(0.0, 0.0); count];
    let wide = intervals.last().map_or(0.0, |last| last.end_ns as f64) / count as f64;
    let mut start = 0.0;
    for interval in intervals {
        let end = interval.end_ns as f64;
        let first = ((start / wide) as usize).min(count - 1);
        let last = ((end / wide).ceil() as usize).clamp(first + 1, count);
        for (at, bin) in bins.iter_mut().enumerate().take(last).skip(first) {
            let inside = end.min((at + 1) as f64 * wide) - start.max(at as f64 * wide);
            let share = if end > start { (inside / (end - start)).max(0.0) } else { 0.0 };
            bin.0 += interval.sum * share;
            bin.1 += interval.over * share;
        }
        start = end;
    }
    bins.into_iter().map(|(sum, over)| (over > 0.0).then(|| sum / over)).collect()
}

/// The median of the bins that have a value; `None` where a quarter or more have none.
fn median(bins: &[Option<f64>]) -> Option<f64> {
    let mut known: Vec<f64> = bins.iter().copied().flatten().collect();
    known.sort_by(f64::total_cmp);
    (known.len() * 4 > bins.len() * 3)
        .then(|| f64::midpoint(known[(known.len() - 1) / 2], known[known.len() / 2]))
}

fn factor(a: f64, b: f64) -> f64 {
    a.max(b) / a.min(b)
}

/// How sharp a change is at a border; `None` where there is none.
fn sharpness(bins: &[Option<f64>], border: usize, window: usize) -> Option<f64> {
    let (before, after) = (&bins[border - window..border], &bins[border..border + window]);
    let [low, high] = [median(before)?, median(after)?];
    if factor(low, high) < FACTOR {
        return None;
    }
    let middle = (low * high).sqrt();
    let on_side = |bins: &[Option<f64>], median: f64| {
        let stray = |value: &&f64| (**value < middle) != (median < middle);
        bins.iter().flatten().filter(stray).count() * 8 < bins.len()
    };
    let near = window / 4;
    let [last, first] = [median(&before[window - near..])?, median(&after[..near])?];
    let is_sharp = (last < first) == (low < high) && factor(last, first) >= factor(low, high).sqrt();
    (is_sharp && on_side(before, low) && on_side(after, high)).then(|| factor(last, first))
}

/// Lasting changes of a measure, by the rule of the module.
fn changes(intervals: &[Interval]) -> Vec<Change> {
    let count = intervals.len().min(MOST_BINS);
    let window = (count / 16).max(LEAST_WINDOW);
    let end_ns = intervals.last().map_or(0, |last| last.end_ns);
    if count < 3 * window || end_ns == 0 {
        return Vec::new();
    }
    let raw = bins(intervals, count);
    let floor = raw.iter().flatten().copied().fold(0.0, f64::max) * NOTHING;
    if floor <= 0.0 {
        return Vec::new();
    }
    let bins: Vec<Option<f64>> = raw.iter().map(|value| value.map(|value| value.max(floor))).collect();
    let mut borders: Vec<(usize, f64)> = Vec::new();
    for border in window..=count - window {
        let Some(sharp) = sharpness(&bins, border, window) else { continue };
        match borders.last_mut() {
            Some(last) if border - last.0 < window => {
                if sharp > last.1 {
                    *last = (border, sharp);
                }
            }
            _ => borders.push((border, sharp)),
        }
    }
    if borders.len() > MOST_CHANGES {
        return Vec::new();
    }
    let mut ends: Vec<usize> =
        [0].into_iter().chain(borders.iter().map(|(at, _)| *at)).chain([count]).collect();
    let of_phase = |from: usize, to: usize| median(&raw[from..to]).unwrap_or(0.0);
    let sides = |phases: &[usize]| [of_phase(phases[0], phases[1]), of_phase(phases[1], phases[2])];
    let weakest = |ends: &[usize]| {
        let factors = ends.windows(3).map(|phases| {
            let [before, after] = sides(phases).map(|value| value.max(floor));
            factor(before, after)
        });
        (1..).zip(factors).filter(|(_, factor)| *factor < FACTOR).min_by(|a, b| a.1.total_cmp(&b.1))
    };
    while let Some((at, _)) = weakest(&ends) {
        ends.remove(at);
    }
    let change = |phases: &[usize]| {
        let [before, after] = sides(phases);
        let at_ns = first_after(
            intervals,
            phases[1],
            count,
            (before.max(floor) * after.max(floor)).sqrt(),
            before < after,
        );
        Change { at_ns, before, after }
    };
    ends.windows(3).map(change).collect()
}

/// The end of the last interval of the phase before, within a bin of the border: the next one is on the other
/// side of the middle.
fn first_after(intervals: &[Interval], border: usize, count: usize, middle: f64, rises: bool) -> u64 {
    let wide = intervals.last().map_or(0, |last| last.end_ns) as f64 / count as f64;
    let at = border as f64 * wide;
    let is_before = |interval: &Interval| interval.value().map(|value| (value < middle) == rises);
    let is_border = |pair: &&[Interval]| {
        (pair[0].end_ns as f64 - at).abs() <= wide
            && is_before(&pair[0]) == Some(true)
            && is_before(&pair[1]) == Some(false)
    };
    intervals.windows(2).find(is_border).map_or(at as u64, |pair| pair[0].end_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{seeded, unit};

    /// A rate in MB/s, measured every 100 ms.
    fn rate(count: u64, mut value: impl FnMut(u64) -> f64) -> Vec<Interval> {
        (0..count)
            .map(|at| Interval { end_ns: (at + 1) * 100_000_000, sum: value(at) * 1e5, over: 0.1 })
            .collect()
    }

    /// Numbers from 0 to 1 that look random and are the same everywhere.
    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut rng = seeded(seed);
        move || unit(&mut rng)
    }

    fn shown(intervals: &[Interval]) -> Vec<String> {
        let phase =
            |change: Change| Phase { at_ns: change.at_ns, changes: vec![(Measure::WriteRate, change)] };
        changes(intervals).into_iter().map(|change| phase(change).sentence()).collect()
    }

    #[test]
    fn a_drop_is_named_with_its_time_and_both_rates() {
        let found = shown(&rate(200, |at| if at < 70 { 480.0 } else { 120.0 }));
        assert_eq!(found, ["From 7 s the write rate is 120.0 MB/s, before it 480.0 MB/s."]);
        let mut noise = noise(1);
        let found = shown(&rate(1000, |at| (0.8 + 0.4 * noise()) * if at < 70 { 480.0 } else { 120.0 }));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("From 7."), "{found:?}");
    }

    #[test]
    fn two_steps_are_two_phases_each_with_the_rate_before() {
        let found = shown(&rate(300, |at| [480.0, 120.0, 240.0][at as usize / 100]));
        assert_eq!(
            found,
            [
                "From 10 s the write rate is 120.0 MB/s, before it 480.0 MB/s.",
                "From 20 s the write rate is 240.0 MB/s, before it 120.0 MB/s.",
            ]
        );
    }

    #[test]
    fn steps_that_a_burst_undoes_are_no_phases_of_their_own() {
        // Alike before and after; the dip is too short for a phase of its own.
        let dip = |at: u64| {
            if (400..440).contains(&at) {
                100.0
            } else if at < 400 {
                480.0
            } else {
                420.0
            }
        };
        assert!(changes(&rate(1000, dip)).is_empty());
    }

    #[test]
    fn a_rate_may_fall_to_nothing() {
        let found = shown(&rate(100, |at| if at < 50 { 480.0 } else { 0.0 }));
        assert_eq!(found, ["From 5 s the write rate is 0, before it 480.0 MB/s."]);
    }

    #[test]
    fn noise_has_no_phases() {
        for (count, seeds) in [(30, 400), (100, 200), (1000, 50)] {
            let mut found = 0;
            for seed in 0..seeds {
                let mut noise = noise(seed);
                // Exponential: the deviation is as large as the mean.
                found += changes(&rate(count, |_| -100.0 * (1.0 - noise()).ln())).len();
            }
            assert!(found * 100 <= seeds as usize, "{found} of {seeds} series of {count}");
        }
    }

    #[test]
    fn spikes_bursts_and_drift_have_no_phases() {
        let spike = |at: u64| if (400..420).contains(&at) { 50.0 } else { 480.0 };
        assert!(changes(&rate(1000, spike)).is_empty());
        let bursts = |at: u64| if (at / 80).is_multiple_of(2) { 480.0 } else { 60.0 };
        assert!(changes(&rate(1000, bursts)).is_empty(), "a load that comes and goes");
        for last in [0.0, 120.0] {
            let drift = |at: u64| 480.0 + (last - 480.0) * at as f64 / 1000.0;
            assert!(changes(&rate(1000, drift)).is_empty(), "to {last}");
        }
    }

    #[test]
    fn short_and_empty_series_have_no_phases() {
        assert!(changes(&[]).is_empty());
        assert!(changes(&rate(20, |at| if at < 10 { 480.0 } else { 120.0 })).is_empty());
        assert!(changes(&rate(100, |_| 0.0)).is_empty());
        let nothing = |end_ns| Interval { end_ns, sum: 0.0, over: 0.0 };
        assert!(changes(&(0..100).map(nothing).collect::<Vec<_>>()).is_empty());
    }

    #[test]
    fn intervals_of_unequal_length_count_by_their_time() {
        // Evenly spaced in bytes, as the series of a trace: 4 MB each.
        let mut end_ns = 0;
        let intervals = (0..400u64).map(|at| {
            let ns = if at < 200 { 10_000_000 } else { 40_000_000 };
            end_ns += ns;
            Interval { end_ns, sum: 4e6, over: ns as f64 / 1e9 }
        });
        let found = shown(&intervals.collect::<Vec<_>>());
        assert_eq!(found, ["From 2 s the write rate is 100.0 MB/s, before it 400.0 MB/s."]);
    }

    #[test]
    fn measures_that_change_together_are_one_sentence() {
        let change = |at_ns, before, after| Change { at_ns, before, after };
        let phase = Phase {
            at_ns: 7_000_000_000,
            changes: vec![
                (Measure::WriteRate, change(7_000_000_000, 480e6, 120e6)),
                (Measure::Waf, change(7_100_000_000, 1.0, 3.25)),
                (Measure::WriteP99, change(7_100_000_000, 2e6, 8e6)),
            ],
        };
        assert_eq!(
            phase.sentence(),
            "From 7 s the write rate is 120.0 MB/s, before it 480.0 MB/s; write amplification 3.25, before 1.00; \
             the p99 of writes 8 ms, before 2 ms."
        );
    }
}
