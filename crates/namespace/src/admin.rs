//! NVMe commands that administer a device, as they come from a queue: what their dwords mean, and who answers
//! which. [`NvmSubsystem`] answers for its sets and endurance groups, [`DirectedSubsystem`] for directives
//! and flexible data placement, and leaves the rest to the subsystem below it.

use crate::directives::{
    BROADCAST, DIRECTIVE_RECEIVE, DIRECTIVE_SEND, DirectedSubsystem, DirectiveCommand, IoManagement, transfer,
};
use crate::sets::{PlmConfig, PlmError};
use crate::subsystem::{NvmSetError, NvmSubsystem};
use nandscape_core::{
    Layered, LogControl, NvmeCommand, NvmeControl, NvmeQueue, NvmeReply, NvmeResult, NvmeStatus, SimTime,
};

/// Opcode of Get Log Page (admin).
pub const GET_LOG_PAGE: u8 = 0x02;
/// Opcode of Identify (admin).
pub const IDENTIFY: u8 = 0x06;
/// Opcode of Set Features (admin).
pub const SET_FEATURES: u8 = 0x09;
/// Opcode of Get Features (admin).
pub const GET_FEATURES: u8 = 0x0a;

fn given(source: &[u8], asked: u64, target: &mut [u8]) -> NvmeReply {
    NvmeReply { dw0: 0, bytes: transfer(source, asked, target) }
}

const fn dw0(dw0: u32) -> NvmeReply {
    NvmeReply { dw0, bytes: 0 }
}

/// What a Get Log Page command asks for.
#[derive(Clone, Copy, Debug)]
struct LogPage {
    page: u8,
    parameter: u8,
    retain: bool,
    /// Log Specific Identifier: a set or an endurance group.
    identifier: u16,
    bytes: u64,
    offset: u64,
}

impl LogPage {
    const fn decode(cdw: &[u32; 6]) -> Self {
        let dwords = (cdw[0] >> 16) as u64 | ((cdw[1] & 0xffff) as u64) << 16;
        Self {
            page: cdw[0] as u8,
            parameter: (cdw[0] >> 8) as u8 & 0x7f,
            retain: cdw[0] >> 15 & 1 == 1,
            identifier: (cdw[1] >> 16) as u16,
            bytes: (dwords + 1) * 4,
            offset: cdw[2] as u64 | (cdw[3] as u64) << 32,
        }
    }

    /// The part of the page that the command asks for.
    fn give(&self, page: &[u8], target: &mut [u8]) -> NvmeResult<NvmeReply> {
        let start = usize::try_from(self.offset).ok().filter(|start| start % 4 == 0);
        let part = start.and_then(|start| page.get(start..)).ok_or(NvmeStatus::InvalidField)?;
        Ok(given(part, self.bytes, target))
    }
}

/// The feature of a Get or Set Features command. Only the present value exists; a loss of power resets it.
const fn feature(command: &NvmeCommand) -> NvmeResult<u8> {
    let (is_set, cdw10) = (command.opcode == SET_FEATURES, command.cdw[0]);
    if is_set && cdw10 >> 31 == 1 {
        return Err(NvmeStatus::FeatureNotSaveable);
    }
    if !is_set && cdw10 >> 8 & 7 != 0 {
        return Err(NvmeStatus::InvalidField);
    }
    Ok(cdw10 as u8)
}

/// The index of what the wire numbers from 1.
fn index(identifier: u32) -> NvmeResult<u16> {
    (identifier as u16).checked_sub(1).ok_or(NvmeStatus::InvalidField)
}

impl From<PlmError> for NvmeStatus {
    fn from(error: PlmError) -> Self {
        match error {
            PlmError::InvalidField(_) => Self::InvalidField,
            PlmError::CommandSequence => Self::CommandSequence,
        }
    }
}

impl From<NvmSetError> for NvmeStatus {
    fn from(error: NvmSetError) -> Self {
        match error {
            NvmSetError::Command(error) => error.into(),
            NvmSetError::Ftl(_) => Self::InternalError,
        }
    }
}

impl NvmSubsystem {
    fn log_page(&mut self, log: &LogPage, data: &mut [u8], at: SimTime) -> NvmeResult<NvmeReply> {
        let page = match log.page {
            0x09 => {
                let group = index(log.identifier.into())?;
                self.endurance_log(group).ok_or(NvmeStatus::InvalidField)?.encode().to_vec()
            }
            0x0a => {
                let set = index(log.identifier.into())?;
                self.predictable_log(set, log.retain, at)?.encode().to_vec()
            }
            0x0b => self.predictable_events(),
            _ => return Err(NvmeStatus::InvalidLogPage),
        };
        log.give(&page, data)
    }

    fn get_feature(&self, command: &NvmeCommand, data: &mut [u8]) -> NvmeResult<NvmeReply> {
        let (feature, set) = (feature(command)?, index(command.cdw[1])?);
        let predictable = || self.predictable(set).ok_or(NvmeStatus::InvalidField);
        Ok(match feature {
            0x12 => dw0(self.read_recovery().level(set).ok_or(NvmeStatus::InvalidField)?.into()),
            0x13 => {
                let (config, is_enabled) = predictable()?.config();
                let bytes = transfer(&config.encode(), u64::MAX, data);
                NvmeReply { dw0: is_enabled.into(), bytes }
            }
            0x14 => dw0(predictable()?.window() as u32),
            _ => return Err(NvmeStatus::InvalidField),
        })
    }

