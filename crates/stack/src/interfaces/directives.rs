//! `[directives]`: what the device makes of the stream ids and placement handles that its hosts send.

use super::{Boxed, InterfaceEntry, Lower, Place};
use crate::keys::Result;
use nandscape_core::{
    Info, LogStatus, NamespaceInfo, NamespaceResult, Param, ParamError, Params, Subsystem, keys, words,
};
use nandscape_ftl::page_map::{self, GC_ISOLATION};
use nandscape_namespace::directives::fdp::{
    EventType, Fdp, FdpConfiguration, HANDLES_MAX, Isolation, MediaBytes, PidFormat, Tail,
};
use nandscape_namespace::directives::streams::StreamsConfig;
use nandscape_namespace::directives::{
    ControllerId, DirectedSubsystem, DirectiveCommand, Directives, DirectivesConfig, HintMeaning, HostId,
    Logs, STREAMS,
};

keys! { PARAMS:
    KIND: DirectiveKind = word() or "direct",
        "direct: a log of ftl.streams, no directive; none: a device without directives; streams: a stream \
         id; fdp: 1 + an index in the list of placement identifiers";
    MSL: Option<u16> = int(1, 65_534), "streams: most open streams of the device; absent: ftl.streams";
    WRITE_SIZE: Option<u64> = size(512, 1 << 40),
        "streams: best size of a write (SWS); absent: a page. The granularity (SGS) is \
         ftl.stream_granularity in this unit";
    ENABLED: bool = flag() or "true", "streams: enabled in every namespace at the start";
    ALLOCATE: Option<String> = text(),
        "streams: resources that each namespace holds exclusively from the start, such as 4;2; 0 for none";
    HANDLES: Option<String> = text(),
        "fdp: reclaim unit handles of each namespace, such as 0,1;2,3, numbered as the logs of a reclaim \
         group; absent: all of them in each";
    EVENTS: Option<String> = text(),
        "fdp: events logged from the start: not-fully-written, invalid-pid, media-reallocated, separated by \
         commas";
    TAIL: String = choice(&["unwritten", "media"]) or "unwritten",
        "fdp: the rest of a reclaim unit that the host leaves early counts as unwritten, or as media bytes \
         written";
}

pub const ENTRY: InterfaceEntry = InterfaceEntry {
    info: Info {
        name: "directives",
        summary: "what the hint of a write means: a stream id, a placement handle, or nothing",
        source: "NVMe base specification 2.2, sections 8.1.8 and 8.1.10",
        params: PARAMS,
    },
    place: Place::Flash,
    trial: &["ftl.streams=4", "directives.kind=streams"],
    is_chosen: |params| params.get(KIND) != DirectiveKind::Direct,
    check,
    host_ids,
    // The first entries of a list are also where writes go that name none.
    default_ids: |params, groups| if params.get(KIND) == DirectiveKind::Fdp { groups } else { 0 },
    wrap: |params, below, subsystem| Ok(Box::new(Directing { params, below }.wrap(subsystem)?)),
};

const STREAM_KEYS: [Param; 4] = [MSL.param, WRITE_SIZE.param, ENABLED.param, ALLOCATE.param];
const FDP_KEYS: [Param; 3] = [HANDLES.param, EVENTS.param, TAIL.param];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirectiveKind {
    /// The number of a log of the translation layer.
    Direct,
    None,
    Streams,
    /// An entry of the namespace's list of placement identifiers.
    Fdp,
}

words!(DirectiveKind: Direct = "direct", None = "none", Streams = "streams", Fdp = "fdp");

fn check(params: &Params) -> Result<()> {
    let foreign = match params.get(KIND) {
        DirectiveKind::Streams => FDP_KEYS.to_vec(),
        DirectiveKind::Fdp => STREAM_KEYS.to_vec(),
        DirectiveKind::Direct | DirectiveKind::None => [&STREAM_KEYS[..], &FDP_KEYS].concat(),
    };
    // What is printed has every key that has a default, so the default is no mistake.
    if let Some(key) = foreign.into_iter().find(|key| params.text(*key) != key.default) {
        let expected = format!("no such key with directives.kind = '{}'", params.text(KIND));
        return Err(params.error(key, expected).into());
    }
    if params.get(ALLOCATE).is_some() && !params.get(ENABLED) {
        return Err(params.error(ALLOCATE, "directives.enabled = true beside it").into());
    }
    events(params)?;
    Ok(())
}

