//! Figures 4.2 to 4.6: how a run goes on over the data written.

use super::super::{Context, Sabotage, extremes};
use super::lab::{Load, Measured, Point, Step, Strategy, at_share, collecting_otherwise, mixed_up, thesis};
use super::tables::MAP_KIB;
use super::{Done, Table};

/// The rate of bare page programs on the device of Table 3.1: 32 KiB in 116 us.
const PAGE_RATE: f64 = 32_768.0 / 116.0;

fn first_collection(curve: &[Step]) -> Option<usize> {
    curve.iter().position(|step| step.flash.erases > 0)
}

/// Of figures 4.2 and 4.5.
pub const NO_COLLECTION: Sabotage = Sabotage {
    what: "the device has 32 GiB, so that nothing is ever collected",
    turns: Sabotage::EVERY_RULE,
};

pub fn fig_4_2(context: &Context<'_>, out: &mut Table) -> Done {
    for load in Load::ALL {
        for run in thesis(context, load, Point::without_collection)? {
            let (curve, means) = (run.curve(), run.running_mb_s());
            let last = means[means.len() - 1];
            let first =
                first_collection(&curve).and_then(|at| at.checked_sub(1)).map_or(0, |at| curve[at].requests);
            let before = means[first.max(1) - 1];
            out.row(
                "[thesis fig 4.2]",
                format!("{}: running mean before the first collection against the end", run.name()),
            )
            .says(
                "high until then, lower afterwards (taken as by 5 % or more)",
                first > 0 && last <= 0.95 * before,
            )
            .unless("before collection starts the mean has not yet risen to where it ends")
            .found(format!("{before:.1} and {last:.1} MB/s"));
            if run.point.strategy == Strategy::PmGcc {
                falls_in_steps(out, &run, &means);
            } else {
                levels_off(out, &run, &means, first > 0);
            }
        }
    }
    Ok(())
}

fn levels_off(out: &mut Table, run: &Measured, means: &[f64], has_collected: bool) {
    let late = &means[means.len() * 2 / 3..];
    let (least, most) = extremes(late.iter().copied());
    out.row("[thesis fig 4.2]", format!("{}: running mean over the last third", run.name()))
        .says("level after the first collection (taken as within 5 %)", has_collected && most <= 1.05 * least)
        .found(format!("{least:.1} to {most:.1} MB/s"));
}

/// From the first collection on the mean of `PM_GCC` falls at a request that collects and rises at every
/// other.
fn falls_in_steps(out: &mut Table, run: &Measured, means: &[f64]) {
    let collections = run.result().layer.gc.runs;
    // Before the first collection the mean hardly moves; what matters is where it goes down for good.
    let first = means.windows(2).position(|pair| pair[1] < 0.95 * pair[0]).unwrap_or(means.len());
    let after = &means[first..];
    let falls = after.windows(2).filter(|pair| pair[1] < pair[0]).count() as u64;
    let requests = after.len();
    out.row("[thesis fig 4.2]", format!("{}: running mean", run.name()))
        .says(
            "falls in steps, one for each of several collections, and rises in between",
            collections > 1 && falls == collections,
        )
        .found(format!("falls at {falls} of {requests} requests, {collections} collections"));
}

/// Of Figure 4.3.
pub const EXCHANGED: Sabotage = Sabotage {
    what: "PM_GCC and SBM_GCL are exchanged, and HSBM_GCL is PM_GCL",
    turns: Sabotage::EVERY_RULE,
};

const fn exchanged(point: Point) -> Point {
    point.as_if(match point.strategy {
        Strategy::PmGcc => Strategy::SbmGcl,
        Strategy::SbmGcl => Strategy::PmGcc,
        Strategy::PmGcl | Strategy::HsbmGcl => Strategy::PmGcl,
    })
}

pub fn fig_4_3(context: &Context<'_>, out: &mut Table) -> Done {
    let source = "[thesis fig 4.3]";
    for load in Load::ALL {
        let [gcl, gcc, sbm, hsbm] = thesis(context, load, exchanged)?;
        let rates = gcc.request_mb_s();
        let share = |rates: &[f64], test: &dyn Fn(f64) -> bool| {
            rates.iter().filter(|rate| test(**rate)).count() as f64 / rates.len() as f64
        };
        let fast = share(&rates, &|rate| rate > 0.95 * PAGE_RATE);
        out.row(source, format!("{}: requests near the rate of sequential writing", gcc.name()))
            .says(
                "many near 300 MB/s (taken as more than half within 5 % of 32 KiB per 116 us, 282 MB/s)",
                fast > 0.5,
            )
            .found(format!("{:.1} %", 100.0 * fast));
        let slow = rates.iter().filter(|rate| **rate < 0.05 * PAGE_RATE).count() as u64;
        out.row(source, format!("{}: requests near 0 MB/s (taken as below 5 % of that rate)", gcc.name()))
            .says("those that collect, and some do", slow > 0 && slow == gcc.result().layer.gc.runs)
            .found(format!("{slow} requests, {} collections", gcc.result().layer.gc.runs));
        if load == Load::Lammps {
            continue;
        }
        let low = |run: &Measured| share(&run.request_mb_s(), &|rate| rate < 0.5 * PAGE_RATE);
        let [gcl_low, sbm_low, hsbm_low] = [low(&gcl), low(&sbm), low(&hsbm)];
        out.row(source, format!("{}: slow requests (taken as below half of that rate)", sbm.name()))
            .says("most", sbm_low > 0.5)
            .found(format!("{:.1} %", 100.0 * sbm_low));
        out.row(source, format!("{}: slow requests", hsbm.name()))
            .says(
                "some, between PM_GCL and SBM_GCL (taken as 5 points or more from either)",
                gcl_low + 0.05 <= hsbm_low && hsbm_low + 0.05 <= sbm_low,
            )
            .found(format!(
                "PM_GCL {:.1} %, HSBM_GCL {:.1} %, SBM_GCL {:.1} %",
                100.0 * gcl_low,
                100.0 * hsbm_low,
                100.0 * sbm_low
            ));
    }
    Ok(())
}

