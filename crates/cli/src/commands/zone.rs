//! `nandscape zone`: zones of an image, or of a running server.

use super::control::connect;
use crate::args::{ZoneArgs, ZoneVerbArg};
use crate::console::{Console, Failure, Result, Screen};
use nandscape_core::units::format_bytes;
use nandscape_core::{SimTime, Subsystem};
use nandscape_engine::control::{Ask, ClientError};
use nandscape_engine::zones::{ZoneAsk, ZoneLine, ZoneVerb, act, why};
use nandscape_stack::{Storage, Typed, build_stored, storing};
use std::fmt::Write;
use std::path::Path;

pub fn run(args: &ZoneArgs, console: Console) -> Result<()> {
    let verb = match args.verb {
        ZoneVerbArg::Report => ZoneVerb::Report,
        ZoneVerbArg::Open => ZoneVerb::Open,
        ZoneVerbArg::Close => ZoneVerb::Close,
        ZoneVerbArg::Finish => ZoneVerb::Finish,
        ZoneVerbArg::Reset => ZoneVerb::Reset,
    };
    if verb != ZoneVerb::Report && args.zone.is_none() && !args.all {
        let verb = format!("{verb:?}").to_lowercase();
        return Err(Failure::usage(format!("{verb}: expected --zone N, or --all for every zone")));
    }
    let ask = ZoneAsk { verb, zone: args.zone };
    let lines = match &args.image {
        None => {
            let mut client = connect(args.socket.as_deref(), console)?;
            let answer = client.ask(&Ask::Zone { ask }).map_err(|error| match error {
                ClientError::Refused { .. } => Failure::run(format!("{}{error}", named(args.zone))),
                error => error.into(),
            })?;
            serde_json::from_value(answer.unwrap_or_default()).map_err(Failure::run)?
        }
        Some(path) => {
            if !path.exists() {
                return Err(Failure::run(format!("{}: no such image", path.display())));
            }
            let lines = in_image(path, ask)?;
            if verb == ZoneVerb::Open {
                console.note(&format!("{}: whoever opens it next finds these zones closed", path.display()));
            }
            lines
        }
    };
    if args.json { console.json(&lines) } else { console.result(&table(&lines, &Screen::of_stdout())) }
}

/// Does what is asked to the zones of an image, which stays as it is if it has none that hosts manage.
fn in_image(path: &Path, ask: ZoneAsk) -> Result<Vec<ZoneLine>> {
    let read_only = Storage::ReadOnlyImage(path.to_owned());
    let config = storing::resolve(&Typed::new(), &read_only)?;
    let do_it = |subsystem: &mut dyn Subsystem, ask| {
        let done = act(subsystem, ask, SimTime::ZERO);
        done.map_err(|error| {
            let why = why(subsystem, ask, &error);
            Failure::run(format!("{}: {}{why}", path.display(), named(ask.zone)))
        })
    };
    let mut stored = build_stored(&config, &read_only)?;
    let is_zoned = stored.subsystem.namespaces().iter().any(|info| info.zones.is_some());
    let report = ZoneAsk { verb: ZoneVerb::Report, ..ask };
    if ask.verb == ZoneVerb::Report || !is_zoned {
        return do_it(&mut *stored.subsystem, ask);
    }
    // A zone that is not there is refused before the image is opened for a change, which writes to it.
    do_it(&mut *stored.subsystem, report)?;
    drop(stored);
    let mut stored = build_stored(&config, &Storage::Image(path.to_owned()))?;
    let done = do_it(&mut *stored.subsystem, ask);
    let at = stored.subsystem.idle_from();
    let closed = stored.subsystem.shutdown(at).map_err(Failure::run);
    let lines = done?;
    closed?;
    Ok(lines)
}

/// The zone that an error is about.
fn named(zone: Option<u32>) -> String {
    zone.map_or_else(String::new, |zone| format!("zone {zone}: "))
}

/// From so many columns on a terminal shows shares as bars, too.
const WIDE: usize = 110;
const BAR: usize = 20;

fn table(lines: &[ZoneLine], screen: &Screen) -> String {
    let knows_valid = lines.iter().any(|line| line.valid.is_some());
    let has_bars = screen.is_live && screen.width >= WIDE;
    let valid_head = if knows_valid { format!("{:>10}  ", "valid") } else { String::new() };
    let bar_head = if has_bars { format!("{:<BAR$}  ", "") } else { String::new() };
    let mut text = format!(
        "{:>6}  {:>14}  {:>10}  {:>10}  {valid_head}{bar_head}{:<16} attributes\n",
        "zone", "start", "capacity", "written", "state"
    );
    let share =
        |bytes: u64, line: &ZoneLine| format!("{:.0} %", bytes as f64 * 100.0 / line.capacity.max(1) as f64);
    for line in lines {
        let written = line.write_pointer.map_or_else(|| "-".to_owned(), |at| format_bytes(at - line.start));
        let _ = write!(
            text,
            "{:>6}  {:>14}  {:>10}  {written:>10}  ",
            line.zone,
            line.start,
            format_bytes(line.capacity)
        );
        if knows_valid {
            let valid = line.valid.map_or_else(|| "-".to_owned(), |valid| share(valid, line));
            let _ = write!(text, "{valid:>10}  ");
        }
        if has_bars {
            let _ = write!(text, "{}  ", bar(line, screen));
        }
        let _ = writeln!(text, "{:<16} {}", line.state, line.attributes.join(","));
    }
    text
}

/// What is valid, then what else is written, then the rest.
fn bar(line: &ZoneLine, screen: &Screen) -> String {
    let is_full = line.state == "full";
    let written = line.write_pointer.map_or(if is_full { line.capacity } else { 0 }, |at| at - line.start);
    let cells = |bytes: u64| (bytes as f64 * BAR as f64 / line.capacity.max(1) as f64).round() as usize;
    let (written, valid) = (cells(written), cells(line.valid.unwrap_or(written)));
    let shade = |place: usize| match place {
        place if place < valid => screen.shade(100),
        place if place < written => screen.shade(50),
        _ => screen.shade(1),
    };
    (0..BAR).map(shade).collect()
}
