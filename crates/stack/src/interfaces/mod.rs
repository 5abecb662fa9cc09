//! Host interfaces: what stands between hosts and translation layers, or a cache. Each is a subsystem in
//! front of another one, chosen and set up by a table of its own in the configuration.

mod directives;
pub(crate) mod f2fs;
mod file_system;

use crate::keys::{Result, flat, table_of, take_table};
use crate::partition::Partition;
use nandscape_core::{Geometry, Info, Params, Subsystem};

/// Where an interface stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In front of the flash, whatever it is used for.
    Flash,
    /// In front of what is served, flash or a cache; replays do without. Images do not keep its table.
    Served,
}

/// A registered host interface.
#[derive(Debug)]
pub struct InterfaceEntry {
    /// The name of its table in the configuration, and the keys.
    pub info: Info,
    /// Where it stands.
    pub place: Place,
    /// Dotted keys with values, such as `ftl.streams=4`, with which the suites try it; empty where it takes
    /// files and no blocks.
    pub trial: &'static [&'static str],
    /// Whether the keys ask for it. Other tables are not printed.
    pub(crate) is_chosen: fn(&Params) -> bool,
    /// Checks what the range of a key does not say.
    pub(crate) check: fn(&Params) -> Result<()>,
    /// Stream ids, from 1, that hosts may send with writes over a device of so many, with so many reclaim
    /// groups.
    pub(crate) host_ids: fn(&Params, streams: u16, groups: u16) -> u16,
    /// Of the lowest of these ids those that mean the same as none, by the reclaim groups.
    pub(crate) default_ids: fn(&Params, groups: u16) -> u16,
    /// Puts it in front of a subsystem. Called where the keys ask for it.
    pub(crate) wrap: Wrap,
}

type Boxed = Box<dyn Subsystem + Send>;
type Wrap = fn(&Params, &Lower<'_>, Boxed) -> Result<Boxed>;

/// What an interface stands in front of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lower<'a> {
    pub geometry: &'a Geometry,
    pub partition: &'a Partition,
    pub ftl_params: &'a Params,
    /// Stream ids, from 1, that hosts may send with writes.
    pub host_ids: u16,
}

/// Every host interface. Of those in one place the first is the nearest to the flash.
pub static INTERFACES: &[InterfaceEntry] = &[directives::ENTRY, f2fs::ENTRY, file_system::ENTRY];

/// The tables of all interfaces, checked, in the order of [`INTERFACES`].
#[derive(Clone, Debug)]
pub(crate) struct Interfaces(Vec<Params>);

impl Interfaces {
    pub fn take(typed: &mut toml::Table) -> Result<Self> {
        let check = |entry: &InterfaceEntry| {
            let name = entry.info.name;
            let prefix = format!("{name}.");
            let params =
                Params::check(&entry.info, &prefix, &flat(&prefix, &take_table(typed, name, name)?)?)?;
            (entry.check)(&params)?;
            Ok(params)
        };
        Ok(Self(INTERFACES.iter().map(check).collect::<Result<_>>()?))
    }

    fn chosen(&self, place: Place) -> impl Iterator<Item = (&'static InterfaceEntry, &Params)> {
        let all = INTERFACES.iter().zip(&self.0);
        all.filter(move |(entry, params)| entry.place == place && (entry.is_chosen)(params))
    }

    /// Whether one of them, by its name, was asked for.
    pub fn has(&self, name: &str) -> bool {
        INTERFACES
            .iter()
            .zip(&self.0)
            .any(|(entry, params)| entry.info.name == name && (entry.is_chosen)(params))
    }

    /// Names and tables of the interfaces that were asked for.
    pub fn to_tables(&self, place: Place) -> impl Iterator<Item = (&'static str, toml::Table)> {
        self.chosen(place).map(|(entry, params)| (entry.info.name, table_of(params)))
    }

    /// Of the lowest ids those that mean the same as none.
    pub fn default_ids(&self, groups: u16) -> u16 {
        INTERFACES.iter().zip(&self.0).map(|(entry, params)| (entry.default_ids)(params, groups)).sum()
    }

    /// Stream ids, from 1, that hosts may send with writes over a layer of so many, in so many groups.
    pub fn host_ids(&self, streams: u16, groups: u16) -> u16 {
        let entries = INTERFACES.iter().zip(&self.0);
        entries.fold(streams, |ids, (entry, params)| (entry.host_ids)(params, ids, groups))
    }

    pub fn wrap(&self, place: Place, below: &Lower<'_>, subsystem: Boxed) -> Result<Boxed> {
        self.chosen(place).try_fold(subsystem, |inner, (entry, params)| (entry.wrap)(params, below, inner))
    }
}
