//! `[host]`: software between the workload and the device, which merges requests and chooses streams.

use crate::error::RunError;
use crate::keys::{ConfigError, Result, flat, table_of};
use nandscape_core::{
    Info, IoRecord, Origin, ParamError, Params, Subsystem, TraceError, TraceReader, WorkloadInfo, keys,
};
use nandscape_host::merge::MergeOptions;
use nandscape_host::policy::{self, PolicyEntry};
use nandscape_host::{Assigned, Live, Merged, POLICIES, PolicySetup};
use nandscape_sim::result::{PolicyResult, PolicyStream};
use nandscape_trace::BoxReader;

keys! { PARAMS:
    POLICY: Option<String> = text(),
        "stream policy; see list policies; absent: a write keeps the stream that the workload names";
    STREAMS: Option<u16> = int(0, 65_535), "streams that the policy may use; absent: as many as the device has";
    PLUG: u32 = int(0, 4096) or "0",
        "requests that wait to be merged with neighbours of the same hint; 0: no merging";
    PLUG_SPAN: u64 = time() or "1ms", "requests further apart in time are not merged";
    MERGE_BYTES: u64 = size(4096, 1 << 30) or "1MiB", "largest request that merging makes";
}

/// Keys of `[host]` that every policy has; the others belong to the policy and are listed by `list policies
/// --detail`.
pub static HOST: Info = Info {
    name: "host",
    summary: "who chooses the stream of a write, and merging of requests before that",
    source: "[streams-article 1.3], [streams-article 2], [streams-article 4.2]",
    params: PARAMS,
};

/// A checked `[host]` table.
#[derive(Clone, Debug)]
pub struct HostConfig {
    common: Params,
    entry: &'static PolicyEntry,
    params: Params,
}

impl HostConfig {
    /// Checks the table: common keys first, the rest against the policy.
    pub(crate) fn check(table: &toml::Table) -> Result<Self> {
        let mut own = flat("host.", table)?;
        let common = Params::check(&HOST, "host.", &HOST.take(&mut own))?;
        let entry = policy::find(common.get(POLICY).unwrap_or("explicit"))?;
        let params = Params::check(&entry.info, "host.", &own).map_err(|error| match error {
            ParamError::UnknownKey { key, owner, known } => {
                let all = HOST.known();
                let known = if known.is_empty() { all } else { format!("{all}, {known}") };
                ParamError::UnknownKey { key, owner: format!("policy {owner}"), known }
            }
            error => error,
        })?;
        let host = Self { common, entry, params };
        // Parameters that are wrong whatever the device should be refused now and not after a long
        // preconditioning.
        let streams = host.common.get(STREAMS).unwrap_or(u16::MAX);
        let setup = PolicySetup { streams, id_offset: 0, capacity_bytes: 1 << 30, page_bytes: 4096 };
        (entry.build)(&host.params, &setup)?;
        Ok(host)
    }

    /// Whether requests reach the device as the workload has them.
    pub fn is_plain(&self) -> bool {
        let is_untyped = self.common.get(POLICY).is_none();
        let is_by_hint = self.params.find(policy::BY).is_none_or(|by| by == "hint");
        is_untyped && is_by_hint && self.common.get(PLUG) == 0
    }

    /// Whether the policy reads the whole workload before the first request.
    pub(crate) const fn needs_future(&self) -> bool {
        self.entry.needs_future
    }

