//! What people ask of zones: reports, and changes of state, one zone or all.

use nandscape_core::command::Payload;
use nandscape_core::zone::{Zone, ZoneAction, ZoneAttributes, ZoneCommand};
use nandscape_core::{Command, NamespaceError, NamespaceResult, SimTime, Subsystem};
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
    /// Bytes that hold what hosts can still read; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<u64>,
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
/// durable; the device may be busy with it for longer. Changes of zones below a layer of the host are
/// refused.
pub fn act(subsystem: &mut dyn Subsystem, ask: ZoneAsk, at: SimTime) -> NamespaceResult<Vec<ZoneLine>> {
    let refused = NamespaceError::NotSupported { command: "zone management" };
    let is_zoned = subsystem.namespaces().first().map(|info| info.zones.is_some());
    let shape = subsystem.inspect().zones.map(|zones| zones.zone_shape(0));
    let (Some(is_zoned), Some(shape)) = (is_zoned, shape) else { return Err(refused) };
    if let Some(zone) = ask.zone
        && zone >= shape.zones
    {
        return Err(nandscape_core::zone::ZoneError::OutOfRange.into());
    }
    let action = match ask.verb {
        ZoneVerb::Report => None,
        ZoneVerb::Open => Some(ZoneAction::Open),
        ZoneVerb::Close => Some(ZoneAction::Close),
        ZoneVerb::Finish => Some(ZoneAction::Finish),
        ZoneVerb::Reset => Some(ZoneAction::Reset),
    };
    if let Some(action) = action {
        if !is_zoned {
            return Err(refused);
        }
        let zone = ask.zone.map(|zone| u64::from(zone) * shape.size);
        for command in [Command::Zone(ZoneCommand::Manage { action, zone }), Command::FLUSH] {
            subsystem.submit(0, command, Payload::None, at)?;
        }
    }
    let Some(zones) = subsystem.inspect().zones else { return Err(refused) };
    let asked = ask.zone.map_or(0..shape.zones, |zone| zone..zone + 1);
    let line = |zone| line(zone, &zones.zone(0, zone), zones.contents(0, zone).valid_bytes);
    Ok(asked.map(line).collect())
}

/// An error of [`act`], with what there is instead.
pub fn why(subsystem: &dyn Subsystem, ask: ZoneAsk, error: &NamespaceError) -> String {
    let inside = subsystem.inspect();
    let (NamespaceError::Zone(_), Some(zone), Some(zones)) = (error, ask.zone, inside.zones) else {
        return error.to_string();
    };
    let count = zones.zone_shape(0).zones;
    if zone < count {
        format!("{error}: the zone is {}", zones.zone(0, zone).state.name())
    } else {
        format!("{error}: expected a zone below {count}")
    }
}

fn line(number: u32, zone: &Zone, valid: Option<u64>) -> ZoneLine {
    let set = ATTRIBUTES.iter().filter(|(attribute, _)| zone.attributes.has(*attribute));
    ZoneLine {
        zone: number,
        start: zone.start,
        capacity: zone.capacity,
        write_pointer: zone.write_pointer,
        valid,
        state: zone.state.name().to_owned(),
        attributes: set.map(|(_, name)| (*name).to_owned()).collect(),
    }
}
