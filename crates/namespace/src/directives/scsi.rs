//! SCSI stream commands (T10 SBC-4 STREAM CONTROL, GET STREAM STATUS, WRITE STREAM) on the Streams directive.
//!
//! A SCSI host opens and closes streams, and the device assigns the ids. The adapter allocates its stream
//! resources exclusively, so that an open stream is never released for another one, and assigns the lowest id
//! that is not open. A stream that is open here takes its resource with the first write.

use super::state::{ControllerId, Directives};
use super::wire::{DirectiveCommand, STREAMS, WriteDirective, transfer};
use nandscape_core::{NvmeResult, NvmeStatus};

/// Operation code of the service actions below.
pub const SERVICE_ACTION_IN_16: u8 = 0x9e;
/// Service action of STREAM CONTROL.
pub const STREAM_CONTROL: u8 = 0x14;
/// Service action of GET STREAM STATUS.
pub const GET_STREAM_STATUS: u8 = 0x16;
/// Operation code of WRITE STREAM (16).
pub const WRITE_STREAM_16: u8 = 0x9a;

/// Why a SCSI command is refused: sense key, additional sense code and its qualifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sense key {key:x}h, additional sense {asc:02x}h/{ascq:02x}h")]
pub struct Sense {
    /// Sense key; 5 is ILLEGAL REQUEST.
    pub key: u8,
    /// Additional sense code.
    pub asc: u8,
    /// Qualifier.
    pub ascq: u8,
}

impl Sense {
    /// INVALID COMMAND OPERATION CODE.
    pub const INVALID_OPCODE: Self = Self { key: 5, asc: 0x20, ascq: 0 };
    /// INVALID FIELD IN CDB: also a stream id that is not open.
    pub const INVALID_FIELD: Self = Self { key: 5, asc: 0x24, ascq: 0 };
    /// INSUFFICIENT RESOURCES: as many streams are open as there can be.
    pub const NO_RESOURCES: Self = Self { key: 5, asc: 0x55, ascq: 0x03 };
}

/// A WRITE STREAM (16) command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteStream {
    /// First logical block.
    pub lba: u64,
    /// Logical blocks.
    pub blocks: u16,
    /// The NVMe directive that the write carries.
    pub directive: WriteDirective,
}

/// SCSI streams of one namespace.
#[derive(Debug)]
pub struct ScsiStreams {
    controller: ControllerId,
    nsid: u32,
    resources: u16,
    /// Open ids, ascending.
    open: Vec<u16>,
}

impl ScsiStreams {
    /// Enables streams for a controller on a namespace and allocates up to so many of them. Fails as the NVMe
    /// commands do, and with [`NvmeStatus::StreamResources`] if none could be had.
    pub fn attach(
        directives: &mut Directives,
        controller: ControllerId,
        nsid: u32,
        streams: u16,
    ) -> NvmeResult<Self> {
        directives.send(controller, &DirectiveCommand::enable(nsid, STREAMS, true))?;
        let granted =
            directives.receive(controller, &DirectiveCommand::allocate(nsid, streams), &mut [])?.dw0 as u16;
        if granted == 0 {
            directives.send(controller, &DirectiveCommand::enable(nsid, STREAMS, false))?;
            return Err(NvmeStatus::StreamResources);
        }
        Ok(Self { controller, nsid, resources: granted, open: Vec::with_capacity(usize::from(granted)) })
    }

    /// Executes STREAM CONTROL or GET STREAM STATUS; gives the bytes written to the data-in buffer.
    pub fn command(
        &mut self,
        directives: &mut Directives,
        cdb: &[u8; 16],
        buffer: &mut [u8],
    ) -> Result<usize, Sense> {
        let id = u16::from_be_bytes([cdb[4], cdb[5]]);
        let asked = u64::from(u32::from_be_bytes([cdb[10], cdb[11], cdb[12], cdb[13]]));
        match (cdb[0], cdb[1] & 0x1f) {
            (SERVICE_ACTION_IN_16, STREAM_CONTROL) => match cdb[1] >> 5 & 3 {
                1 => {
                    let id = self.open_stream()?;
                    let mut out = [0; 8];
                    out[0] = 7;
                    out[4..6].copy_from_slice(&id.to_be_bytes());
                    Ok(transfer(&out, asked, buffer))
                }
                2 => self.close_stream(directives, id).map(|()| 0),
                _ => Err(Sense::INVALID_FIELD),
            },
            (SERVICE_ACTION_IN_16, GET_STREAM_STATUS) => Ok(transfer(&self.encode_status(id), asked, buffer)),
            _ => Err(Sense::INVALID_OPCODE),
        }
    }

    /// Takes WRITE STREAM (16) apart; the stream must be open.
    pub fn write(&self, cdb: &[u8; 16]) -> Result<WriteStream, Sense> {
        if cdb[0] != WRITE_STREAM_16 {
            return Err(Sense::INVALID_OPCODE);
        }
        let id = u16::from_be_bytes([cdb[10], cdb[11]]);
        self.open.binary_search(&id).map_err(|_| Sense::INVALID_FIELD)?;
        Ok(WriteStream {
            lba: u64::from_be_bytes([cdb[2], cdb[3], cdb[4], cdb[5], cdb[6], cdb[7], cdb[8], cdb[9]]),
            blocks: u16::from_be_bytes([cdb[12], cdb[13]]),
            directive: WriteDirective::stream(id),
        })
    }

    fn open_stream(&mut self) -> Result<u16, Sense> {
        if self.open.len() >= usize::from(self.resources) {
            return Err(Sense::NO_RESOURCES);
        }
        let taken = self.open.iter().zip(1u16..).take_while(|(id, expected)| *id == expected).count();
        let id = taken as u16 + 1;
        self.open.insert(taken, id);
        Ok(id)
    }

    fn close_stream(&mut self, directives: &mut Directives, id: u16) -> Result<(), Sense> {
        let at = self.open.binary_search(&id).map_err(|_| Sense::INVALID_FIELD)?;
        self.open.remove(at);
        let release = DirectiveCommand::release_id(self.nsid, id);
        directives.send(self.controller, &release).map(|_| ()).map_err(|_| Sense::INVALID_FIELD)
    }

    fn encode_status(&self, first: u16) -> Vec<u8> {
        let listed = &self.open[self.open.partition_point(|id| *id < first)..];
        let mut out = vec![0; 8 + 8 * listed.len()];
        let following = out.len() as u32 - 4;
        out[0..4].copy_from_slice(&following.to_be_bytes());
        out[6..8].copy_from_slice(&(self.open.len() as u16).to_be_bytes());
        for (at, id) in listed.iter().enumerate() {
            out[8 + 8 * at + 2..8 + 8 * at + 4].copy_from_slice(&id.to_be_bytes());
        }
        out
    }
}