/// Of Figure 4.4. Proportions stay: no layer that writes the same load all along treats its halves unequally.
pub const TRAFFIC: Sabotage = Sabotage {
    what: "PM_GCL collects the whole device, and the three others are PM_GCL",
    turns: &[
        "LAMMPS: order of the mapping traffic",
        "LAMMPS: PM_GCC over PM_GCL",
        "LAMMPS: SBM_GCL over PM_GCL",
        "LAMMPS: HSBM_GCL over PM_GCL",
        "PM_GCC on LAMMPS: slope behind the first collection over that before",
        "MACDRP: order of the mapping traffic",
        "MACDRP: PM_GCC over PM_GCL",
        "MACDRP: SBM_GCL over PM_GCL",
        "MACDRP: HSBM_GCL over PM_GCL",
        "PM_GCC on MACDRP: slope behind the first collection over that before",
    ],
};

pub fn fig_4_4(context: &Context<'_>, out: &mut Table) -> Done {
    let source = "[thesis fig 4.4]";
    for load in Load::ALL {
        let runs = thesis(context, load, mixed_up)?;
        let [gcl, gcc, sbm, hsbm] = runs.each_ref().map(Measured::map_kib);
        // By a tenth or more at each step.
        let falls = |kib: &[f64]| kib.windows(2).all(|pair| pair[1] <= 0.9 * pair[0]);
        out.row(source, format!("{}: order of the mapping traffic", load.name()))
            .says(
                "PM_GCC > PM_GCL > HSBM_GCL > SBM_GCL (each taken as by 10 % or more)",
                falls(&[gcc, gcl, hsbm, sbm]),
            )
            .found(format!("{gcc:.0}, {gcl:.0}, {hsbm:.0}, {sbm:.0} KiB"));
        let figures = MAP_KIB[load as usize];
        for (index, kib) in [(1, gcc), (2, sbm), (3, hsbm)] {
            let name = format!("{}: {} over PM_GCL", load.name(), Strategy::ALL[index].name());
            out.row(source, name).number("", figures[index] / figures[0], kib / gcl).near();
        }
        for run in &runs {
            if run.point.strategy == Strategy::PmGcc {
                faster_once_collected(out, run);
            } else {
                in_proportion(out, run);
            }
        }
    }
    Ok(())
}

/// Steps do not end exactly at half the data, so the slope to there is compared with the slope to the end.
fn in_proportion(out: &mut Table, run: &Measured) {
    let curve = run.curve();
    let half = at_share(&curve, 0.5);
    let last = &curve[curve.len() - 1];
    let slope = (half.map_bytes / half.written) / (last.map_bytes / last.written);
    out.row("[thesis fig 4.4]", format!("{}: slope of the first half over the whole's", run.name()))
        .says(
            "grows in proportion to the data (taken as the slope of the first half within 10 % of the whole's)",
            (0.9..=1.1).contains(&slope),
        )
        .found(format!("{slope:.3}"));
}

fn faster_once_collected(out: &mut Table, run: &Measured) {
    let curve = run.curve();
    let first = first_collection(&curve).and_then(|at| at.checked_sub(1)).map(|at| &curve[at]);
    let last = &curve[curve.len() - 1];
    let gain = first.map_or(f64::NAN, |first| {
        let after = (last.map_bytes - first.map_bytes) / (last.written - first.written);
        after / (first.map_bytes / first.written)
    });
    out.row(
        "[thesis fig 4.4]",
        format!("{}: slope behind the first collection over that before", run.name()),
    )
    .says("grows faster once collection has begun (taken as by 10 % or more)", gain >= 1.1)
    .found(format!("{gain:.3}"));
}

/// Squared correlation of erases with data written, from the first collection on.
fn linearity(curve: &[Step]) -> f64 {
    let rest = &curve[first_collection(curve).unwrap_or(0)..];
    let n = rest.len() as f64;
    let mean = |of: &dyn Fn(&Step) -> f64| rest.iter().map(of).sum::<f64>() / n;
    let (x, y) = (|step: &Step| step.written, |step: &Step| step.flash.erases as f64);
    let (mx, my) = (mean(&x), mean(&y));
    let xy = mean(&|s| (x(s) - mx) * (y(s) - my));
    let (xx, yy) = (mean(&|s| (x(s) - mx) * (x(s) - mx)), mean(&|s| (y(s) - my) * (y(s) - my)));
    xy * xy / (xx * yy)
}

