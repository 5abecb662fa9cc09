//! Published beside measured. The preset's times were searched for so that the article's figures come out:
//! a figure that its file names as the reason of a number is calibrated.

use super::lab::{DEPTHS, FREE_DEPTHS, Layout, Measured, PROCESSORS, Pair};
use crate::reproduce::{Table, extremes};
use nandscape_report::RowKind;

const TEST_1: &str = "[sets-article test 1]";
const TEST_2: &str = "[sets-article test 2]";
const WRITES: &str = "[sets-article write bandwidth]";
const OPEN_CHANNEL: &str = "[sets-article open-channel]";

/// Parameters of the preset, and the figures that they were set to.
const READS: &str = "device.timing.suspend_stop was set to the mean without sets, device.timing.read, channel_command and host_read to \
     that with them";
const TAIL: &str = "device.timing.erase and read were set to it";
const PROGRAM: &str = "device.timing.program was set to the write bandwidths";
const BURST: &str = "device.timing.burst was set to it: from 4 KiB on horizontal sets are not better";
const SPREAD: &str = "device.timing.program_jitter and read_hold_off were set to it";

/// Least gain that counts.
const MARGIN: f64 = 1.05;

pub(super) fn rows(all: &Measured, out: &mut Table) {
    reads(all, out);
    depths(all, out);
    writes(all, out);
    neighbours(all, out);
}

fn each(digits: usize, value: impl Fn(Layout) -> f64) -> String {
    let [t, v, h] = Layout::ALL.map(value);
    format!("traditional {t:.digits$}, vertical {v:.digits$}, horizontal {h:.digits$}")
}

fn reads(all: &Measured, out: &mut Table) {
    let of = |layout: Layout| all.of(layout);
    let at8 = |layout: Layout| of(layout).at(8);
    let (t, v, h) = (at8(Layout::Traditional), at8(Layout::Vertical), at8(Layout::Horizontal));
    let l = |pair: &Pair| pair.read.latency_ns;
    let us = |ns: u64| ns as f64 / 1e3;
    let (low, high) = of(Layout::Traditional).means_us;
    let (flat_low, flat_high) = of(Layout::Horizontal).means_us;
    let ratio = t.mean_us() / h.mean_us();
    let tail = l(t).p99_9999 as f64 / l(h).p99_9999 as f64;
    let tail_note = format!(
        "{:.0} us against {:.0}; {} reads a layout, so {} beyond this percentile; {TAIL}",
        us(l(t).p99_9999),
        us(l(h).p99_9999),
        all.reads,
        all.reads / 1_000_000
    );
    let mean_text = |pair: &Pair| format!("{:.1} us", pair.mean_us());
    let percentile =
        |at: fn(&nandscape_sim::result::LatencySummary) -> u64| each(0, |layout| us(at(&l(at8(layout)))));
    let flat = |pair: &Pair| l(pair).p99_9999 < l(pair).p50 * 4;
    out.row(TEST_1, "mean read latency, traditional")
        .says("200 to 250 us", (200.0..=250.0).contains(&t.mean_us()))
        .kind(RowKind::Calibrated)
        .found(mean_text(t) + "; " + READS);
    out.row(TEST_1, "mean read latency, horizontal")
        .says("near 100 us (taken as 90 to 110)", (90.0..=110.0).contains(&h.mean_us()))
        .kind(RowKind::Calibrated)
        .found(mean_text(h) + "; " + READS);
    out.row(TEST_1, "mean read latency, traditional over horizontal")
        .number("", 2.25, ratio)
        .kind(RowKind::Calibrated)
        .note(READS);
    out.row(TEST_1, "read latency over time, mean of each 100 ms")
        .says(
            "traditional jitters, horizontal is flat (taken as a tenth of the spread or less, and within 3 %)",
            high - low > 10.0 * (flat_high - flat_low) && flat_high < 1.03 * flat_low,
        )
        .found(format!(
            "traditional {low:.1} to {high:.1} us, horizontal {flat_low:.1} to {flat_high:.1} us"
        ));
    out.row(TEST_1, "p99.9999 of reads, traditional over horizontal")
        .number("", 21.0, tail)
        .kind(RowKind::Calibrated)
        .note(tail_note);
    out.row(TEST_2, "mean read latency at depth 8")
        .says(
            "both sets below traditional (taken as by 5 % or more); which of them is lower, see below",
            MARGIN * h.mean_us().max(v.mean_us()) <= t.mean_us(),
        )
        .found(each(2, |layout| at8(layout).mean_us()) + " us");
    out.row(TEST_2, "mean read latency at depth 8, sets")
        .says("horizontal below vertical", h.mean_us() < v.mean_us())
        .kind(RowKind::Calibrated)
        .found(format!("vertical {:.2}, horizontal {:.2} us; {BURST}", v.mean_us(), h.mean_us()));
    out.row(TEST_2, "p99.99 of reads")
        .says(
            "traditional has risen, sets have not (taken as 4 times theirs or more)",
            l(t).p99_99 > 4 * l(v).p99_99.max(l(h).p99_99),
        )
        .found(percentile(|l| l.p99_99) + " us");
    out.row(TEST_2, "p99.9999 of reads")
        .says(
            "sets flat up to here (taken as below 4 medians), then still below traditional",
            flat(v) && flat(h) && l(v).max.max(l(h).max) < l(t).p99_9999,
        )
        .found(format!("{} us; medians {}", percentile(|l| l.p99_9999), percentile(|l| l.p50)));
}

