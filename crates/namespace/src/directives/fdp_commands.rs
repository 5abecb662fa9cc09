//! Commands of flexible data placement: features 1Dh and 1Eh, I/O management, log pages 20h to 23h.

use super::fdp::{
    Fdp, LOG_CONFIGURATIONS, LOG_EVENTS, LOG_STATISTICS, LOG_USAGE, MediaBytes, PlacementHandles, Statistics,
    encode_configurations,
};
use super::state::{Directives, Logs};
use super::wire::transfer;
use nandscape_core::{NvmeResult, NvmeStatus, SimTime};

/// An I/O Management Receive (opcode 12h) or I/O Management Send (opcode 1Dh) command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoManagement {
    /// Namespace id.
    pub nsid: u32,
    /// Management operation (CDW10 bits 7:0): 0 nothing, 1 reclaim unit handle status or update.
    pub operation: u8,
    /// Operation specific (CDW10 bits 31:16): number of placement identifiers of an update, zero-based.
    pub specific: u16,
    /// Dwords of data of a receive, zero-based (CDW11).
    pub numd: u32,
}

impl IoManagement {
    /// Opcode of I/O Management Receive.
    pub const RECEIVE: u8 = 0x12;
    /// Opcode of I/O Management Send.
    pub const SEND: u8 = 0x1d;

    /// From the namespace id and command dwords 10 and 11.
    pub const fn decode(nsid: u32, cdw: [u32; 2]) -> Self {
        Self { nsid, operation: cdw[0] as u8, specific: (cdw[0] >> 16) as u16, numd: cdw[1] }
    }

    /// Command dwords 10 and 11.
    pub const fn encode(&self) -> [u32; 2] {
        [self.operation as u32 | (self.specific as u32) << 16, self.numd]
    }

    /// Status of the reclaim unit handles, into so many bytes (a multiple of 4).
    pub const fn status(nsid: u32, bytes: u32) -> Self {
        Self { nsid, operation: 1, specific: 0, numd: bytes / 4 - 1 }
    }

    /// Update with so many placement identifiers, from 1.
    pub const fn update(nsid: u32, pids: u16) -> Self {
        Self { nsid, operation: 1, specific: pids - 1, numd: 0 }
    }
}

impl Directives {
    fn group(&self, endgid: u16) -> NvmeResult<(u16, &Fdp)> {
        let group = endgid.checked_sub(1).ok_or(NvmeStatus::InvalidField)?;
        Ok((group, self.fdp(group).ok_or(NvmeStatus::InvalidField)?))
    }

    fn group_mut(&mut self, group: u16) -> &mut Fdp {
        self.groups[usize::from(group)].as_mut().expect("looked up before")
    }

    /// What the sets of a group have written and erased.
    pub(super) fn group_media(&self, group: u16, logs: &dyn Logs) -> MediaBytes {
        let sets = self.sets.iter().enumerate().filter(|(_, of)| **of == group);
        sets.map(|(set, _)| logs.media(set as u16)).fold(MediaBytes::default(), |sum, one| MediaBytes {
            written: sum.written + one.written,
            erased: sum.erased + one.erased,
        })
    }

    /// Get Features 1Dh of an endurance group (CDW11 bits 15:0): dword 0 of the completion.
    pub fn fdp_feature(&self, cdw11: u32) -> NvmeResult<u32> {
        Ok(self.group(cdw11 as u16)?.1.feature())
    }

    /// Set Features 1Dh. Refused while the group holds a namespace, so also while streams are enabled in it.
    pub fn set_fdp_feature(&mut self, cdw11: u32, cdw12: u32, logs: &dyn Logs) -> NvmeResult<()> {
        let (group, _) = self.group(cdw11 as u16)?;
        if self.in_group(group).next().is_some() {
            return Err(NvmeStatus::CommandSequence);
        }
        let media = self.group_media(group, logs);
        self.group_mut(group).set_feature(cdw12, media)
    }

    fn placement(&self, nsid: u32) -> NvmeResult<(u16, &Fdp, &PlacementHandles)> {
        let namespace = self.index(nsid)?;
        let active = self.active(namespace);
        let fdp = self.groups[usize::from(active.group)].as_ref().ok_or(NvmeStatus::FdpDisabled)?;
        Ok((active.group, fdp, active.handles.as_ref().ok_or(NvmeStatus::FdpDisabled)?))
    }

    /// Get Features 1Eh: event types of a placement handle (CDW11 bits 15:0), two bytes each, at most CDW11
    /// bits 23:16. Gives the bytes; half their number is dword 0 of the completion.
    pub fn fdp_events_feature(&self, nsid: u32, cdw11: u32) -> NvmeResult<Vec<u8>> {
        let (_, fdp, handles) = self.placement(nsid)?;
        let mut bytes = fdp.encode_event_types(handles, cdw11 as u16)?;
        bytes.truncate(2 * (cdw11 >> 16 & 0xff) as usize);
        Ok(bytes)
    }