/// Mean MiB between the steps of the staircase, and how many there are.
fn steps(curve: &[Step]) -> (f64, u64) {
    let at: Vec<f64> = curve
        .windows(2)
        .filter(|pair| pair[1].flash.erases > pair[0].flash.erases)
        .map(|pair| pair[1].written)
        .collect();
    let span = at.last().copied().unwrap_or(0.0) - at.first().copied().unwrap_or(0.0);
    (span / (at.len().max(2) - 1) as f64 / f64::from(1 << 20), at.len() as u64)
}

pub fn fig_4_5(context: &Context<'_>, out: &mut Table) -> Done {
    let source = "[thesis fig 4.5]";
    let lammps = thesis(context, Load::Lammps, Point::without_collection)?;
    let both = [lammps, thesis(context, Load::Macdrp, Point::without_collection)?];
    let [lammps, macdrp] = &both;
    let greedy = Strategy::GREEDY.map(|strategy| &lammps[strategy as usize]);
    let erases = greedy.map(Measured::erases);
    let (least, most) = extremes(erases);
    out.row(source, "LAMMPS: erases of PM_GCL, SBM_GCL and HSBM_GCL")
        .says("close (taken as within 20 %), and some", least > 0.0 && most <= 1.2 * least)
        .found(erases.map(|e| format!("{e:.0}")).join(", "));
    for run in greedy {
        let square = linearity(&run.curve());
        out.row(source, format!("{}: erases over data written", run.name()))
            .says("nearly linear (taken as a squared correlation of 0.99 or more)", square >= 0.99)
            .found(format!("{square:.5}"));
    }
    let stairs = both.each_ref().map(|runs| (&runs[1], steps(&runs[1].curve())));
    for (run, (_, count)) in &stairs {
        let runs = run.result().layer.gc.runs;
        out.row(source, format!("{}: erases over data written", run.name()))
            .says("a staircase: nothing between two of several collections", *count > 1 && *count == runs)
            .unless(
                "an interval of the series may end inside a collection, so that its step is spread over two",
            )
            .found(format!("{count} steps, {runs} collections"));
    }
    out.row(source, "PM_GCC: data between two steps")
        .says(
            "less on LAMMPS than on MACDRP (taken as by 10 % or more, of several steps)",
            stairs.iter().all(|(_, (_, count))| *count > 1) && stairs[0].1.0 <= 0.9 * stairs[1].1.0,
        )
        .found(format!("{:.0} MiB on LAMMPS, {:.0} MiB on MACDRP", stairs[0].1.0, stairs[1].1.0));
    let erases = macdrp.each_ref().map(Measured::erases);
    out.row(source, "MACDRP: most erases")
        .says(
            "SBM_GCL (taken as by 10 % or more)",
            erases[2] > 0.0 && [0, 1, 3].iter().all(|&other| erases[2] >= 1.1 * erases[other]),
        )
        .found(Strategy::ALL.map(|s| format!("{} {:.0}", s.name(), erases[s as usize])).join(", "));
    Ok(())
}

pub fn fig_4_6(context: &Context<'_>, out: &mut Table) -> Done {
    let source = "[thesis fig 4.6]";
    let lammps = thesis(context, Load::Lammps, collecting_otherwise)?;
    let both = [lammps, thesis(context, Load::Macdrp, collecting_otherwise)?];
    for strategy in Strategy::GREEDY {
        let run = &both[0][strategy as usize];
        out.row(source, format!("{}: write amplification", run.name()))
            .says("about 1 (taken as 1 to 1.15)", (1.0..=1.15).contains(&run.waf()))
            .found(format!("{:.4}", run.waf()));
    }
    for runs in &both {
        let curve = runs[1].curve();
        let waf = [0.25, 0.5, 1.0].map(|share| at_share(&curve, share).waf());
        out.row(
            source,
            format!("{}: write amplification after a quarter, half and all of the data", runs[1].name()),
        )
        .says(
            "rises and stays above 1 (taken as 1.05 or more at a quarter, and more at each step)",
            waf[0] >= 1.05 && waf[0] < waf[1] && waf[1] < waf[2],
        )
        .found(waf.map(|waf| format!("{waf:.3}")).join(", "));
    }
    let waf = both[1].each_ref().map(Measured::waf);
    out.row(source, "MACDRP: write amplification of SBM_GCL")
        .says(
            "high (taken as above 1.5, and the highest of the four by 10 % or more)",
            waf[2] > 1.5 && [0, 1, 3].iter().all(|&other| waf[2] >= 1.1 * waf[other]),
        )
        .found(Strategy::ALL.map(|s| format!("{} {:.3}", s.name(), waf[s as usize])).join(", "));
    Ok(())
}
