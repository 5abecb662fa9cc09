//! Points that no other point beats in everything, and the best and worst of each figure.

use super::{Figure, SweepPoint, SweepTable, USABLE_SHARE};
use crate::metrics::Better;
use crate::number::printable;
use nandscape_sim::result::Spread;

/// What points are chosen by, in this order: the first key of each line that the sweep has.
const OBJECTIVES: [&[&str]; 4] = [
    &["waf_bytes", "waf"],
    &[
        "latency_ns.all.p99_9",
        "latency_ns.write.p99_9",
        "latency_ns.read.p99_9",
        "latency_ns.all.p99",
        "latency_ns.write.p99",
        "latency_ns.read.p99",
    ],
    &["cost.dram_bytes"],
    &[USABLE_SHARE, "cost.usable_bytes"],
];

/// A figure that points are chosen by.
#[derive(Clone, Debug)]
pub(crate) struct Objective {
    /// Place among the metrics of the sweep.
    pub metric: usize,
    /// How it is shown.
    pub figure: Figure,
}

/// The choice that a sweep leaves.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    /// Figures that differ between points; points are chosen by these.
    pub objectives: Vec<Objective>,
    /// Names of figures that are the same at all points.
    pub alike: Vec<String>,
    /// For each point whether no other one is at least as good in every objective and better in one.
    pub is_on: Vec<bool>,
}

