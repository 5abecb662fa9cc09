//! Every option of fio 3.x, and what becomes of it here.

mod engine;
mod ignored;
mod load;
mod parts;
mod refused;
mod settings;

use crate::error::JobError;
use crate::job::Job;
use crate::sections::Entry;
use crate::values::{Expected, KbBase};
use nandscape_core::registry::nearest;

/// What an option sets beside the job itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// `numjobs`.
    pub copies: u32,
    /// `new_group`.
    pub new_group: bool,
    /// `ioengine` has one request outstanding at a time.
    pub is_synchronous: bool,
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
}

/// Sets one option.
pub(crate) type Set = fn(&mut Job, &mut Extra, Given<'_>) -> Result<(), Expected>;

/// Whether a value means "not used", so that a refused option with it does no harm.
pub(crate) type IsOff = fn(Option<&str>) -> bool;

/// What becomes of an option.
#[derive(Clone, Copy)]
pub(crate) enum Treatment {
    /// It is read.
    Read(Set),
    /// It means nothing in virtual time; the reason is for the notes of a result.
    Ignored(&'static str),
    /// It would change what is measured, and cannot be done.
    Refused(&'static str, IsOff),
}

/// One option.
pub(crate) struct Option_ {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub treatment: Treatment,
}

const fn read(name: &'static str, aliases: &'static [&'static str], set: Set) -> Option_ {
    Option_ { name, aliases, treatment: Treatment::Read(set) }
}

/// All tables, each in the order of fio's own documentation.
fn all() -> impl Iterator<Item = &'static Option_> {
    load::OPTIONS.iter().chain(settings::OPTIONS).chain(ignored::OPTIONS).chain(refused::OPTIONS)
}

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
    /// fio's name.
    pub name: &'static str,
    /// Other names fio has for it.
    pub aliases: &'static [&'static str],
    /// What becomes of it.
    pub kind: Kind,
    /// Why it is ignored or refused; empty for those that are read.
    pub reason: &'static str,
}

/// Every option that is known.
pub fn known() -> impl Iterator<Item = OptionInfo> {
    all().map(|option| {
        let (kind, reason) = match option.treatment {
            Treatment::Read(_) => (Kind::Read, ""),
            Treatment::Ignored(reason) => (Kind::Ignored, reason),
            Treatment::Refused(reason, _) => (Kind::Refused, reason),
        };
        OptionInfo { name: option.name, aliases: option.aliases, kind, reason }
    })
}

fn find(key: &str) -> Option<&'static Option_> {
    all().find(|option| option.name == key || option.aliases.contains(&key))
}

/// Applies an option. Gives its name and the reason if it was ignored.
pub(crate) fn apply(
    entry: &Entry,
    job: &mut Job,
    extra: &mut Extra,
    base: KbBase,
) -> Result<Option<(&'static str, &'static str)>, JobError> {
    let value = || entry.value.clone().unwrap_or_default();
    let Some(option) = find(&entry.key) else {
        return Err(JobError::UnknownOption {
            place: entry.place.clone(),
            key: entry.key.clone(),
            hint: hint(&entry.key),
        });
    };
    match option.treatment {
        Treatment::Read(set) => {
            let given = Given { text: entry.value.as_deref(), base };
            set(job, extra, given).map_err(|expected| JobError::BadValue {
                place: entry.place.clone(),
                key: entry.key.clone(),
                value: value(),
                expected,
            })?;
            Ok(None)
        }
        Treatment::Ignored(reason) => Ok(Some((option.name, reason))),
        Treatment::Refused(_, is_off) if is_off(entry.value.as_deref()) => Ok(None),
        Treatment::Refused(reason, _) => Err(JobError::Refused {
            place: entry.place.clone(),
            key: entry.key.clone(),
            value: value(),
            reason: reason.to_owned(),
        }),
    }
}

/// The known option that is nearest to a key, if one is near.
fn hint(key: &str) -> String {
    let names = all().flat_map(|option| std::iter::once(&option.name).chain(option.aliases));
    match nearest(key, names.copied()) {
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
        for option in all() {
            for name in std::iter::once(&option.name).chain(option.aliases) {
                assert!(seen.insert(*name), "{name} twice");
            }
        }
        assert!(seen.len() > 250, "{}", seen.len());
    }

    #[test]
    fn a_misspelt_option_is_answered_with_a_similar_one() {
        assert_eq!(hint("iodept"), "; did you mean 'iodepth'?");
        assert!(hint("xyzzyxyzzy").contains("docs/jobs.md"));
    }
}
