//! Zones over few dies and over many [ATC21 2.2]: what one zone can be written at, and what as many zones as
//! fill all dies can. On the flash of the preset `zn540`, with its zones made smaller.

use super::driver::{Load, run};
use crate::Result;
use crate::reproduce::{Context, Done, Reproduction, Sabotage, Table, experiment};
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime};
use nandscape_stack::{RunError, build_subsystem};
use std::fmt::Display;

const SOURCE: &str = "[ATC21 2.2]";
/// Dies of the device.
const ALL: u32 = 32;
const KIB: u64 = 1024;

pub(in crate::reproduce) const ZONE_SIZE: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: "every zone spans all dies, whatever its size",
        turns: &["one zone is written the faster the more dies it spans"],
    }),
    ..experiment(
        "zone-size",
        "bandwidth of one zone, and of all, by the dies that a zone spans",
        SOURCE,
        rows,
    )
};

/// MiB/s of so many zones over so many dies each, written side by side.
fn bandwidth(context: &Context<'_>, dies: u32, zones: u64) -> Result<f64> {
    context.check_stop()?;
    let spanned = if context.is_sabotaged { ALL } else { dies };
    let capacity = format!("{}MiB", u64::from(spanned) * 32);
    let keys: Vec<(&str, &dyn Display)> = vec![
        ("device.blocks_per_plane", &12),
        ("zone.dies", &spanned),
        ("zone.capacity", &capacity),
        ("zone.size", &"1GiB"),
        ("zone.max_open", &ALL),
        ("zone.max_active", &ALL),
    ];
    let mut subsystem = build_subsystem(&context.config(Some("zn540"), &keys)?)?;
    let shape = subsystem.namespaces()[0].zones.expect("a zoned preset");
    let len = 128 * KIB;
    let load = |number: u64| {
        let next = move |count: u64| {
            let (zone, at) = (count * len / shape.capacity * zones + number, count * len % shape.capacity);
            let extent = Extent::new(zone * shape.size + at, len);
            (zone < u64::from(shape.zones))
                .then(|| (BlockCommand::new(Op::Write, extent, Hint::default()).into(), len))
        };
        Load { depth: 4, gap_ns: 0, next: Box::new(next) }
    };
    let mut loads: Vec<Load<'_>> = (0..zones).map(load).collect();
    let window = (50_000_000, 100_000_000);
    let (seen, _) = run(&mut *subsystem, &mut loads, SimTime::ZERO, window)
        .map_err(|error| RunError::Failed { label: "zone-size".to_owned(), message: error.to_string() })?;
    Ok(seen.iter().map(super::driver::Seen::mib_per_s).sum())
}

fn rows(context: &Context<'_>, out: &mut Table) -> Done {
    let dies = [1, 2, 4, 8, 16, 32];
    let mut alone = Vec::new();
    let mut together = Vec::new();
    for dies in dies {
        alone.push(bandwidth(context, dies, 1)?);
        together.push(bandwidth(context, dies, u64::from(ALL / dies))?);
        let text = if dies == 1 { "1 die".to_owned() } else { format!("{dies} dies") };
        out.row("", format!("one zone of {text}")).figure("MiB/s", alone[alone.len() - 1]).note("");
        out.row("", format!("all dies, zones of {text}"))
            .figure("MiB/s", together[together.len() - 1])
            .note("");
    }
    let listed = |rates: &[f64]| rates.iter().map(|rate| format!("{rate:.0}")).collect::<Vec<_>>().join(", ");
    // Twice the dies: at least 1.5 times as fast, until the limit of the drive is near.
    let limit = alone[alone.len() - 1];
    let grows = alone.windows(2).all(|pair| pair[1] >= 1.5 * pair[0] || pair[1] >= 0.75 * limit);
    let differs = alone[0] <= 0.1 * limit;
    out.row(SOURCE, "one zone is written the faster the more dies it spans")
        .says("yes", grows && differs)
        .found(format!("{} MiB/s for 1 to 32 dies", listed(&alone)));
    let (least, most) = crate::reproduce::extremes(together.iter().copied());
    out.row(SOURCE, "zones over all dies together are written alike, whatever their size")
        .says("within a fifth", least >= 0.8 * most)
        .found(format!("{} MiB/s", listed(&together)));
    Ok(())
}