impl Front {
    /// Of these points of the sweep, by the means over their seeds. Points without all of the figures, such
    /// as those that failed, are not on the front.
    pub fn new(table: &SweepTable, points: &[SweepPoint<'_>]) -> Self {
        let mut objectives = Vec::new();
        let mut alike = Vec::new();
        for keys in OBJECTIVES {
            let Some((metric, key)) = keys.iter().find_map(|key| {
                let metric = table.metrics.iter().position(|known| known == key)?;
                points.iter().any(|point| point.spreads[metric].is_some()).then_some((metric, key))
            }) else {
                continue;
            };
            let figure = Figure::of(key);
            let mut means = points.iter().filter_map(|point| Some(point.spreads[metric]?.mean));
            let first = means.next();
            if means.all(|mean| Some(mean) == first) {
                alike.push(figure.name);
            } else {
                objectives.push(Objective { metric, figure });
            }
        }
        // Larger is worse in all of them.
        let costs: Vec<Option<Vec<f64>>> = points
            .iter()
            .map(|point| {
                let cost = |objective: &Objective| {
                    let mean = point.spreads[objective.metric]?.mean;
                    Some(if objective.figure.better == Better::Higher { -mean } else { mean })
                };
                objectives.iter().map(cost).collect::<Option<Vec<f64>>>().filter(|costs| !costs.is_empty())
            })
            .collect();
        let beats = |a: &[f64], b: &[f64]| a != b && a.iter().zip(b).all(|(a, b)| a <= b);
        let is_on = |own: &Option<Vec<f64>>| {
            own.as_ref().is_some_and(|own| !costs.iter().flatten().any(|other| beats(other, own)))
        };
        let is_on = costs.iter().map(is_on).collect();
        Self { objectives, alike, is_on }
    }

    /// The points with the best and the worst mean of a metric; `None` where all have the same, or where
    /// neither direction is good.
    pub fn ends(points: &[SweepPoint<'_>], metric: usize, figure: &Figure) -> Option<(usize, usize)> {
        let mean = |at: &usize| points[*at].spreads[metric].map(|spread| spread.mean);
        let known: Vec<usize> = (0..points.len()).filter(|at| mean(at).is_some()).collect();
        // The first of equals, whichever end is wanted.
        let least = known.iter().copied().reduce(|a, b| if mean(&b) < mean(&a) { b } else { a })?;
        let most = known.iter().copied().reduce(|a, b| if mean(&b) > mean(&a) { b } else { a })?;
        if mean(&least) == mean(&most) {
            return None;
        }
        match figure.better {
            Better::Lower => Some((least, most)),
            Better::Higher => Some((most, least)),
            Better::Neither => None,
        }
    }

    /// The best value of each figure that points are chosen by, with its settings, and the share of points
    /// that is left: title, value, where.
    pub(crate) fn key_figures(
        &self,
        table: &SweepTable,
        points: &[SweepPoint<'_>],
    ) -> Vec<(String, String, String)> {
        let best = |Objective { metric, figure }: &Objective| {
            let (best, _) = Self::ends(points, *metric, figure)?;
            let value = figure.kind.show_alone(points[best].spreads[*metric]?.mean);
            Some((format!("best {}", figure.name), value, table.settings(points[best].values)))
        };
        let mut out: Vec<_> = self.objectives.iter().filter_map(best).collect();
        if self.objectives.len() > 1 {
            let on = self.is_on.iter().filter(|is_on| **is_on).count();
            out.push((
                "on the front".to_owned(),
                format!("{on} of {} points", self.is_on.len()),
                String::new(),
            ));
        }
        let complete = table.rows.len() - table.failed().count();
        out.push(("complete runs".to_owned(), format!("{complete} of {}", table.planned), String::new()));
        out
    }

    /// What the sweep comes to, in three sentences at most: two figures, and how many points are left.
    pub(crate) fn verdict(&self, table: &SweepTable, points: &[SweepPoint<'_>]) -> Vec<String> {
        let mut out = Vec::new();
        for Objective { metric, figure } in self.objectives.iter().take(2) {
            let Some((best, worst)) = Self::ends(points, *metric, figure) else { continue };
            let value = |at: usize| points[at].spreads[*metric].map_or(0.0, |spread| spread.mean);
            let times = value(best).max(value(worst)) / value(best).min(value(worst));
            let ratio = if times.is_finite() && times >= 1.005 {
                format!(" (a factor of {times:.2})")
            } else {
                String::new()
            };
            let (same, within) = others(points, *metric, best);
            out.push(format!(
                "Best {} {} at {}{same}; worst {} at {}{ratio}{within}.",
                printable(&figure.name),
                figure.kind.show_alone(value(best)),
                table.settings(points[best].values),
                figure.kind.show_alone(value(worst)),
                table.settings(points[worst].values),
            ));
        }
        let names: Vec<&str> =
            self.objectives.iter().map(|objective| objective.figure.name.as_str()).collect();
        let on = self.is_on.iter().filter(|is_on| **is_on).count();
        if let [first @ .., last] = names.as_slice()
            && !first.is_empty()
        {
            let of = self.is_on.len();
            let is = if on == 1 { "points is" } else { "points are" };
            out.push(format!(
                "{on} of {of} {is} on the front: no other point is at least as good in {} and {last} and better in one.",
                first.join(", ")
            ));
        }
        out
    }
}

/// Says where others are as good, or the seeds do not tell them from the best.
fn others(points: &[SweepPoint<'_>], metric: usize, best: usize) -> (String, String) {
    let Some(own) = points[best].spreads[metric] else { return Default::default() };
    let others = || points.iter().filter(|other| other.point != points[best].point);
    let spreads = || others().filter_map(|other| other.spreads[metric]);
    let same = spreads().filter(|other| (other.mean - own.mean).abs() <= 0.0).count();
    let is_within = |other: &Spread| {
        let is_same = (other.mean - own.mean).abs() <= 0.0;
        !is_same && other.min <= own.max && other.max >= own.min
    };
    let within = spreads().filter(is_within).count();
    let points = |n: usize| if n == 1 { "1 other point".to_owned() } else { format!("{n} other points") };
    (
        if same == 0 { String::new() } else { format!(" and {}", points(same)) },
        if within == 0 {
            String::new()
        } else {
            format!("; the range over the seeds of {} reaches that of the best", points(within))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::SweepRow;

    fn table(rows: &[(&str, f64, f64)]) -> SweepTable {
        let row = |(point, (value, waf, share)): (u32, &(&str, f64, f64))| SweepRow {
            point,
            values: vec![(*value).to_owned()],
            metrics: vec![Some(*waf), Some(*share), Some(8.0)],
            ..SweepRow::default()
        };
        SweepTable {
            axes: vec!["ftl.op".into()],
            metrics: ["waf_bytes", USABLE_SHARE, "cost.dram_bytes"].map(str::to_owned).to_vec(),
            rows: (0..).zip(rows).map(row).collect(),
            planned: rows.len(),
            ..SweepTable::default()
        }
    }

    #[test]
    fn a_point_that_another_beats_is_not_on_the_front() {
        let mut table =
            table(&[("0.07", 4.0, 0.93), ("0.2", 2.0, 0.8), ("0.3", 2.5, 0.75), ("0.5", 1.5, 0.6)]);
        table.rows.push(SweepRow {
            point: 4,
            values: vec!["0.9".into()],
            metrics: vec![None; 3],
            error: Some("too small".into()),
            ..SweepRow::default()
        });
        let points = table.points();
        let front = Front::new(&table, &points);
        assert_eq!(front.is_on, [true, true, false, true, false]);
        assert_eq!(front.alike, ["DRAM"]);
        let verdict = front.verdict(&table, &points).join("\n");
        assert!(
            verdict
                .starts_with("Best WAF 1.500 at ftl.op=0.5; worst 4.000 at ftl.op=0.07 (a factor of 2.67).")
        );
        assert!(verdict.contains("3 of 5 points are on the front"), "{verdict}");
    }

    #[test]
    fn equal_points_are_both_on_the_front() {
        let table = table(&[("1", 2.0, 0.8), ("2", 2.0, 0.8), ("3", 3.0, 0.7)]);
        assert_eq!(Front::new(&table, &table.points()).is_on, [true, true, false]);
    }
}
