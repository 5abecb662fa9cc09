//! Amplification by size for pages of 4 to 32 KiB [OFTL fig 8].
//!
//! The loads stay as they are: a write that is not aligned to 4 KiB is not aligned to larger pages either.
//! The device has as many bytes and 64 pages a block whatever the size of a page.

use super::super::{Context, Done, Reproduction, Sabotage, Table, experiment};
use super::{Load, Point, inputs, size_amplification};
use crate::Result;

const SOURCE: &str = "[OFTL fig 8]";
const SIZES: [u32; 4] = [4, 8, 16, 32];
const FASTEST: &str = "rises fastest, sync";

pub(in crate::reproduce) const FIG_8: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: "parts of pages are merged at once, and the index is written with every flush",
        turns: &["highest at 32 KiB, sync"],
    }),
    ..experiment(
        "oftl-fig-8",
        "write amplification of OFTL with pages of 4, 8, 16 and 32 KiB",
        "[OFTL fig 8], [OFTL table 2]",
        rows,
    )
};

/// Amplification of one load for each size of a page.
struct Curve {
    point: Point,
    sizes: Vec<f64>,
}

impl Curve {
    fn all(context: &Context<'_>, is_sync: bool) -> Result<Vec<Self>> {
        let curve = |load| {
            let mut first = Point::new(context, load, is_sync);
            // The full load says the same, and takes minutes.
            if load == Load::IPhoto {
                first.divisor = 10;
            }
            SIZES.map(|page_kib| Point { page_kib, ..first })
        };
        let points: Vec<Point> = Load::ALL.into_iter().flat_map(curve).collect();
        let runs = context.objects.all(&points, |point| point.run(context))?;
        let curves = points.chunks(SIZES.len()).zip(runs.chunks(SIZES.len()));
        let sizes = |runs: &[std::sync::Arc<_>]| runs.iter().map(|run| size_amplification(run)).collect();
        Ok(curves.map(|(points, runs)| Self { point: points[0], sizes: sizes(runs) }).collect())
    }

    /// How much more it is at the largest size.
    fn rise(&self) -> f64 {
        self.sizes[SIZES.len() - 1] / self.sizes[0]
    }

    fn last(&self) -> f64 {
        self.sizes[SIZES.len() - 1]
    }
}

fn rows(context: &Context<'_>, out: &mut Table) -> Done {
    inputs(out);
    for (is_sync, published) in [(true, 30.0), (false, 3.0)] {
        let curves = Curve::all(context, is_sync)?;
        for curve in &curves {
            let shown: Vec<String> = curve.sizes.iter().map(|size| format!("{size:.2}")).collect();
            out.row(SOURCE, format!("larger pages, {}", curve.point.name()))
                .says("rises with every size", curve.sizes.is_sorted_by(|a, b| a < b))
                .found(shown.join(", "));
        }
        let mode = curves[0].point.mode();
        let highest = curves.iter().max_by(|a, b| a.last().total_cmp(&b.last())).expect("six loads");
        out.row(SOURCE, format!("highest at 32 KiB, {mode}"))
            .number("", published, highest.last())
            .within(published * 0.75..=published * 1.25)
            .note(format!(
                "of {}; the load is not named in the source: about 9 % of ext3 (sync), 25 % of btrfs (async)",
                highest.point.load.title()
            ));
        if is_sync {
            let is_lasr = |load| matches!(load, Load::Lasr1 | Load::Lasr3);
            let (two, others): (Vec<&Curve>, Vec<&Curve>) =
                curves.iter().partition(|curve| is_lasr(curve.point.load));
            let least = two.iter().map(|curve| curve.last()).fold(f64::INFINITY, f64::min);
            let most = others.iter().map(|curve| curve.last()).fold(0.0, f64::max);
            let shown: Vec<String> = curves
                .iter()
                .map(|curve| {
                    format!("{} {:.1} ({:.1} times)", curve.point.load.title(), curve.last(), curve.rise())
                })
                .collect();
            out.row(SOURCE, FASTEST)
                .says("LASR-1 and LASR-3, which have the smallest writes", least > most)
                .found(shown.join("; "));
        }
    }
    Ok(())
}
