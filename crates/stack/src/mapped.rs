//! Whether everything that a stack has mapped can be read.

use nandscape_core::command::{Payload, stored_runs};
use nandscape_core::{
    BlockCommand, Command, Extent, Hint, NamespaceResult, ObjectCommand, ObjectId, Op, Reply, Subsystem,
};
use serde::Serialize;

/// Bytes that are read at a time.
const CHUNK_BYTES: u64 = 256 << 10;

/// Lost pages that are listed one by one; further ones are counted.
const MOST_LISTED: usize = 10_000;

/// A page that is mapped and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostPage {
    /// Name of the namespace.
    pub namespace: String,
    /// The object that it is of, in a store of objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<u64>,
    /// Its first byte in the namespace or the object.
    pub offset: u64,
    /// What a read of it says.
    pub error: String,
}

/// What was read so far.
struct Looking<'a> {
    subsystem: &'a mut dyn Subsystem,
    data: Vec<u8>,
    count: u64,
    listed: Vec<LostPage>,
}

/// Reads all that is mapped. Gives how many pages cannot be read, and the first ten thousand of them.
pub fn lost_pages(subsystem: &mut dyn Subsystem) -> (u64, Vec<LostPage>) {
    let infos = subsystem.namespaces().to_vec();
    let mut looking = Looking { subsystem, data: Vec::new(), count: 0, listed: Vec::new() };
    for (number, info) in (0..).zip(infos) {
        let page = u64::from(info.page_bytes);
        if info.objects {
            looking.objects(number, &info.name, page);
            continue;
        }
        let mut offset = 0;
        while offset < info.capacity_bytes {
            let rest = Extent::new(offset, info.capacity_bytes - offset);
            let run = looking.subsystem.allocation(number, rest);
            let found = Extent::new(offset, run.bytes.max(1));
            if run.is_mapped {
                looking.run(number, &info.name, None, found, page);
            }
            offset = found.end();
        }
    }
    (looking.count, looking.listed)
}

impl Looking<'_> {
    /// Everything in a store of objects. An object that cannot be asked about is one lost page.
    fn objects(&mut self, number: u32, name: &str, page: u64) {
        let ids = match self.ask(number, ObjectCommand::List) {
            Ok(Reply::Objects(objects)) => objects.iter().map(|object| object.object).collect(),
            Ok(other) => panic!("a list of objects is {other:?}"),
            Err(error) => {
                self.lose(name, None, 0, error.to_string());
                Vec::new()
            }
        };
        for object in ids {
            match stored_runs(object, |command| self.ask(number, command)) {
                Ok(runs) => runs.into_iter().for_each(|run| self.run(number, name, Some(object), run, page)),
                Err(error) => self.lose(name, Some(object), 0, error.to_string()),
            }
        }
    }

    /// Reads bytes that are mapped, page by page where some of them cannot be read.
    fn run(&mut self, number: u32, name: &str, object: Option<ObjectId>, run: Extent, page: u64) {
        let chunk = (CHUNK_BYTES / page).max(1) * page;
        let mut offset = run.offset;
        while offset < run.end() {
            let len = chunk.min(run.end() - offset);
            if self.read(number, object, offset, len).is_err() {
                for at in (offset..offset + len).step_by(page as usize) {
                    if let Err(error) = self.read(number, object, at, page.min(run.end() - at)) {
                        self.lose(name, object, at, error.to_string());
                    }
                }
            }
            offset += len;
        }
    }

    fn lose(&mut self, namespace: &str, object: Option<ObjectId>, offset: u64, error: String) {
        self.count += 1;
        if self.listed.len() < MOST_LISTED {
            let object = object.map(|object| object.0);
            self.listed.push(LostPage { namespace: namespace.to_owned(), object, offset, error });
        }
    }

    fn ask(&mut self, number: u32, command: ObjectCommand) -> NamespaceResult<Reply> {
        let at = self.subsystem.idle_from();
        self.subsystem.submit(number, command.into(), Payload::None, at).map(|answer| answer.reply)
    }

    fn read(&mut self, number: u32, object: Option<ObjectId>, offset: u64, len: u64) -> NamespaceResult<()> {
        let extent = Extent::new(offset, len);
        let command: Command = match object {
            None => BlockCommand::new(Op::Read, extent, Hint::default()).into(),
            Some(object) => ObjectCommand::Read { object, extent }.into(),
        };
        self.data.resize(self.data.len().max(len as usize), 0);
        let data = Payload::Read(&mut self.data[..len as usize]);
        let outcome = self.subsystem.submit(number, command, data, self.subsystem.idle_from());
        let mut completions = Vec::new();
        while let Some(next) = self.subsystem.next_event() {
            self.subsystem.advance(next, &mut completions);
        }
        outcome.map(drop)
    }
}