fn host_ids(params: &Params, streams: u16, groups: u16) -> u16 {
    match params.get(KIND) {
        DirectiveKind::None => 0,
        DirectiveKind::Direct => streams,
        DirectiveKind::Streams => params.get(MSL).unwrap_or(streams),
        // An id is one more than an index in the list of the first namespace, which is of all logs if none is
        // given.
        DirectiveKind::Fdp => params.get(HANDLES).map_or(streams + 1, |text| {
            text.split(';').next().map_or(0, |list| list.split(',').count() as u16 * groups)
        }),
    }
}

/// Directives in the making: their keys, and what they are put in front of.
struct Directing<'a> {
    params: &'a Params,
    below: &'a Lower<'a>,
}

impl Directing<'_> {
    /// Kind `direct` as if it were `none`.
    fn wrap(&self, subsystem: Boxed) -> Result<DirectedSubsystem> {
        let ((directives, controller), meaning) = match self.params.get(KIND) {
            DirectiveKind::Direct | DirectiveKind::None => {
                let groups = (0..self.endurance_groups()).map(|_| None).collect();
                let empty = Directives::new(self.shape(&*subsystem, None, groups));
                (populated(empty, subsystem.namespaces(), |_| &[]), HintMeaning::Nothing)
            }
            DirectiveKind::Streams => (self.streams(&*subsystem)?, HintMeaning::Stream),
            DirectiveKind::Fdp => (self.fdp(&*subsystem)?, HintMeaning::Placement),
        };
        Ok(DirectedSubsystem::new(subsystem, directives, controller, meaning))
    }

    fn endurance_groups(&self) -> u16 {
        self.below.partition.endurance_groups.iter().map(|group| group + 1).max().unwrap_or(1)
    }

    fn shape(
        &self,
        subsystem: &dyn Subsystem,
        streams: Option<StreamsConfig>,
        groups: Vec<Option<Fdp>>,
    ) -> DirectivesConfig {
        DirectivesConfig {
            namespaces: subsystem.namespaces().len() as u32,
            hosts: 1,
            block_bytes: self.below.geometry.sector_bytes,
            sets: self.below.partition.endurance_groups.clone(),
            streams,
            groups,
        }
    }

    fn streams(&self, subsystem: &dyn Subsystem) -> Result<(Directives, ControllerId), ParamError> {
        let params = self.params;
        let logs =
            (0..subsystem.inspect().sets()).map(|set| subsystem.inspect().logs(set)).min().unwrap_or(1);
        if logs < 2 {
            return Err(params.error(KIND, "a layer with streams below it, such as ftl.streams = 8"));
        }
        if page_map::reclaim_groups(self.below.ftl_params) > 1 {
            return Err(params.error(KIND, "fdp or direct with ftl.reclaim_groups"));
        }
        let msl = params.get(MSL).unwrap_or(logs - 1);
        if msl >= logs {
            let expected = format!("at most {}, the streams of the layer (ftl.streams)", logs - 1);
            return Err(params.error(MSL, expected));
        }
        let (sws, sgs) = self.granularity(subsystem.inspect().layer(0).log_status(1).piece_bytes)?;
        let streams = StreamsConfig { msl, sws, sgs, shared_ids: false, needs_host_id: false };
        let groups = (0..self.endurance_groups()).map(|_| None).collect();
        let namespaces = subsystem.namespaces();
        let (mut directives, controller) =
            populated(Directives::new(self.shape(subsystem, Some(streams), groups)), namespaces, |_| &[]);
        if params.get(ENABLED) {
            for nsid in 1..=namespaces.len() as u32 {
                let enable = DirectiveCommand::enable(nsid, STREAMS, true);
                directives.send(controller, &enable).expect("nothing is allocated yet");
            }
        }
        for (nsid, count) in (1..).zip(self.allocations(namespaces.len())?).filter(|(_, count)| *count > 0) {
            let allocate = DirectiveCommand::allocate(nsid, count);
            let granted = directives.receive(controller, &allocate, &mut []).map_or(0, |reply| reply.dw0);
            if granted < u32::from(count) {
                return Err(
                    params.error(ALLOCATE, format!("at most {msl} resources in all (directives.msl)"))
                );
            }
        }
        Ok((directives, controller))
    }

    /// SWS in logical blocks and SGS in units of it.
    fn granularity(&self, piece_bytes: u64) -> Result<(u32, u16), ParamError> {
        let block = u64::from(self.below.geometry.sector_bytes);
        let page = u64::from(self.below.geometry.page_bytes);
        let size = self.params.get(WRITE_SIZE).unwrap_or(page);
        let expected = || {
            let smallest = piece_bytes.div_ceil(u64::from(u16::MAX)).next_multiple_of(block);
            let text = format!(
                "whole sectors of {block} bytes that divide a piece of {piece_bytes} bytes (ftl.stream_granularity), from {smallest} bytes on"
            );
            self.params.error(WRITE_SIZE, text)
        };
        if !size.is_multiple_of(block) || !piece_bytes.is_multiple_of(size) {
            return Err(expected());
        }
        let blocks = u32::try_from(size / block).map_err(|_| expected())?;
        // A page that is too small a unit for the pieces is only the default: the next power of two that does
        // is taken.
        let mut unit = (blocks, piece_bytes / size);
        while self.params.get(WRITE_SIZE).is_none()
            && unit.1 > u64::from(u16::MAX)
            && unit.1.is_multiple_of(2)
        {
            unit = (unit.0 * 2, unit.1 / 2);
        }
        Ok((unit.0, u16::try_from(unit.1).map_err(|_| expected())?))
    }

    fn allocations(&self, namespaces: usize) -> Result<Vec<u16>, ParamError> {
        let Some(text) = self.params.get(ALLOCATE) else { return Ok(vec![0; namespaces]) };
        let counts: Option<Vec<u16>> = text.split(';').map(|count| count.trim().parse().ok()).collect();
        counts.filter(|counts| counts.len() == namespaces).ok_or_else(|| {
            self.params
                .error(ALLOCATE, format!("a number for each of the {namespaces} namespaces, such as 4;2"))
        })
    }

    fn fdp(&self, subsystem: &dyn Subsystem) -> Result<(Directives, ControllerId), ParamError> {
        let params = self.params;
        let groups = self.endurance_groups();
        if groups != subsystem.inspect().sets() {
            return Err(params.error(KIND, "endurance groups of one set each (sets.endurance_groups)"));
        }
        let namespaces = subsystem.namespaces();
        let reclaim_groups = page_map::reclaim_groups(self.below.ftl_params);
        let handles = subsystem.inspect().logs(0) / reclaim_groups;
        if usize::from(handles) > HANDLES_MAX {
            let expected = format!("at most {} streams below it (ftl.streams)", HANDLES_MAX - 1);
            return Err(params.error(KIND, expected));
        }
        let unit_bytes = subsystem.inspect().layer(0).log_status(0).piece_bytes;
        if unit_bytes == 0 {
            return Err(params.error(KIND, "a layer with reclaim units below it, such as ftl.streams = 7"));
        }
        let group_bits = reclaim_groups.next_power_of_two().trailing_zeros() as u8;
        let configuration = FdpConfiguration {
            format: PidFormat::new(group_bits).expect("at most 128 groups"),
            groups: reclaim_groups,
            handles: self.isolation(handles),
            placement_handles: handles,
            namespaces: namespaces.len() as u32,
            unit_bytes,
            volatile_cache: false,
        };
        let tail = if params.get(TAIL) == "media" { Tail::AsMedia } else { Tail::Unwritten };
        let lists = self.handles(namespaces.len(), handles)?;
        let fdps = (0..groups).map(|_| Some(Fdp::new(vec![configuration.clone()], tail))).collect();
        let mut empty = Directives::new(self.shape(subsystem, None, fdps));
        for endgid in 1..=u32::from(groups) {
            empty.set_fdp_feature(endgid, 1, &Unwritten).expect("there is no namespace yet");
        }
        let (mut directives, controller) = populated(empty, namespaces, |at| &lists[at]);
        let events: Vec<u8> =
            events(params)?.into_iter().map(nandscape_namespace::directives::fdp::EventType::code).collect();
        for (nsid, list) in (1..).zip(&lists) {
            for handle in 0..list.len() as u32 {
                let cdw11 = handle | (events.len() as u32) << 16;
                directives
                    .set_fdp_events_feature(nsid, cdw11, 1, &events)
                    .expect("known events of a handle that is there");
            }
        }
        Ok((directives, controller))
    }

    fn handles(&self, namespaces: usize, handles: u16) -> Result<Vec<Vec<u16>>, ParamError> {
        let Some(text) = self.params.get(HANDLES) else {
            return Ok(vec![(0..handles).collect(); namespaces]);
        };
        let list = |list: &str| {
            let list: Vec<u16> =
                list.split(',').map(|handle| handle.trim().parse().ok()).collect::<Option<_>>()?;
            let is_new = |at: usize| list[at] < handles && !list[..at].contains(&list[at]);
            (0..list.len()).all(is_new).then_some(list)
        };
        let lists: Option<Vec<Vec<u16>>> = text.split(';').map(list).collect();
        lists.filter(|lists| lists.len() == namespaces).ok_or_else(|| {
            let expected = format!(
                "for each of the {namespaces} namespaces handles from 0 to {} (ftl.streams), none of them twice, such as 0,1;2,3",
                handles - 1
            );
            self.params.error(HANDLES, expected)
        })
    }

    /// What the layer does with the survivors of each handle.
    fn isolation(&self, handles: u16) -> Vec<Isolation> {
        let words: Vec<&str> =
            self.below.ftl_params.find(GC_ISOLATION).unwrap_or("persistently").split(',').collect();
        let of = |log: usize| match words.get(log).or(words.first()).map(|word| word.trim()) {
            Some("initially") => Isolation::Initially,
            _ => Isolation::Persistently,
        };
        (0..usize::from(handles)).map(of).collect()
    }
}

