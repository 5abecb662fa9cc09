//! Every option of fio 3.x, and what becomes of it here.

mod engine;
mod ignored;
mod load;
mod parts;
mod recording;
mod refused;
mod settings;
mod zoning;

use crate::error::JobError;
use crate::job::{Amount, Job};
use crate::sections::Entry;
use crate::values::{Expected, KbBase, flag, integer, time_ns};
use nandscape_core::registry::nearest;
use std::ops::RangeInclusive;

/// What an option sets beside the job itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    pub copies: u32,
    pub new_group: bool,
    /// Whether `ioengine` has one request outstanding at a time, where it is given.
    pub is_synchronous: Option<bool>,
}

/// A value with how its unit letters are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    /// `None` where there was no `=`.
    pub text: Option<&'a str>,
    pub base: KbBase,
}

impl<'a> Given<'a> {
    /// The value, which must be there.
    pub fn text(self) -> Result<&'a str, Expected> {
        self.text.filter(|text| !text.is_empty()).ok_or_else(|| "a value".to_owned())
    }

    pub fn count(self, range: RangeInclusive<u64>) -> Result<u64, Expected> {
        let (min, max) = (range.start(), range.end());
        let expected = || match *max {
            u64::MAX => format!("a number of {min} or more"),
            max => format!("a number from {min} to {max}"),
        };
        let value = integer(self.text()?, self.base).map_err(|_| expected())?;
        if range.contains(&value) { Ok(value) } else { Err(expected()) }
    }

    pub fn count32(self, range: RangeInclusive<u32>) -> Result<u32, Expected> {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        self.count(range).map(|value| value as u32)
    }

    /// One of these names, each with what it stands for.
    pub fn choose<T: Copy>(self, from: &[(&str, T)]) -> Result<T, Expected> {
        let text = self.text()?;
        from.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = from.iter().map(|(name, _)| *name).collect();
            let (last, others) = names.split_last().expect("something to choose from");
            format!("{} or {last}", others.join(", "))
        })
    }
}

type SetOther = fn(&mut Job, &mut Extra, Given<'_>) -> Result<(), Expected>;

#[derive(Clone)]
pub(crate) enum Set {
    Flag(fn(&mut Job) -> &mut bool),
    Amount(fn(&mut Job) -> &mut Amount),
    Count(fn(&mut Job) -> &mut u64, RangeInclusive<u64>),
    /// A time; a number without a unit counts so many nanoseconds.
    Time(fn(&mut Job) -> &mut u64, u64),
    /// The prefix of a log file.
    Log(fn(&mut Job) -> &mut Option<String>),
    Other(SetOther),
}

impl Set {
    fn apply(self, job: &mut Job, extra: &mut Extra, given: Given<'_>) -> Result<(), Expected> {
        match self {
            Self::Flag(place) => *place(job) = flag(given.text)?,
            Self::Amount(place) => *place(job) = parts::amount(given.text()?, given.base)?,
            Self::Count(place, range) => *place(job) = given.count(range)?,
            Self::Time(place, unit_ns) => *place(job) = time_ns(given.text()?, unit_ns)?,
            Self::Log(place) => *place(job) = Some(given.text.unwrap_or_default().to_owned()),
            Self::Other(set) => set(job, extra, given)?,
        }
        Ok(())
    }
}

/// Whether a value means "not used", so that a refused option with it does no harm.
pub(crate) type IsOff = fn(Option<&str>) -> bool;

#[derive(Clone)]
pub(crate) enum Treatment {
    Read(Set),
    /// It means nothing in virtual time; the reason is for the notes of a result.
    Ignored(&'static str),
    /// It would change what is measured, and cannot be done.
    Refused(&'static str, IsOff),
}

/// The names of an option, fio's own first, and how its value is read.
type Read = (&'static str, Set);

const fn read(names: &'static str, set: SetOther) -> Read {
    (names, Set::Other(set))
}

/// All tables, each in the order of fio's own documentation: names with `|` between, what becomes of each.
fn all() -> impl Iterator<Item = (&'static str, Treatment)> {
    let read = load::OPTIONS.iter().chain(zoning::OPTIONS).chain(recording::OPTIONS).chain(settings::OPTIONS);
    let read = read.map(|(names, set)| (*names, Treatment::Read(set.clone())));
    let ignored = ignored::OPTIONS
        .iter()
        .flat_map(|(reason, options)| options.split(' ').map(|names| (names, Treatment::Ignored(reason))));
    let refused = refused::OPTIONS.iter();
    let refused = refused.map(|(names, is_off, reason)| (*names, Treatment::Refused(reason, *is_off)));
    read.chain(ignored).chain(refused)
}

pub(crate) use recording::matters_not;
pub(crate) use zoning::matters_only_with_zones;

/// How an option is treated, for lists and documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Read.
    Read,
    /// Ignored, since it means nothing in virtual time.
    Ignored,
    /// Refused, since it would change what is measured.
    Refused,
}

/// An option as lists and documents show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// fio's name, then others that fio has for it, with `|` between.
    pub names: &'static str,
    /// What becomes of it.
    pub kind: Kind,
    /// Why it is ignored or refused; empty for those that are read.
    pub reason: &'static str,
}

/// Every option that is known.
pub fn known() -> impl Iterator<Item = OptionInfo> {
    all().map(|(names, treatment)| {
        let (kind, reason) = match treatment {
            Treatment::Read(_) => (Kind::Read, ""),
            Treatment::Ignored(reason) => (Kind::Ignored, reason),
            Treatment::Refused(reason, _) => (Kind::Refused, reason),
        };
        OptionInfo { names, kind, reason }
    })
}

/// Applies an option. Gives its name and the reason if it was ignored.
pub(crate) fn apply(
    entry: &Entry,
    job: &mut Job,
    extra: &mut Extra,
    base: KbBase,
) -> Result<Option<(&'static str, &'static str)>, JobError> {
    let (key, value) = (&*entry.key, entry.value.as_deref());
    let error = |message| JobError { place: entry.place.clone(), message };
    let Some((names, treatment)) = all().find(|(names, _)| names.split('|').any(|name| name == key)) else {
        return Err(error(format!("unknown option '{key}'{}", hint(key))));
    };
    let shown = value.unwrap_or_default();
    match treatment {
        Treatment::Read(set) => {
            let set = set.apply(job, extra, Given { text: value, base });
            set.map_err(|expected| error(format!("{key}={shown}: expected {expected}")))?;
            Ok(None)
        }
        Treatment::Ignored(reason) => Ok(names.split('|').next().map(|name| (name, reason))),
        Treatment::Refused(_, is_off) if is_off(value) => Ok(None),
        Treatment::Refused(reason, _) => Err(error(format!("{key}={shown} is not supported: {reason}"))),
    }
}

/// The known option that is nearest to a key, if one is near.
fn hint(key: &str) -> String {
    match nearest(key, all().flat_map(|(names, _)| names.split('|'))) {
        Some(name) => format!("; did you mean '{name}'?"),
        None => "; see docs/jobs.md for those that are known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_stands_for_one_option() {
        let mut seen = BTreeSet::new();
        for name in all().flat_map(|(names, _)| names.split('|')) {
            assert!(seen.insert(name), "{name} twice");
        }
        assert!(seen.len() > 250, "{}", seen.len());
    }

    #[test]
    fn a_misspelt_option_is_answered_with_a_similar_one() {
        assert_eq!(hint("iodept"), "; did you mean 'iodepth'?");
        assert!(hint("xyzzyxyzzy").contains("docs/jobs.md"));
    }
}
