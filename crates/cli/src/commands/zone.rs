//! `nandscape zone`: zones of an image, or of a running server.

use super::control::connect;
use crate::args::{ZoneArgs, ZoneVerbArg};
use crate::console::{Console, Failure, Result};
use nandscape_core::SimTime;
use nandscape_core::units::format_bytes;
use nandscape_engine::control::Ask;
use nandscape_engine::zones::{ZoneAsk, ZoneLine, ZoneVerb, act};
use nandscape_stack::{Storage, Typed, build_stored, storing};
use std::fmt::Write;

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
            let answer = connect(args.socket.as_deref(), console)?.ask(&Ask::Zone { ask })?;
            serde_json::from_value(answer.unwrap_or_default()).map_err(Failure::run)?
        }
        Some(path) => {
            if !path.exists() {
                return Err(Failure::run(format!("{}: no such image", path.display())));
            }
            let storage = match verb {
                ZoneVerb::Report => Storage::ReadOnlyImage(path.clone()),
                _ => Storage::Image(path.clone()),
            };
            let config = storing::resolve(&Typed::new(), &storage)?;
            let mut stored = build_stored(&config, &storage)?;
            let lines = act(&mut *stored.subsystem, ask, SimTime::ZERO)
                .map_err(|error| Failure::run(format!("{}: {error}", path.display())))?;
            if verb != ZoneVerb::Report {
                let at = stored.subsystem.idle_from();
                stored.subsystem.shutdown(at).map_err(Failure::run)?;
            }
            lines
        }
    };
    if args.json { console.json(&lines) } else { console.result(&table(&lines)) }
}

fn table(lines: &[ZoneLine]) -> String {
    let mut text = format!(
        "{:>6}  {:>14}  {:>10}  {:>10}  {:<16} attributes\n",
        "zone", "start", "capacity", "written", "state"
    );
    for line in lines {
        let written = line.write_pointer.map_or_else(|| "-".to_owned(), |at| format_bytes(at - line.start));
        let _ = writeln!(
            text,
            "{:>6}  {:>14}  {:>10}  {written:>10}  {:<16} {}",
            line.zone,
            line.start,
            format_bytes(line.capacity),
            line.state,
            line.attributes.join(",")
        );
    }
    text
}
