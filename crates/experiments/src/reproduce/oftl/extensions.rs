//! Latencies of operations that meet the extension of an update window, and of the others [OFTL fig 9].
//!
//! Each operation begins when the one before is complete, and the report counts extensions: an operation
//! meets one if the count is higher after it. The layer writes the index within the operation that finds the
//! window full, so all of an extension is in the latency of that one.

use super::super::{Context, Done, Reproduction, Sabotage, Table, experiment};
use super::{Load, Point, inputs};
use crate::Result;
use nandscape_core::command::Payload;
use nandscape_core::{Command, NamespaceError, ObjectReports, SimTime, Subsystem};
use nandscape_host::fs::Below;
use nandscape_stack::RunError;
use nandscape_stack::build::{BuildOptions, build};
use nandscape_trace::{OpenOptions, Target};
use rayon::prelude::*;
use std::fmt::Display;

const SOURCE: &str = "[OFTL fig 9]";
const SHARE: &str = "operations that meet an extension";
const BELOW_NS: u64 = 400_000;

pub(in crate::reproduce) const FIG_9: Reproduction = Reproduction {
    sabotage: Some(Sabotage { what: "an update window has 4 blocks instead of 64", turns: &[SHARE] }),
    ..experiment(
        "oftl-fig-9",
        "latencies with and without the extension of an update window",
        "[OFTL fig 9], [OFTL table 2]",
        rows,
    )
};

/// Latencies in nanoseconds, ascending.
struct Measured {
    point: Point,
    with: Vec<u64>,
    without: Vec<u64>,
    extensions: u64,
}

fn measure(context: &Context<'_>, point: Point, window: &dyn Display) -> Result<Measured> {
    context.check_stop()?;
    let config = point.config(context, &[("ftl.window", window)])?;
    let failed = |message: String| RunError::Failed { label: point.name(), message };
    let refused = |error: NamespaceError| failed(error.to_string());
    let mut store = build(&config, BuildOptions::default())?;
    let target = Target { files: Below::Objects, ..Target::NONE };
    let options = OpenOptions { seed: context.seed, ..OpenOptions::default() };
    let count = |store: &dyn Subsystem| {
        let on_flash = store.inspect().objects.and_then(ObjectReports::on_flash);
        on_flash.map_or(0, |on_flash| on_flash.window_extensions)
    };
    let mut at = SimTime::ZERO;
    store.reset_counters(at);
    let (mut with, mut without, mut extensions) = (Vec::new(), Vec::new(), 0);
    for record in nandscape_trace::open(&point.spec(), &options, target)? {
        let token = store.submit(0, Command::from(&record?), Payload::None, at).map_err(refused)?.done;
        let done = store.completion(token).unwrap_or(at).max(at);
        let now = count(&*store);
        let latencies = if now > extensions { &mut with } else { &mut without };
        latencies.push(done.as_ns() - at.as_ns());
        (extensions, at) = (now, done);
        if (with.len() + without.len()).is_multiple_of(1 << 16) {
            context.check_stop()?;
        }
    }
    with.sort_unstable();
    without.sort_unstable();
    Ok(Measured { point, with, without, extensions })
}

/// The latency that so many thousandths are not above, in microseconds; 0 of none.
fn quantile(latencies: &[u64], thousandths: usize) -> f64 {
    let at = (latencies.len() * thousandths).div_ceil(1000).max(1) - 1;
    latencies.get(at).map_or(0.0, |ns| *ns as f64 / 1e3)
}

fn rows(context: &Context<'_>, out: &mut Table) -> Done {
    inputs(out);
    let window = if context.is_sabotaged { 4 } else { 64 };
    let points = Load::ALL.into_iter().flat_map(|load| [true, false].map(|is_sync| (load, is_sync)));
    let points: Vec<Point> = points
        .map(|(load, is_sync)| {
            let point = Point::new(context, load, is_sync);
            // A tenth says the same. What is spoiled is the window alone.
            let divisor = if load == Load::IPhoto { 10 } else { point.divisor };
            Point { change: super::Change::None, divisor, ..point }
        })
        .collect();
    let all: Vec<Measured> =
        points.par_iter().map(|point| measure(context, *point, &window)).collect::<Result<_>>()?;
    for one in &all {
        let operations = (one.with.len() + one.without.len()) as f64;
        out.row("", format!("share that meet one, {}", one.point.name()))
            .figure("%", one.with.len() as f64 / operations * 100.0)
            .note(format!(
                "{} extensions in {operations} operations; latencies in us, median and 99 %: {:.0} and {:.0} with, {:.0} \
                 and {:.0} without",
                one.extensions,
                quantile(&one.with, 500),
                quantile(&one.with, 990),
                quantile(&one.without, 500),
                quantile(&one.without, 990),
            ));
    }
    let operations: usize = all.iter().map(|one| one.with.len() + one.without.len()).sum();
    let met: usize = all.iter().map(|one| one.with.len()).sum();
    out.row(SOURCE, SHARE)
        .number("%", 0.04, met as f64 / operations as f64 * 100.0)
        .within(0.0..=0.1)
        .note("of all loads together, both modes; rule: at most 0.1 %");
    let below: usize = all.iter().flat_map(|one| &one.with).filter(|ns| **ns < BELOW_NS).count();
    out.row(SOURCE, "below 400 us, of those that meet one")
        .number("%", 99.6, below as f64 / met.max(1) as f64 * 100.0)
        .within(99.6..=100.0)
        .note(
            "published: of the operations during an extension, which goes on beside them; here it is in the \
             operation that begins it",
        );
    Ok(())
}