    /// Name of the policy.
    pub fn policy(&self) -> &'static str {
        self.entry.info.name
    }

    pub(crate) fn to_table(&self) -> Option<toml::Table> {
        if self.is_plain() {
            return None;
        }
        let mut table = table_of(&self.common);
        table.extend(table_of(&self.params));
        Some(table)
    }

    /// What the policy may use of a device. Ids that come with the workload stay as they are.
    fn setup(&self, device: PolicySetup) -> PolicySetup {
        let has_ids = self.params.find(policy::BY).is_some_and(|by| by == "hint");
        let id_offset = if has_ids { 0 } else { device.id_offset };
        let streams = self.common.get(STREAMS).unwrap_or(device.streams.saturating_sub(id_offset));
        PolicySetup { streams, id_offset, ..device }
    }

    /// Puts merging and policy around a workload. `device` is what the policy would be set up with if
    /// `host.streams` did not say otherwise. `open` may be called twice: a policy that needs to know the
    /// future reads it all first.
    pub fn wrap(
        &self,
        device: PolicySetup,
        open: &mut dyn FnMut() -> Result<BoxReader, TraceError>,
    ) -> Result<HostReader, RunError> {
        if self.is_plain() {
            return Ok(HostReader::Plain(open()?));
        }
        let setup = self.setup(device);
        // Merging alone: a device without streams has nothing to name.
        let is_merging_alone = self.common.get(POLICY).is_none() && setup.streams == 0;
        let entry =
            if is_merging_alone { policy::find("none").map_err(ConfigError::from)? } else { self.entry };
        let mut policy = (entry.build)(&self.params, &setup).map_err(ConfigError::from)?;
        let merge = MergeOptions {
            plug: self.common.get(PLUG),
            largest_bytes: self.common.get(MERGE_BYTES),
            span_ns: self.common.get(PLUG_SPAN),
        };
        if entry.needs_future {
            for record in Merged::new(open()?, merge) {
                policy.foresee(&record?);
            }
            policy.foreseen();
        }
        let name = entry.info.name;
        if merge.plug == 0 {
            return Ok(HostReader::Chosen { name, reader: Assigned::new(open()?, policy, &setup) });
        }
        let merged = Merged::new(open()?, merge);
        Ok(HostReader::Merged { name, reader: Box::new(Assigned::new(merged, policy, &setup)) })
    }

    /// Puts the policy, if one is named, in front of a served device, for each namespace one of its own.
    /// Requests are served as they come: nothing is merged.
    ///
    /// Errors: a policy that needs to know the future; parameters that do not fit the streams of the device.
    pub(crate) fn in_front(
        &self,
        device: PolicySetup,
        subsystem: Box<dyn Subsystem + Send>,
    ) -> Result<Box<dyn Subsystem + Send>> {
        if self.common.get(POLICY).is_none() {
            return Ok(subsystem);
        }
        if self.entry.needs_future {
            let expected =
                "a policy that does not need the whole workload, since clients of a served device send it";
            return Err(self.common.error(POLICY.param, expected).into());
        }
        let setup = self.setup(device);
        let build =
            |capacity_bytes| (self.entry.build)(&self.params, &PolicySetup { capacity_bytes, ..setup });
        let capacities = subsystem.namespaces().iter().map(|namespace| namespace.capacity_bytes);
        let policies = capacities.map(build).collect::<Result<Vec<_>, ParamError>>()?;
        Ok(Box::new(Live::new(subsystem, policies, setup)))
    }
}

/// A workload as the host's software passes it on.
pub enum HostReader {
    /// As it is.
    Plain(BoxReader),
    /// With streams.
    Chosen {
        /// Policy.
        name: &'static str,
        /// The requests.
        reader: Assigned<BoxReader>,
    },
    /// Merged, with streams.
    Merged {
        /// Policy.
        name: &'static str,
        /// The requests.
        reader: Box<Assigned<Merged<BoxReader>>>,
    },
}

impl HostReader {
    /// What the policy did, and what a user should know of it.
    pub fn outcome(&self) -> Option<(PolicyResult, Vec<String>)> {
        let (name, counts, warnings, merges) = match self {
            Self::Plain(_) => return None,
            Self::Chosen { name, reader } => (name, reader.counts(), reader.warnings(), 0),
            Self::Merged { name, reader } => {
                (name, reader.counts(), reader.warnings(), reader.inner().merges())
            }
        };
        let streams = counts
            .iter()
            .enumerate()
            .filter(|(_, counts)| counts.writes > 0)
            .map(|(stream, counts)| PolicyStream {
                stream: stream as u16,
                writes: counts.writes,
                bytes: counts.bytes,
                sectors: counts.sectors(),
            })
            .collect();
        let mut notes: Vec<String> =
            warnings.into_iter().map(|warning| format!("policy {name}: {warning}")).collect();
        let available = (counts.len() - 1) as u16;
        if available == 0 && *name != "none" {
            notes
                .push(format!("policy {name}: the device has no streams (ftl.streams), so no write has one"));
        }
        Some((PolicyResult { name: (*name).to_owned(), available, merges, streams }, notes))
    }
}

impl Iterator for HostReader {
    type Item = Result<IoRecord, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Plain(reader) => reader.next(),
            Self::Chosen { reader, .. } => reader.next(),
            Self::Merged { reader, .. } => reader.next(),
        }
    }
}

impl TraceReader for HostReader {
    fn info(&self) -> WorkloadInfo {
        match self {
            Self::Plain(reader) => reader.info(),
            Self::Chosen { reader, .. } => reader.info(),
            Self::Merged { reader, .. } => reader.info(),
        }
    }

    fn origin(&self) -> Origin<'_> {
        match self {
            Self::Plain(reader) => reader.origin(),
            Self::Chosen { reader, .. } => reader.origin(),
            Self::Merged { reader, .. } => reader.origin(),
        }
    }
}

/// What every policy says about itself.
pub fn infos() -> Vec<Info> {
    POLICIES.iter().map(|entry| entry.info).collect()
}
