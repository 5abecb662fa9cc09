//! The stream that the workload names: the number that comes with each write, or one for each writer.

use super::{PolicyEntry, StreamPolicy, WriteFacts};
use nandscape_core::{Info, keys};

keys! { PARAMS:
    pub BY: String = choice(&["hint", "writer"]) or "hint",
        "hint: the number that comes with the write; writer: one stream for each process, in order of \
         appearance";
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    info: Info {
        name: "explicit",
        summary: "the stream id that comes with the write, or one for each writer",
        source: "[streams-article 1.3.2]; fio fadvise_stream",
        params: PARAMS,
    },
    needs_future: false,
    build: |params, setup| {
        Ok(Box::new(Explicit {
            by_writer: params.get(BY) == "writer",
            writers: Vec::new(),
            streams: setup.streams,
            beyond: 0,
        }))
    },
};

#[derive(Debug)]
struct Explicit {
    by_writer: bool,
    /// Those that have a stream, in its order.
    writers: Vec<u32>,
    streams: u16,
    beyond: u64,
}

impl StreamPolicy for Explicit {
    fn assign(&mut self, write: &WriteFacts<'_>) -> u16 {
        if !self.by_writer {
            if write.hint > self.streams {
                self.beyond += 1;
                return 0;
            }
            return write.hint;
        }
        if write.origin.writer == 0 {
            return 0;
        }
        if let Some(at) = self.writers.iter().position(|writer| *writer == write.origin.writer) {
            return at as u16 + 1;
        }
        if self.writers.len() == usize::from(self.streams) {
            self.beyond += 1;
            return 0;
        }
        self.writers.push(write.origin.writer);
        self.writers.len() as u16
    }

    fn warnings(&self) -> Vec<String> {
        super::write_hint::beyond(self.beyond, self.streams)
    }
}
