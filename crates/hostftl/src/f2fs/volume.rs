//! The device below: commands on blocks of the main area and of the metadata area.

use super::config::Layout;
use crate::error::HostFtlError;
use nandscape_core::command::Payload;
use nandscape_core::zone::{ZoneAction, ZoneCommand};
use nandscape_core::{
    BlockCommand, Cause, Command, Extent, Hint, Issue, NamespaceResult, Op, Subsystem, Token,
};

/// Namespace 0 of a subsystem that takes causes and order of commands.
pub(super) struct Volume {
    pub device: Box<dyn Subsystem + Send>,
}

impl Volume {
    pub fn new(mut device: Box<dyn Subsystem + Send>) -> Result<Self, HostFtlError> {
        let lacks = |reason: String| HostFtlError::Device { layer: super::INFO.name, reason };
        if device.control().issue.is_none() {
            return Err(lacks("it takes no causes and no order of commands".to_owned()));
        }
        let namespaces = device.namespaces();
        let is_plain = namespaces.len() == 1 && !namespaces[0].objects;
        if !is_plain {
            let reason = format!("expected one namespace of blocks or zones, not {}", namespaces.len());
            return Err(lacks(reason));
        }
        let this = Self { device };
        if this.device.inspect().layers.first().is_none_or(|layer| layer.device().capabilities().stores_data)
        {
            return Err(lacks(
                "it keeps bytes, and this file system keeps none: it is for replays".to_owned(),
            ));
        }
        Ok(this)
    }

    #[inline]
    fn submit(&mut self, command: Command, issue: Issue) -> NamespaceResult<Token> {
        let is_plain = issue.cause == Cause::Host && issue.after == Token::NONE;
        if !is_plain {
            self.because(issue.cause, issue.after);
        }
        let answer = self.device.submit(0, command, Payload::None, issue.at);
        if !is_plain {
            self.because(Cause::Host, Token::NONE);
        }
        Ok(answer?.done)
    }

    #[inline]
    fn because(&mut self, cause: Cause, after: Token) {
        self.device.control().issue.expect("checked when it was built").issue(cause, after);
    }

    /// An operation on bytes.
    #[inline]
    pub fn bytes(&mut self, op: Op, extent: Extent, hint: Hint, issue: Issue) -> NamespaceResult<Token> {
        self.submit(BlockCommand::new(op, extent, hint).into(), issue)
    }

    /// An operation on blocks of the main area that are next to each other.
    #[inline]
    pub fn main(
        &mut self,
        layout: &Layout,
        op: Op,
        (place, blocks): (u32, u32),
        hint: Hint,
        issue: Issue,
    ) -> NamespaceResult<Token> {
        let extent = Extent::new(layout.byte(place), u64::from(blocks) * layout.block);
        self.bytes(op, extent, hint, issue)
    }

    /// Writes blocks of the metadata area.
    pub fn meta(
        &mut self,
        layout: &Layout,
        mut first: u64,
        mut blocks: u64,
        issue: Issue,
    ) -> NamespaceResult<Token> {
        let mut done = Token::NONE;
        while blocks > 0 {
            let (byte, room) = layout.meta_byte(first);
            let part = room.min(blocks);
            let extent = Extent::new(byte, part * layout.block);
            let written = self.bytes(Op::Write, extent, Hint(0), issue)?;
            done = self.device.join(done, written);
            (first, blocks) = (first + part, blocks - part);
        }
        Ok(done)
    }

    /// A section is written anew from its start: its zone is reset, or its blocks are trimmed.
    pub fn free(
        &mut self,
        layout: &Layout,
        section: u32,
        trims: bool,
        issue: Issue,
    ) -> NamespaceResult<Token> {
        let place = section * layout.section_blocks;
        if layout.is_zoned() {
            let command = ZoneCommand::Manage { action: ZoneAction::Reset, zone: Some(layout.byte(place)) };
            return self.submit(Command::Zone(command), issue);
        }
        if !trims {
            return Ok(Token::NONE);
        }
        self.main(layout, Op::Trim, (place, layout.section_blocks), Hint(0), issue)
    }

    pub fn flush(&mut self, issue: Issue) -> NamespaceResult<Token> {
        self.submit(Command::FLUSH, issue)
    }
}
