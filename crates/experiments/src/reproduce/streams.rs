//! Streams: the example figure of [streams-article 1.2], and the rules of thumb of [streams-article 4.1.1],
//! [streams-article 4.1.2] and [ATC21 2.2] on a small device of our own.
//!
//! The sources print no figures for the rules, so their rows are statements; what was measured is in the
//! notes.

use super::{Context, Done, Reproduction, Sabotage, Table, experiment};
use crate::Result;
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, NamespaceError, Op, SimTime};
use nandscape_sim::RunResult;
use nandscape_stack::build::{BuildOptions, build};
use nandscape_stack::{RunError, RunOptions};
use rayon::prelude::*;
use std::fmt::Display;

pub(super) const EXAMPLE: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: "the drive with one log and that with two streams are exchanged",
        turns: Sabotage::EVERY_RULE,
    }),
    ..experiment(
        "streams-example",
        "hot and cold pages in blocks of four: copies in one log and with two streams",
        "[streams-article 1.2]",
        example,
    )
};

pub(super) const RULES: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: "the device has one log whatever is asked for, and the empty device is full",
        turns: Sabotage::EVERY_RULE,
    }),
    ..experiment(
        "streams-rules",
        "when streams pay: empty and full devices, small and large requests, mixed lifetimes",
        "[streams-article 4.1.1], [streams-article 4.1.2], [ATC21 2.2]",
        rules,
    )
};

/// Least fall of a write amplification that counts, and least gain in throughput.
const MARGIN: f64 = 0.02;

/// H1 C1 H2 C2 C3 H3 H4 C4, then H1 to H4 again. Hot pages are 0 to 3 and of stream 1, cold ones 4 to 7 and
/// of stream 2.
const ORDER: [u64; 12] = [0, 4, 1, 5, 6, 2, 3, 7, 0, 1, 2, 3];

fn example(context: &Context<'_>, out: &mut Table) -> Done {
    context.check_stop()?;
    let [one, two] = if context.is_sabotaged { [2, 0] } else { [0, 2] };
    let (one_log, two_streams) = (copies(context, one)?, copies(context, two)?);
    for (name, published, measured) in [
        ("copied on reclaiming blocks 1 and 2, one log", 4.0, one_log.1),
        ("copied, two streams", 0.0, two_streams.1),
        ("reclaimed blocks, one log", 2.0, one_log.0),
    ] {
        out.row("[streams-article 1.2]", name)
            .number("pages", published, measured as f64)
            .within(published..=published);
    }
    Ok(())
}

/// Blocks reclaimed and pages copied by the time nothing more can be gained.
fn copies(context: &Context<'_>, streams: u32) -> Result<(u64, u64)> {
    let keys: [(&str, &dyn Display); 12] = [
        ("ftl.kind", &"page-map"),
        ("device.channels", &1),
        ("device.dies_per_channel", &1),
        ("device.planes_per_die", &1),
        ("device.blocks_per_plane", &24),
        ("device.pages_per_block", &4),
        ("device.page", &"4k"),
        ("ftl.op", &3),
        ("ftl.frontiers", &1),
        ("ftl.streams", &streams),
        ("ftl.background_gc", &true),
        ("ftl.background_watermark", &"100%"),
    ];
    let config = context.config(Some("generic-tlc"), &keys)?;
    let mut subsystem = build(&config, BuildOptions::default())?;
    let failed = |error: NamespaceError| RunError::Failed {
        label: format!("streams-example with {streams} streams"),
        message: error.to_string(),
    };
    let mut at = SimTime::ZERO;
    for lpn in ORDER {
        let hint = Hint(if lpn < 4 { 1 } else { 2 });
        let command = BlockCommand::new(Op::Write, Extent::new(lpn * 4096, 4096), hint);
        let token = subsystem.submit(0, command.into(), Payload::None, at).map_err(failed)?.done;
        at = subsystem.completion(token).unwrap_or(at);
    }
    // Long enough for every block that has anything to give.
    subsystem.idle(at, at + 1_000_000_000).map_err(failed)?;
    let stats = subsystem.inspect().layer(0).stats();
    Ok((stats.gc_runs, stats.gc_moved_pages))
}

/// Who keeps what apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logs {
    /// A device without streams.
    One,
    /// Two streams; victims are chosen among all blocks.
    Two,
    /// Two streams that share the blocks by what they are measured to need.
    Divided,
}

/// One run: 512 MiB of flash, a part of it filled once in order before anything is counted.
fn run(context: &Context<'_>, logs: Logs, spec: &str, filled: &str) -> Result<RunResult> {
    let logs = if context.is_sabotaged { Logs::One } else { logs };
    let (streams, split) = (if logs == Logs::One { 0 } else { 2 }, logs == Logs::Divided);
    let split = if split { "auto" } else { "global" };
    let keys: [(&str, &dyn Display); 13] = [
        ("ftl.kind", &"page-map"),
        ("device.channels", &2),
        ("device.dies_per_channel", &2),
        ("device.planes_per_die", &2),
        ("device.blocks_per_plane", &128),
        ("device.pages_per_block", &32),
        ("device.page", &"16k"),
        ("device.endurance", &"endless"),
        // Kept small beside the blocks, of which every log keeps some open.
        ("ftl.frontiers", &4),
        ("ftl.streams", &streams),
        ("ftl.split", &split),
        ("workload.depth", &32),
        ("workload.precondition", &filled),
    ];
    let config = context.config(Some("generic-tlc"), &keys)?;
    Ok(context.replay(&config, spec, format!("{spec} with {logs:?}"), RunOptions::default())?.result)
}