    fn set_feature(&mut self, command: &NvmeCommand, data: &[u8], at: SimTime) -> NvmeResult<NvmeReply> {
        let (feature, set, cdw12) = (feature(command)?, index(command.cdw[1])?, command.cdw[2]);
        match feature {
            0x12 => self.set_read_recovery(set, cdw12 as u8 & 0xf)?,
            0x13 => {
                let config = data.first_chunk().ok_or(NvmeStatus::InvalidField)?;
                self.configure_predictable(set, cdw12 & 1 == 1, PlmConfig::decode(config)?, at)?;
            }
            0x14 => self.select_window(set, cdw12 as u8 & 7, at)?,
            _ => return Err(NvmeStatus::InvalidField),
        }
        Ok(NvmeReply::default())
    }
}

impl NvmeControl for NvmSubsystem {
    /// Identify of sets (CNS 04h) and endurance groups (19h), features 12h to 14h, log pages 09h to 0Bh.
    fn execute(&mut self, command: &NvmeCommand, data: &mut [u8], at: SimTime) -> NvmeResult<NvmeReply> {
        match (command.queue, command.opcode) {
            (NvmeQueue::Admin, GET_LOG_PAGE) => self.log_page(&LogPage::decode(&command.cdw), data, at),
            (NvmeQueue::Admin, GET_FEATURES) => self.get_feature(command, data),
            (NvmeQueue::Admin, SET_FEATURES) => self.set_feature(command, data, at),
            (NvmeQueue::Admin, IDENTIFY) => {
                let from = command.cdw[1] as u16;
                match command.cdw[0] as u8 {
                    0x04 => Ok(given(&self.identify_sets(from), u64::MAX, data)),
                    0x19 => Ok(given(&self.identify_groups(from), u64::MAX, data)),
                    _ => Err(NvmeStatus::InvalidField),
                }
            }
            _ => Err(NvmeStatus::InvalidOpcode),
        }
    }

    fn logs(&mut self) -> Option<&mut dyn LogControl> {
        Some(self)
    }
}

impl NvmeControl for DirectedSubsystem {
    /// Directive Send and Receive, I/O Management Send and Receive, features 1Dh, 1Eh, log pages 20h to 23h.
    fn execute(&mut self, command: &NvmeCommand, data: &mut [u8], at: SimTime) -> NvmeResult<NvmeReply> {
        let &NvmeCommand { queue, opcode, nsid, cdw } = command;
        let controller = self.controller;
        match (queue, opcode) {
            (NvmeQueue::Admin, DIRECTIVE_SEND | DIRECTIVE_RECEIVE) => {
                let directive = DirectiveCommand::decode(nsid, [cdw[0], cdw[1], cdw[2]]);
                self.command(at, |directives, _| match opcode {
                    DIRECTIVE_SEND => directives.send(controller, &directive),
                    _ => directives.receive(controller, &directive, data),
                })
            }
            (NvmeQueue::Io, IoManagement::RECEIVE | IoManagement::SEND) if nsid == BROADCAST => {
                Err(NvmeStatus::InvalidNamespace)
            }
            (NvmeQueue::Io, IoManagement::RECEIVE) => {
                let receive = IoManagement::decode(nsid, [cdw[0], cdw[1]]);
                self.command(at, |directives, logs| {
                    let bytes = directives.io_management_receive(&receive, data, logs)?;
                    Ok(NvmeReply { dw0: 0, bytes })
                })
            }
            (NvmeQueue::Io, IoManagement::SEND) => {
                let send = IoManagement::decode(nsid, [cdw[0], cdw[1]]);
                self.command(at, |directives, logs| directives.io_management_send(&send, data, logs, at))?;
                Ok(NvmeReply::default())
            }
            (NvmeQueue::Admin, GET_FEATURES) if feature(command)? == 0x1d => {
                self.command(at, |directives, _| directives.fdp_feature(cdw[1])).map(dw0)
            }
            (NvmeQueue::Admin, SET_FEATURES) if feature(command)? == 0x1d => {
                self.command(at, |directives, logs| directives.set_fdp_feature(cdw[1], cdw[2], logs))?;
                Ok(NvmeReply::default())
            }
            (NvmeQueue::Admin, GET_FEATURES) if feature(command)? == 0x1e => {
                let types = self.command(at, |directives, _| directives.fdp_events_feature(nsid, cdw[1]))?;
                let bytes = transfer(&types, u64::MAX, data);
                Ok(NvmeReply { dw0: types.len() as u32 / 2, bytes })
            }
            (NvmeQueue::Admin, SET_FEATURES) if feature(command)? == 0x1e => {
                self.command(at, |directives, _| {
                    directives.set_fdp_events_feature(nsid, cdw[1], cdw[2], data)
                })?;
                Ok(NvmeReply::default())
            }
            (NvmeQueue::Admin, GET_LOG_PAGE) if (0x20..=0x23).contains(&(cdw[0] as u8)) => {
                let log = LogPage::decode(&cdw);
                let of_host = log.parameter & 1 == 1;
                let page = self.command(at, |directives, logs| {
                    directives.fdp_log_page(log.page, log.identifier, of_host, logs)
                })?;
                log.give(&page, data)
            }
            _ => {
                let below = self.below_mut().control().nvme.ok_or(NvmeStatus::InvalidOpcode)?;
                below.execute(command, data, at)
            }
        }
    }

    fn logs(&mut self) -> Option<&mut dyn LogControl> {
        None
    }
}
