//! One command of a front end, with its bytes.

use crate::due::Promise;
use nandscape_core::command::Payload;
use nandscape_core::{
    BlockCommand, Command, Extent, Hint, NamespaceResult, ObjectCommand, Op, Reply, SimTime,
};

/// When a command ran, in the model's time.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// When it was issued.
    pub issued: SimTime,
    /// When the device would have answered, as far as that was known when it ran.
    pub done: SimTime,
    /// What tells later, on a paced clock.
    pub(crate) promise: Option<Promise>,
    /// What the answer says besides success.
    pub reply: Reply,
}

/// A command with its bytes and, afterwards, its outcome.
#[derive(Debug)]
pub struct Request<'a> {
    /// Index in [`crate::Engine::namespaces`].
    pub namespace: u32,
    /// What to do.
    pub command: Command,
    /// The bytes: as many as the extent of a read or write has.
    pub payload: Data<'a>,
    /// What became of it.
    pub outcome: NamespaceResult<Served>,
}

/// Bytes of a request.
#[derive(Debug, Default)]
pub enum Data<'a> {
    /// None.
    #[default]
    None,
    /// To write.
    Write(&'a [u8]),
    /// To be filled.
    Read(&'a mut [u8]),
}

impl Data<'_> {
    /// The bytes as namespaces take them.
    pub(crate) fn as_payload(&mut self) -> Payload<'_> {
        match self {
            Self::None => Payload::None,
            Self::Write(data) => Payload::Write(data),
            Self::Read(data) => Payload::Read(data),
        }
    }
}

impl<'a> Request<'a> {
    /// A read that fills `data`.
    pub fn read(namespace: u32, offset: u64, data: &'a mut [u8]) -> Self {
        let extent = Extent::new(offset, data.len() as u64);
        Self::new(namespace, Op::Read, extent, Data::Read(data))
    }

    /// A write of `data`.
    pub fn write(namespace: u32, offset: u64, data: &'a [u8]) -> Self {
        let extent = Extent::new(offset, data.len() as u64);
        Self::new(namespace, Op::Write, extent, Data::Write(data))
    }

    /// A command without bytes: trim, write zeroes, flush.
    pub fn plain(namespace: u32, op: Op, extent: Extent) -> Self {
        Self::new(namespace, op, extent, Data::None)
    }

    /// A command of the object command set, with its bytes.
    pub fn object(namespace: u32, command: ObjectCommand, payload: Data<'a>) -> Self {
        Self { namespace, command: Command::Object(command), payload, outcome: Ok(Served::default()) }
    }

    fn new(namespace: u32, op: Op, extent: Extent, payload: Data<'a>) -> Self {
        let command = BlockCommand::new(op, extent, Hint::default()).into();
        Self { namespace, command, payload, outcome: Ok(Served::default()) }
    }

    /// The same, answered only when it survives a loss of power.
    #[must_use]
    pub fn durable(mut self, is_durable: bool) -> Self {
        if let Command::Block(command) = &mut self.command {
            command.is_durable = is_durable;
        }
        self
    }
}