/// The same load without and with streams.
struct Pair {
    one: RunResult,
    two: RunResult,
}

impl Pair {
    fn new(context: &Context<'_>, spec: &str, filled: &str) -> Result<Self> {
        let (one, two) =
            rayon::join(|| run(context, Logs::One, spec, filled), || run(context, Logs::Two, spec, filled));
        Ok(Self { one: one?, two: two? })
    }

    fn wafs(&self) -> (f64, f64) {
        (self.one.waf.pages.unwrap_or(f64::NAN), self.two.waf.pages.unwrap_or(f64::NAN))
    }

    /// Throughput with streams over that without.
    fn gain(&self) -> f64 {
        self.two.speed.throughput.write_bytes_per_s / self.one.speed.throughput.write_bytes_per_s
    }
}

fn hot_cold(more: &str) -> String {
    format!("hotcold:f=20%,r=80%,hints=true,{more}")
}

fn rules(context: &Context<'_>, out: &mut Table) -> Done {
    let before = if context.is_sabotaged { "fill" } else { "none" };
    let empty = Pair::new(context, &hot_cold("bs=16k,count=12k"), before)?;
    out.row("[streams-article 4.1.1]", "empty device")
        .says(
            "no collection, and throughput with streams within 1 % of that without",
            empty.one.layer.gc.runs + empty.two.layer.gc.runs == 0 && (empty.gain() - 1.0).abs() < 0.01,
        )
        .note(format!(
            "throughput x {:.4}, collections {}",
            empty.gain(),
            empty.one.layer.gc.runs + empty.two.layer.gc.runs
        ));
    let spans = [60, 80, 90, 100];
    let loads: Vec<Pair> = spans
        .par_iter()
        .map(|span| {
            Pair::new(
                context,
                &hot_cold(&format!("bs=16k,count=400k,span={span}%")),
                &format!("fill:{span}%"),
            )
        })
        .collect::<Result<_, _>>()?;
    let wafs: Vec<String> = spans
        .iter()
        .zip(&loads)
        .map(|(span, pair)| format!("{span} %: {:.3} to {:.3}", pair.wafs().0, pair.wafs().1))
        .collect();
    out.row("[streams-article 4.1.1]", "60 to 100 % of the device in use")
        .says(
            "write amplification falls at every load (taken as by 2 % or more)",
            loads.iter().all(|pair| pair.wafs().1 <= (1.0 - MARGIN) * pair.wafs().0),
        )
        .note(wafs.join("; "));
    let full = &loads[loads.len() - 1];
    out.row("[streams-article 4.1.1]", "full device, heavy writes")
        .says("throughput rises (taken as by 2 % or more)", full.gain() >= 1.0 + MARGIN)
        .note(format!("throughput x {:.3}", full.gain()));
    let divided = run(context, Logs::Divided, &hot_cold("bs=16k,count=400k,span=100%"), "fill")?;
    out.row("", "full device, blocks divided among the streams")
        .says(
            "our own: write amplification falls again, by 2 % or more, once each stream has its share of the blocks",
            divided.waf.pages.unwrap_or(f64::NAN) <= (1.0 - MARGIN) * full.wafs().1,
        )
        .note(format!(
            "write amplification {:.3}, {:.3} and {:.3}",
            full.wafs().0,
            full.wafs().1,
            divided.waf.pages.unwrap_or(f64::NAN)
        ));
    let large = Pair::new(context, &hot_cold("bs=4M,count=1600,span=100%"), "fill")?;
    out.row("[streams-article 4.1.2]", "requests of 16 KiB against 4 MiB")
        .says(
            "small random writes gain more than large sequential ones (taken as by 2 points or more)",
            full.gain() >= large.gain() + MARGIN,
        )
        .note(format!("throughput x {:.3} against x {:.3}", full.gain(), large.gain()));
    mixed(context, full, out)
}

/// Streams that nobody tells apart: hints are not given, so that everything is in one.
fn mixed(context: &Context<'_>, full: &Pair, out: &mut Table) -> Done {
    let spec = "hotcold:f=20%,r=80%,bs=16k,count=400k,span=100%";
    let (mixed, plain) = (run(context, Logs::Two, spec, "fill")?, &full.one);
    let (waf, expected) = (mixed.waf.pages.unwrap_or(f64::NAN), full.wafs().0);
    let holds = (waf / expected - 1.0).abs() < 0.01
        && mixed.cost.dram_bytes > plain.cost.dram_bytes
        && mixed.cost.total_blocks == plain.cost.total_blocks;
    let note = format!(
        "write amplification {waf:.3} against {expected:.3}; {} against {} bytes of DRAM; {} spare blocks in both",
        mixed.cost.dram_bytes,
        plain.cost.dram_bytes,
        mixed.cost.total_blocks - mixed.cost.logical_pages.div_ceil(mixed.cost.pages_per_block),
    );
    let published = "write amplification of a device without streams, within 1 %; spare blocks and DRAM are paid all the same";
    out.row("[ATC21 2.2]", "all lifetimes in one stream").says(published, holds).note(note);
    Ok(())
}
