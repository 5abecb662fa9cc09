//! Options that carry data.

use super::{
    Negotiation, NegotiationError, Progress, acknowledge, has_no_data, refuse, reply, unknown_export,
};
use crate::export::Export;
use crate::limits::{MAX_NAME_BYTES, MAX_QUERIES, MAX_REQUEST_BYTES};
use crate::transmission::{STATUS_CONTEXT, Session};
use crate::wire::{BASE_ALLOCATION, Put, Take, info, option, option_reply};

impl Negotiation {
    pub(super) fn export_name(&self, data: &[u8], out: &mut Vec<u8>) -> Result<Progress, NegotiationError> {
        let index = self.find(data).ok_or_else(|| unknown_export(data))?;
        let export = &self.exports[index];
        out.put_u64(export.size);
        out.put_u16(export.flags(self.is_structured));
        if self.sends_zeroes {
            out.put(&[0; 124]);
        }
        Ok(Progress::Transmit(self.session(index)))
    }

    pub(super) fn list(&self, data: &[u8], out: &mut Vec<u8>) {
        if !has_no_data(data, option::LIST, out) {
            return;
        }
        for export in self.exports.iter() {
            let mut entry = Vec::new();
            entry.put_u32(export.name.len() as u32);
            entry.put(export.name.as_bytes());
            entry.put(export.description.as_bytes());
            reply(out, option::LIST, option_reply::SERVER, &entry);
        }
        acknowledge(out, option::LIST);
    }

    /// Answers `INFO` and `GO`; a `GO` that succeeds gives the session.
    pub(super) fn info_or_go(&self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Option<Session> {
        let Some((name, wanted)) = parse_info(data) else {
            let expected = "expected a name and the pieces of information wanted";
            refuse(out, option, option_reply::ERR_INVALID, expected);
            return None;
        };
        let Some(index) = self.find(name) else {
            refuse(out, option, option_reply::ERR_UNKNOWN, "no export of that name");
            return None;
        };
        let export = &self.exports[index];
        let mut piece = Vec::new();
        piece.put_u16(info::EXPORT);
        piece.put_u64(export.size);
        piece.put_u16(export.flags(self.is_structured));
        reply(out, option, option_reply::INFO, &piece);
        for kind in [info::NAME, info::DESCRIPTION, info::BLOCK_SIZE] {
            // Given unasked, as the protocol suggests; they hold a client to nothing that it would not do.
            if kind == info::BLOCK_SIZE || wanted.contains(&kind) {
                reply(out, option, option_reply::INFO, &describe(export, kind));
            }
        }
        acknowledge(out, option);
        (option == option::GO).then(|| self.session(index))
    }

    pub(super) fn meta_context(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        let sets = option == option::SET_META_CONTEXT;
        // A choice that fails leaves none behind.
        self.status_of = self.status_of.filter(|_| !sets);
        if !self.is_structured {
            refuse(out, option, option_reply::ERR_INVALID, "expected STRUCTURED_REPLY first");
            return;
        }
        let Some((name, queries)) = parse_queries(data) else {
            refuse(out, option, option_reply::ERR_INVALID, "expected a name and at most 64 queries");
            return;
        };
        let Some(index) = self.find(name) else {
            refuse(out, option, option_reply::ERR_UNKNOWN, "no export of that name");
            return;
        };
        let is_wanted = queries
            .iter()
            .any(|query| *query == BASE_ALLOCATION.as_bytes() || (!sets && *query == b"base:".as_slice()));
        if is_wanted || (!sets && queries.is_empty()) {
            let mut context = Vec::new();
            context.put_u32(if sets { STATUS_CONTEXT } else { 0 });
            context.put(BASE_ALLOCATION.as_bytes());
            reply(out, option, option_reply::META_CONTEXT, &context);
            if sets {
                self.status_of = Some(index);
            }
        }
        acknowledge(out, option);
    }
}

/// One piece of information about an export.
fn describe(export: &Export, kind: u16) -> Vec<u8> {
    let mut piece = Vec::new();
    piece.put_u16(kind);
    match kind {
        info::NAME => piece.put(export.name.as_bytes()),
        info::DESCRIPTION => piece.put(export.description.as_bytes()),
        _ => {
            piece.put_u32(1);
            piece.put_u32(export.preferred_block);
            piece.put_u32(MAX_REQUEST_BYTES);
        }
    }
    piece
}

fn parse_info(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let mut take = Take(data);
    let name = take.string().filter(|name| name.len() <= MAX_NAME_BYTES)?;
    let count = take.u16().filter(|count| u32::from(*count) <= MAX_QUERIES)?;
    let wanted = (0..count).map(|_| take.u16()).collect::<Option<Vec<_>>>()?;
    take.0.is_empty().then_some((name, wanted))
}

fn parse_queries(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let mut take = Take(data);
    let name = take.string().filter(|name| name.len() <= MAX_NAME_BYTES)?;
    let count = take.u32().filter(|count| *count <= MAX_QUERIES)?;
    let queries = (0..count).map(|_| take.string()).collect::<Option<Vec<_>>>()?;
    take.0.is_empty().then_some((name, queries))
}
