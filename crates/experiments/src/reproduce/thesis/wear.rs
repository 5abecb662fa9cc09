//! Figure 4.7: how evenly pages are programmed and blocks erased.

use super::super::{Context, Sabotage};
use super::lab::{Load, Measured, Point, Strategy, runs, thesis};
use super::{Done, Table};

/// Standard deviation of the population.
fn deviation(counts: &[u32]) -> f64 {
    let n = counts.len() as f64;
    let mean = counts.iter().map(|c| f64::from(*c)).sum::<f64>() / n;
    (counts.iter().map(|c| (f64::from(*c) - mean).powi(2)).sum::<f64>() / n).sqrt()
}

fn within_one_of_median(counts: &[u32]) -> f64 {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    let median = sorted[sorted.len() / 2];
    counts.iter().filter(|count| count.abs_diff(median) <= 1).count() as f64 / counts.len() as f64
}

fn erases(run: &Measured) -> f64 {
    run.result().wear.erases_stddev
}

fn programs(run: &Measured) -> f64 {
    deviation(run.program_counts())
}

type Spread = fn(&Measured) -> f64;

/// Of Figure 4.7.
pub const IN_PLACE: Sabotage =
    Sabotage { what: "PM_GCC and SBM_GCL rewrite superblocks in place", turns: Sabotage::EVERY_RULE };

fn in_place(point: Point) -> Point {
    match point.strategy {
        Strategy::PmGcc | Strategy::SbmGcl => Point { in_place: true, ..point.as_if(Strategy::SbmGcl) },
        _ => point,
    }
}

/// How much smaller a deviation must be than another one to count as smaller.
const SMALLER: f64 = 0.9;

pub fn fig_4_7(context: &Context<'_>, out: &mut Table) -> Done {
    let source = "[thesis fig 4.7]";
    for load in Load::ALL {
        let all = thesis(context, load, in_place)?;
        let kinds: [(&str, Spread); 2] = [("erases per block", erases), ("programs per page", programs)];
        for (name, spread) in kinds {
            let spreads = all.each_ref().map(spread);
            out.row(source, format!("{}: standard deviation of {name}", load.name())).says(
                    "smallest for PM_GCC (taken as by 10 % or more)",
                    [0, 2, 3].iter().all(|&other| spreads[1] < SMALLER * spreads[other]),
                )
                .unless("the last pages of the device stay unwritten in rounds whose next request does not fit into them, so these few \
                 are programmed less often and weigh most in the deviation; see the next row").found(Strategy::ALL.map(|s| format!("{} {:.3}", s.name(), spreads[s as usize])).join(", "));
        }
        let even = within_one_of_median(all[1].program_counts());
        out.row(
            source,
            format!("PM_GCC on {}: pages whose programs differ from the median by 1 at most", load.name()),
        )
        .says("almost all (taken as 99 % or more)", even >= 0.99)
        .found(format!("{:.2} %", 100.0 * even));
        let wear = &all[1].result().wear;
        out.row(source, format!("PM_GCC on {}: erases per block", load.name())).says("almost the same everywhere (taken as a largest and a smallest count that differ by 1 at most)", wear.erases_max - wear.erases_min <= 1).found(format!("{} to {}", wear.erases_min, wear.erases_max));
        let sbm = Point::new(load, Strategy::SbmGcl);
        let relocation = runs(context, &[sbm, Point { in_place: true, ..sbm }], in_place)?;
        for (name, spread) in kinds {
            let [moved, in_place] = [spread(&relocation[0]), spread(&relocation[1])];
            out.row(source, format!("SBM_GCL on {}: standard deviation of {name}", load.name())).says(
                    "smaller (taken as by 10 % or more) where every overwrite moves to another superblock than \
                     where it rewrites in place",
                    moved < SMALLER * in_place,
                )
                .found(format!("{moved:.3} moving, {in_place:.3} in place"));
        }
    }
    Ok(())
}
