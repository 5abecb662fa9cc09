//! What people ask of zones: reports, and changes of state, one zone or all.

use nandscape_core::command::Payload;
use nandscape_core::zone::{Zone, ZoneAction, ZoneAttributes, ZoneCommand, ZoneFilter};
use nandscape_core::{Command, NamespaceError, NamespaceResult, Reply, SimTime, Subsystem};
use serde::{Deserialize, Serialize};

/// A change of state, or none: a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZoneVerb {
    /// Nothing changes.
    #[default]
    Report,
    /// To explicitly open.
    Open,
    /// To closed.
    Close,
    /// To full.
    Finish,
    /// To empty; what the zone held is lost.
    Reset,
}

/// What is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneAsk {
    /// What is to be done.
    pub verb: ZoneVerb,
    /// The zone; absent: all.
    #[serde(default)]
    pub zone: Option<u32>,
}

/// A zone as it is printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneLine {
    /// Its number.
    pub zone: u32,
    /// Its first byte.
    pub start: u64,
    /// Bytes that can be written.
    pub capacity: u64,
    /// Byte at which it is written next; absent where the state has no such place.
    pub write_pointer: Option<u64>,
    /// Its state.
    pub state: String,
    /// Attributes that are set.
    pub attributes: Vec<String>,
}

const ATTRIBUTES: [(ZoneAttributes, &str); 5] = [
    (ZoneAttributes::FINISHED_BY_DEVICE, "finished-by-device"),
    (ZoneAttributes::FINISH_RECOMMENDED, "finish-recommended"),
    (ZoneAttributes::RESET_RECOMMENDED, "reset-recommended"),
    (ZoneAttributes::RANDOM_AREA, "random-write-area"),
    (ZoneAttributes::EXTENSION, "descriptor-extension"),
];

/// Does what is asked and gives the zones it was about, as they are then. States change at once and are
/// durable; the device may be busy with it for longer.
pub fn act(subsystem: &mut dyn Subsystem, ask: ZoneAsk, at: SimTime) -> NamespaceResult<Vec<ZoneLine>> {
    let info = subsystem.namespaces().first().and_then(|info| info.zones);
    let Some(shape) = info else { return Err(NamespaceError::NotSupported { command: "zone commands" }) };
    if let Some(zone) = ask.zone
        && zone >= shape.zones
    {
        return Err(nandscape_core::zone::ZoneError::OutOfRange.into());
    }
    let start = ask.zone.map(|zone| u64::from(zone) * shape.size);
    let action = match ask.verb {
        ZoneVerb::Report => None,
        ZoneVerb::Open => Some(ZoneAction::Open),
        ZoneVerb::Close => Some(ZoneAction::Close),
        ZoneVerb::Finish => Some(ZoneAction::Finish),
        ZoneVerb::Reset => Some(ZoneAction::Reset),
    };
    let mut submit =
        |command| Ok::<_, NamespaceError>(subsystem.submit(0, command, Payload::None, at)?.reply);
    if let Some(action) = action {
        submit(Command::Zone(ZoneCommand::Manage { action, zone: start }))?;
        submit(Command::FLUSH)?;
    }
    let from = start.unwrap_or(0);
    let room = if ask.zone.is_some() { 1 } else { u64::MAX };
    let report = ZoneCommand::Report { from, filter: ZoneFilter::All, room };
    let Reply::Zones(report) = submit(Command::Zone(report))? else { return Ok(Vec::new()) };
    Ok(report.zones.iter().map(|zone| line(zone, shape.size)).collect())
}

fn line(zone: &Zone, size: u64) -> ZoneLine {
    let set = ATTRIBUTES.iter().filter(|(attribute, _)| zone.attributes.has(*attribute));
    ZoneLine {
        zone: (zone.start / size) as u32,
        start: zone.start,
        capacity: zone.capacity,
        write_pointer: zone.write_pointer,
        state: zone.state.name().to_owned(),
        attributes: set.map(|(_, name)| (*name).to_owned()).collect(),
    }
}