    /// Set Features 1Eh: `data` names CDW11 bits 23:16 event types, a byte each; CDW12 bit 0 enables them.
    pub fn set_fdp_events_feature(
        &mut self,
        nsid: u32,
        cdw11: u32,
        cdw12: u32,
        data: &[u8],
    ) -> NvmeResult<()> {
        let (group, _, handles) = self.placement(nsid)?;
        let types = data.get(..(cdw11 >> 16 & 0xff) as usize).ok_or(NvmeStatus::InvalidField)?;
        let handles = handles.clone();
        self.group_mut(group).set_events(&handles, cdw11 as u16, types, cdw12 & 1 == 1)
    }

    /// Get Log Page of an endurance group: the whole page, of which the host takes the part it asked for.
    /// `of_host` is bit 0 of the log specific parameter and chooses the events of page 23h.
    pub fn fdp_log_page(&self, page: u8, endgid: u16, of_host: bool, logs: &dyn Logs) -> NvmeResult<Vec<u8>> {
        let (group, fdp) = self.group(endgid)?;
        match page {
            LOG_CONFIGURATIONS => Ok(encode_configurations(&fdp.configurations)),
            LOG_USAGE => fdp.encode_usage(self.in_group(group).filter_map(|active| active.handles.as_ref())),
            LOG_STATISTICS => Ok(self.fdp_statistics(group, logs)?.encode().to_vec()),
            LOG_EVENTS => fdp.encode_events(of_host),
            _ => Err(NvmeStatus::InvalidField),
        }
    }

    /// Statistics of an endurance group (its index, from 0) where flexible data placement is enabled.
    pub fn fdp_statistics(&self, group: u16, logs: &dyn Logs) -> NvmeResult<Statistics> {
        let fdp = self.fdp(group).ok_or(NvmeStatus::InvalidField)?;
        fdp.enabled()?;
        Ok(fdp.statistics(self.group_media(group, logs)))
    }

    /// I/O Management Receive, into the host's buffer; gives the bytes transferred.
    pub fn io_management_receive(
        &self,
        command: &IoManagement,
        buffer: &mut [u8],
        logs: &dyn Logs,
    ) -> NvmeResult<usize> {
        match command.operation {
            0 => Ok(0),
            1 => {
                let (_, fdp, handles) = self.placement(command.nsid)?;
                let set = self.active(command.nsid - 1).set;
                let block_bytes = u64::from(self.block_bytes);
                let bytes = fdp.encode_status(handles, block_bytes, &|log| logs.log_status(set, log))?;
                Ok(transfer(&bytes, (u64::from(command.numd) + 1) * 4, buffer))
            }
            _ => Err(NvmeStatus::InvalidField),
        }
    }

    /// I/O Management Send: the handles of all listed placement identifiers, or none, move to fresh units.
    pub fn io_management_send(
        &mut self,
        command: &IoManagement,
        data: &[u8],
        logs: &mut dyn Logs,
        at: SimTime,
    ) -> NvmeResult<()> {
        match command.operation {
            0 => Ok(()),
            1 => {
                let (group, fdp, handles) = self.placement(command.nsid)?;
                let count = usize::from(command.specific) + 1;
                let groups = fdp.enabled()?.groups;
                if count > handles.units.len() * usize::from(groups) {
                    return Err(NvmeStatus::InvalidField);
                }
                let data = data.get(..2 * count).ok_or(NvmeStatus::InvalidField)?;
                let pids: Vec<u16> =
                    data.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
                let places = fdp.update_list(handles, &pids)?;
                let namespace = command.nsid - 1;
                let set = self.active(namespace).set;
                for (pid, (reclaim_group, unit, log)) in pids.into_iter().zip(places) {
                    let left = logs.renew_log(set, log).map_err(|_| NvmeStatus::InternalError)?;
                    self.group_mut(group).moved_on(namespace, pid, (reclaim_group, unit), left, at);
                }
                Ok(())
            }
            _ => Err(NvmeStatus::InvalidField),
        }
    }

    /// Placement identifier number `index` (from 0) of a namespace: by handle, and in each handle by group,
    /// as the reclaim unit handle status lists them. One that is not valid where the list is shorter.
    #[inline]
    pub fn listed_pid(&self, namespace: u32, index: u16) -> u16 {
        let active = self.active(namespace);
        let configuration = self.fdp(active.group).and_then(Fdp::active);
        let pid = configuration.and_then(|configuration| {
            let (handle, group) = (index / configuration.groups, index % configuration.groups);
            let is_listed = usize::from(handle) < active.handles.as_ref()?.units.len();
            configuration.format.encode(group, handle).filter(|_| is_listed)
        });
        pid.unwrap_or(u16::MAX)
    }

    /// Whether somebody wants to know of data that garbage collection moves under a namespace.
    #[inline]
    pub(super) fn wants_moves(&self, namespace: u32) -> bool {
        let active = self.active(namespace);
        active.handles.is_some() && self.fdp(active.group).is_some_and(|fdp| fdp.wants_moves)
    }

    /// Garbage collection moved so many bytes.
    pub(super) fn media_moved(&mut self, namespace: u32, bytes: u64, at: SimTime) {
        let (group, block_bytes) = (self.active(namespace).group, u64::from(self.block_bytes));
        self.group_mut(group).media_moved(bytes / block_bytes, at);
    }
}
