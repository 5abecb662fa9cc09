//! Several admission policies, all of which must agree.

use super::{Admission, Ask, Bypass, Entry, Room, Served, Setup, find};
use crate::key::BlockKey;
use nandscape_core::{Extent, Op, ParamError, Params};
use std::collections::BTreeMap;

/// Policies in the order in which they were named. Each sees every request, whatever those before it said, so
/// that detectors of streams miss nothing; the first refusal is the one that counts. Without members
/// everything passes.
#[derive(Default)]
pub struct Chain {
    members: Vec<Box<dyn Admission + Send>>,
}

impl Chain {
    /// The policies that `names` lists, separated by commas, each with its share of the `typed` parameters.
    /// `prefix` is the table that the keys stand in, for errors.
    ///
    /// # Errors
    ///
    /// An unknown or repeated name; a key that none of the policies has; a value out of range.
    pub fn build(
        names: &str,
        prefix: &str,
        typed: &BTreeMap<String, String>,
        slots: u32,
        seed: u64,
    ) -> Result<Self, ParamError> {
        let entries = entries(names, prefix)?;
        if let Some(key) = typed.keys().find(|key| !entries.iter().any(|entry| entry.info.has(key))) {
            let known = entries.iter().flat_map(|entry| entry.info.params).map(|param| param.name);
            return Err(ParamError::UnknownKey {
                key: format!("{prefix}{key}"),
                owner: format!("admission {names}"),
                known: known.collect::<Vec<_>>().join(", "),
            });
        }
        let mut members = Vec::new();
        for entry in entries {
            let params = Params::check(&entry.info, prefix, &entry.info.take(&mut typed.clone()))?;
            // The one that lets everything pass need not be asked.
            if entry.info.name != "all" {
                members.push((entry.build)(&Setup { slots, seed, params: &params })?);
            }
        }
        Ok(Self { members })
    }

    /// Whether everything passes.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Asks every member, and gives the first refusal.
    fn ask(
        &mut self,
        mut each: impl FnMut(&mut (dyn Admission + Send)) -> Result<(), Bypass>,
    ) -> Result<(), Bypass> {
        let mut answer = Ok(());
        for member in &mut self.members {
            let said = each(member.as_mut());
            answer = answer.and(said);
        }
        answer
    }
}

fn entries(names: &str, prefix: &str) -> Result<Vec<&'static Entry>, ParamError> {
    let mut entries: Vec<&'static Entry> = Vec::new();
    for name in names.split(',').map(str::trim) {
        let entry = find(name)?;
        if entries.iter().any(|seen| seen.info.name == name) {
            let expected = format!("every name once, and '{name}' stands there twice");
            return Err(ParamError::bad(format!("{prefix}admission"), names, expected));
        }
        entries.push(entry);
    }
    Ok(entries)
}

impl Admission for Chain {
    fn request(&mut self, ask: &Ask) -> Result<(), Bypass> {
        self.ask(|member| member.request(ask))
    }

    fn block(&mut self, key: BlockKey, op: Op, room: Room) -> Result<(), Bypass> {
        self.ask(|member| member.block(key, op, room))
    }

    fn confirm(&mut self, ask: &Ask) -> Result<(), Bypass> {
        self.ask(|member| member.confirm(ask))
    }

    fn retract(&mut self, out: &mut Vec<(u16, Extent)>) {
        for member in &mut self.members {
            member.retract(out);
        }
    }

    fn watches_device(&self) -> bool {
        self.members.iter().any(|member| member.watches_device())
    }

    fn served(&mut self, served: &Served) {
        for member in &mut self.members {
            member.served(served);
        }
    }

    fn counts(&self, out: &mut Vec<(&'static str, u64)>) {
        for member in &self.members {
            member.counts(out);
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.members.iter().map(|member| member.memory_bytes()).sum()
    }
}