/// Against the depth of the reader.
fn depths(all: &Measured, out: &mut Table) {
    let [t, v, h] = Layout::ALL.map(|layout| all.of(layout));
    let linear = |layout: Layout, depth: u32| {
        let of = all.of(layout);
        of.at(depth).read.iops / (of.at(1).read.iops * f64::from(depth))
    };
    let least_linear = |layout: Layout, most: u32| {
        let depths = DEPTHS.into_iter().filter(|depth| *depth <= most);
        extremes(depths.map(|depth| linear(layout, depth))).0
    };
    let gain = |set: &super::lab::Outcome| {
        extremes(DEPTHS.map(|depth| set.at(depth).read.iops / t.at(depth).read.iops)).0
    };
    let gap = |depth: u32| v.at(depth).mean_us() - h.at(depth).mean_us();
    let shown: Vec<String> = DEPTHS.map(|depth| format!("{:+.2} at {depth}", gap(depth))).to_vec();
    let free = |depth: u32| {
        let at = |pairs: &[Pair]| pairs.iter().find(|pair| pair.depth == depth).map_or(0.0, Pair::mean_us);
        at(&all.free[0]) - at(&all.free[1])
    };
    let free_shown: Vec<String> = FREE_DEPTHS.map(|depth| format!("{:+.2} at {depth}", free(depth))).to_vec();
    let max_us = |layout: Layout, depth: u32| all.of(layout).at(depth).read.latency_ns.max;
    let max_gains =
        DEPTHS.map(|d| max_us(Layout::Traditional, d) as f64 / max_us(Layout::Horizontal, d) as f64);
    let max_gain = extremes(max_gains).0;
    out.row(TEST_1, "longest read and IOPS, depth 1 to 64")
        .says(
            "horizontal better than traditional everywhere (taken as by 5 % or more)",
            max_gain >= MARGIN && gain(h) >= MARGIN,
        )
        .found(format!(
            "longest read at least {max_gain:.1} times shorter, IOPS at least {:.2} times",
            gain(h)
        ));
    out.row(TEST_2, "mean read latency, vertical less horizontal, depth 4 to 64")
        .says("horizontal better", [4, 8, 16, 32, 64].into_iter().all(|depth| gap(depth) > 0.0))
        .kind(RowKind::Calibrated)
        .found(shown.join(", ") + " us; below depth 4 there is hardly anything to queue behind; " + BURST);
    out.row(TEST_2, "the same with no contention on the channels")
        .says(
            "no difference (taken as 0.1 us): the channels are the cause",
            FREE_DEPTHS.into_iter().all(|depth| free(depth).abs() < 0.1),
        )
        .found(free_shown.join(", ") + " us; mean of reads of the same places");
    for (layout, name) in [(Layout::Vertical, "vertical"), (Layout::Horizontal, "horizontal")] {
        out.row(TEST_2, format!("IOPS against depth, of the {name} set"))
            .says(
                "nearly linear (taken as 85 % of linear or more at every depth to 64)",
                least_linear(layout, 64) >= 0.85,
            )
            .unless(COLLIDE)
            .found(linearity(|depth| linear(layout, depth)));
    }
    out.row(TEST_2, "IOPS of sets over traditional at every depth")
        .says("above traditional (taken as by 5 % or more)", gain(v).min(gain(h)) >= MARGIN)
        .found(format!("vertical at least {:.2} times, horizontal {:.2}", gain(v), gain(h)));
}

/// Why IOPS of sets bend.
const COLLIDE: &str = "64 requests at random places collide on 64 dies, and vertical sets have half of the channels, so that from depth 32 on \
     requests wait for each other; the article has its curve only in an image";

fn linearity(share: impl Fn(u32) -> f64) -> String {
    let shown: Vec<String> =
        [4, 16, 32, 64].map(|depth| format!("{:.0} % at {depth}", share(depth) * 100.0)).to_vec();
    shown.join(", ") + " of depth times the IOPS at 1"
}