/// Logs of a device that nobody has written.
struct Unwritten;

impl Logs for Unwritten {
    fn log_status(&self, _: u16, _: u16) -> LogStatus {
        LogStatus::default()
    }

    fn renew_log(&mut self, _: u16, _: u16) -> NamespaceResult<u64> {
        Ok(0)
    }

    fn media(&self, _: u16) -> MediaBytes {
        MediaBytes::default()
    }
}

/// The namespaces in their order, and the one host there is.
fn populated<'a>(
    mut directives: Directives,
    namespaces: &[NamespaceInfo],
    handles: impl Fn(usize) -> &'a [u16],
) -> (Directives, ControllerId) {
    for (at, namespace) in namespaces.iter().enumerate() {
        let nsid = directives.create_namespace(namespace.set, handles(at)).expect("handles were checked");
        assert_eq!(nsid as usize, at + 1, "namespaces are numbered in their order");
    }
    let controller = directives.connect(HostId(1)).expect("room for one host");
    (directives, controller)
}

fn events(params: &Params) -> Result<Vec<EventType>, ParamError> {
    let Some(text) = params.get(EVENTS).filter(|text| !text.is_empty()) else { return Ok(Vec::new()) };
    text.split(',')
        .map(|name| match name.trim() {
            "not-fully-written" => Ok(EventType::NotFullyWritten),
            "invalid-pid" => Ok(EventType::InvalidPid),
            "media-reallocated" => Ok(EventType::MediaReallocated),
            _ => Err(params
                .error(EVENTS, "not-fully-written, invalid-pid or media-reallocated, separated by commas")),
        })
        .collect()
}