/// Write bandwidth in GB/s (decimal).
fn writes(all: &Measured, out: &mut Table) {
    let alone = |layout: Layout| all.of(layout).write_alone.bytes_per_s / 1e9;
    let at8 = |layout: Layout| all.of(layout).at(8).write.bytes_per_s / 1e9;
    let (v, h) = (at8(Layout::Vertical), at8(Layout::Horizontal));
    out.row(WRITES, "write bandwidth without reads, all dies")
        .says("above 3 GB/s", alone(Layout::Traditional) > 3.0)
        .kind(RowKind::Calibrated)
        .found(format!("{:.2} GB/s; {PROGRAM}", alone(Layout::Traditional)));
    out.row(WRITES, "write bandwidth beside reads, traditional")
        .says(
            "above 2 GB/s, and above a set by 5 % or more",
            at8(Layout::Traditional) > 2.0_f64.max(MARGIN * v.max(h)),
        )
        .found(format!("{:.2} GB/s", at8(Layout::Traditional)));
    for (name, rate) in [("vertical", v), ("horizontal", h)] {
        out.row(WRITES, format!("write bandwidth beside reads, {name}"))
            .number("GB/s", 1.5, rate)
            .kind(RowKind::Calibrated)
            .note(PROGRAM);
    }
    out.row(WRITES, "write bandwidth of the sets")
        .says("vertical slightly above horizontal (taken as by 15 % at most)", v >= h && v < 1.15 * h)
        .kind(RowKind::Calibrated)
        .found(format!(
            "{v:.3} and {h:.3} GB/s; half of the dies alone: {:.3}; {SPREAD}",
            alone(Layout::Horizontal)
        ));
}

fn neighbours(all: &Measured, out: &mut Table) {
    let cost = |layout: Layout| {
        let of = all.of(layout);
        of.at(8).read.latency_ns.mean / of.read_alone.latency_ns.mean
    };
    let horizontal = all.of(Layout::Horizontal);
    let mixed = horizontal.mixed.read.latency_ns.mean / horizontal.read_alone.latency_ns.mean;
    let (host, device) = (&all.open_channel.read.latency_ns, &all.device_side.read.latency_ns);
    let own = cost(Layout::Horizontal);
    out.row(OPEN_CHANNEL, "writer and reader inside one set")
        .says(
            "still interfere (taken as 1.5 times the mean alone or more, and 1.5 times the cost in a set of its own)",
            mixed >= 1.5 * own.max(1.0),
        )
        .found(format!(
            "mean read {:.1} us, {mixed:.2} times that alone; in a set of its own {own:.2} times",
            horizontal.mixed.mean_us()
        ));
    out.row(TEST_1, "mean read beside the writer over alone")
        .says(
            "sets keep the neighbour out (taken as below 1.1 times, and above 1.8 without)",
            cost(Layout::Traditional) > 1.8 && cost(Layout::Vertical) < 1.1 && cost(Layout::Horizontal) < 1.1,
        )
        .found(each(3, cost) + " times");
    out.row(OPEN_CHANNEL, "open-channel (translation on the host) against sets, same dies").says("slightly better isolation than with sets (taken as by 1 % or more)",
            host.mean < 0.99 * device.mean && host.p99_9999 as f64 <= 0.99 * device.p99_9999 as f64).found(format!(
                "mean {:.2} us against {:.2}, p99.9999 {:.0} against {:.0}; the dies, the channels and here even the schedule are the \
                 same, so that nothing is left to be better: what differs is where collection runs and whose processor and memory it takes",
                host.mean / 1e3,
                device.mean / 1e3,
                host.p99_9999 as f64 / 1e3,
                device.p99_9999 as f64 / 1e3
            ));
    let gains: Vec<f64> =
        all.processors.iter().map(|[device, host]| 1.0 - host.mean_us() / device.mean_us()).collect();
    for (time, gain) in PROCESSORS.iter().zip(&gains) {
        out.row(
            "",
            format!("mean read, open-channel below sets, where a processor needs {time} an operation"),
        )
        .figure("%", 100.0 * gain)
        .note("sets share the controller's processor, on the host each has its own; the time is chosen");
    }
    out.row(OPEN_CHANNEL, "open-channel against sets, where processors take time")
        .says(
            "better isolation the longer an operation keeps a processor, and by 1 % or more at 4 us",
            gains.is_sorted() && gains.last().is_some_and(|gain| *gain >= 0.01),
        )
        .found(gains.iter().map(|gain| format!("{:.2} %", 100.0 * gain)).collect::<Vec<_>>().join(", "));
}
