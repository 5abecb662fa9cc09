//! Commands of hosts.

use super::nodes::Nodes;
use super::sections::NONE;
use super::{F2fs, IN_PLACE, Mode};
use nandscape_core::{
    Allocation, Answer, Cause, Extent, Hint, Issue, NamespaceError, NamespaceResult, ObjectAttributes,
    ObjectCommand, ObjectError, ObjectId, ObjectSpace, ObjectStatus, Op, Reply, SimTime, Submitted, Token,
};

impl F2fs {
    /// Attributes take no space of their own: they are in the inode.
    pub(super) fn object(&mut self, command: ObjectCommand, at: SimTime) -> Submitted {
        if !command.writes_nothing() {
            self.refuse_if_stopped()?;
        }
        self.checkpoint_in_time(at)?;
        self.pace = Token::NONE;
        let done = match command {
            ObjectCommand::Write { object, extent, hint } => {
                let file = self.nodes.number(object)?;
                let done = self.write(file, extent, hint, at)?;
                self.hosts.wrote_object(extent.len, self.config.layout.page_bytes);
                done
            }
            ObjectCommand::Read { object, extent } => {
                let file = self.nodes.number(object)?;
                let bytes = self.nodes.file(file).size.saturating_sub(extent.offset).min(extent.len);
                let done = self.read(file, Extent::new(extent.offset, bytes), at)?;
                self.hosts.read_object(bytes, self.config.layout.page_bytes);
                return Ok(Answer { done, reply: Reply::Bytes(bytes) });
            }
            ObjectCommand::Create { object, hint } => {
                if self.nodes.find(object).is_some() {
                    return Err(ObjectError::Exists.into());
                }
                self.check_room(1)?;
                let file = self.nodes.create(object, hint, self.config.layout.names());
                self.nodes.touch_inode(&self.config.layout, file);
                Token::NONE
            }
            ObjectCommand::Delete { object } => {
                let file = self.nodes.number(object)?;
                self.hosts.trimmed_object(self.nodes.file(file).size);
                self.delete(file);
                Token::NONE
            }
            ObjectCommand::Truncate { object, size } => {
                let file = self.nodes.number(object)?;
                self.truncate(file, size)?;
                self.hosts.trimmed_object(0);
                Token::NONE
            }
            ObjectCommand::Reserve { .. } => {
                return Err(NamespaceError::NotSupported { command: command.name() });
            }
            ObjectCommand::Punch { object, extent } => {
                let file = self.nodes.number(object)?;
                let end = extent.end().min(self.nodes.file(file).size);
                self.hosts.trimmed_object(end.saturating_sub(extent.offset));
                let (first, last) = (extent.offset.div_ceil(self.block()), end / self.block());
                self.drop_blocks(file, first as u32, last.max(first) as u32);
                Token::NONE
            }
            ObjectCommand::Hint { object, hint } => {
                let file = self.nodes.number(object)?;
                self.nodes.file_mut(file).hint = hint;
                self.nodes.touch_inode(&self.config.layout, file);
                Token::NONE
            }
            ObjectCommand::Flush { object } => {
                let file = object.map(|object| self.nodes.number(object)).transpose()?;
                self.flush(file, at)?
            }
            ObjectCommand::SetAttributes { object, replaces } => {
                let file = self.nodes.number(object)?;
                let replaced = replaces.map(|id| self.nodes.number(id)).transpose()?;
                self.nodes.touch_inode(&self.config.layout, file);
                if let Some(replaced) = replaced.filter(|replaced| *replaced != file) {
                    self.delete(replaced);
                }
                Token::NONE
            }
            ObjectCommand::GetAttributes { object } => {
                let status = self.status(self.nodes.number(object)?);
                let attributes = ObjectAttributes { status, bytes: Box::default() };
                return Ok(Answer { done: Token::NONE, reply: Reply::Attributes(Box::new(attributes)) });
            }
            ObjectCommand::Allocation { object, extent } => {
                let reply = Reply::Allocation(self.allocation(self.nodes.number(object)?, extent)?);
                return Ok(Answer { done: Token::NONE, reply });
            }
            ObjectCommand::List => {
                let all = self.nodes.files().into_iter().map(|file| self.status(file)).collect();
                return Ok(Answer { done: Token::NONE, reply: Reply::Objects(all) });
            }
            ObjectCommand::Space => {
                return Ok(Answer { done: Token::NONE, reply: Reply::Space(Box::new(self.space())) });
            }
        };
        Ok(self.in_pace(done, at).into())
    }

    /// A command completes once what was cleaned for it is.
    fn in_pace(&mut self, done: Token, at: SimTime) -> Token {
        if self.pace == Token::NONE {
            return done;
        }
        let both = self.volume.device.join(done, self.pace);
        let ends = (self.volume.device.completion(done), self.volume.device.completion(both));
        if let (Some(own), Some(all)) = ends {
            self.stats.waited_ns += all.0.saturating_sub(own.0.max(at.0));
        }
        both
    }

    const fn block(&self) -> u64 {
        self.config.layout.block
    }

    fn status(&self, number: u32) -> ObjectStatus {
        let file = self.nodes.file(number);
        let allocated = (file.blocks + u64::from(file.tail.is_some())) * self.block();
        ObjectStatus { object: ObjectId(file.id.0), size: file.size, hint: file.hint, allocated }
    }

    /// Blocks that are taken, or will be once what waits in memory is written.
    pub(super) fn taken(&self) -> u64 {
        self.sections.live + self.nodes.unwritten + self.nodes.tails.len() as u64
    }

    pub(super) fn space(&self) -> ObjectSpace {
        let layout = &self.config.layout;
        let free = if self.stopped.is_some() { 0 } else { layout.user_blocks.saturating_sub(self.taken()) };
        let now =
            u64::from(self.sections.free.saturating_sub(layout.reserved)) * u64::from(layout.section_blocks);
        ObjectSpace {
            capacity: layout.user_blocks * layout.block,
            live: self.sections.live * layout.block,
            free: free * layout.block,
            reclaimable: free.saturating_sub(now) * layout.block,
        }
    }

    fn check_room(&self, blocks: u64) -> NamespaceResult<()> {
        if self.taken() + blocks > self.config.layout.user_blocks {
            return Err(ObjectError::Full.into());
        }
        Ok(())
    }

    /// Makes durable what hosts were answered: of one file, or everything.
    pub(super) fn flush(&mut self, file: Option<u32>, at: SimTime) -> NamespaceResult<Token> {
        self.hosts.flushes += 1;
        self.refuse_if_stopped()?;
        let Some(file) = file else { return self.checkpoint(at) };
        self.write_tail(file, at)?;
        let was_dirty = self.nodes.dirty_files.remove(&file);
        if was_dirty {
            self.balance(at)?;
            self.write_nodes_of(file, Issue::new(at, Cause::Meta).by_host())?;
        }
        self.volume.flush(Issue::new(at, Cause::Host))
    }

    /// Writes the last block of a file, which waits in memory.
    pub(super) fn write_tail(&mut self, file: u32, at: SimTime) -> NamespaceResult<Token> {
        let Some(block) = self.nodes.file_mut(file).tail.take() else { return Ok(Token::NONE) };
        self.nodes.tails.remove(&file);
        let log = self.data_log(self.nodes.file(file).hint);
        self.write_data(file, (block, block + 1), log, Issue::new(at, Cause::Host))
    }

    fn write(
        &mut self,
        file: u32,
        extent: Extent,
        hint: Option<Hint>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        if extent.len == 0 {
            return Ok(Token::NONE);
        }
        let block = self.block();
        let end = extent.end().div_ceil(block);
        if end >= u64::from(NONE) {
            return Err(ObjectError::TooLarge.into());
        }
        let (from, mut to) = ((extent.offset / block) as u32, end as u32);
        let stored = self.stored(file, from, to);
        if stored < to - from {
            let nodes = 1 + u64::from(to - from) / u64::from(self.config.layout.node_pointers());
            self.check_room(u64::from(to - from - stored) + nodes)?;
        }
        if self.nodes.file(file).hint == Hint::NOT_SET {
            self.nodes.file_mut(file).hint = hint.unwrap_or_default();
        }
        let hint = hint.unwrap_or(self.nodes.file(file).hint);
        let mut after = Token::NONE;
        if let Some(tail) = self.nodes.file(file).tail
            && !(from..to).contains(&tail)
        {
            self.write_tail(file, at)?;
        }
        let kept = self.nodes.file(file).tail;
        // Blocks that are written in part are read first, unless they are in memory.
        for end in extent.ragged_ends(block as u32) {
            let at_block = (end.offset / block) as u32;
            if kept != Some(at_block) && u64::from(at_block) < self.nodes.file(file).size.div_ceil(block) {
                let whole = Extent::new(u64::from(at_block) * block, block);
                let read = self.read(file, whole, at)?;
                after = self.volume.device.join(after, read);
            }
        }
        let grows = extent.end() > self.nodes.file(file).size;
        let size = self.nodes.file(file).size.max(extent.end());
        self.nodes.file_mut(file).size = size;
        if grows {
            self.nodes.touch_inode(&self.config.layout, file);
        }
        if kept.is_some() {
            self.nodes.file_mut(file).tail = None;
            self.nodes.tails.remove(&file);
        }
        if extent.end() == size && !size.is_multiple_of(block) {
            to -= 1;
            self.nodes.file_mut(file).tail = Some(to);
            self.nodes.tails.insert(file);
        }
        if from == to {
            return Ok(after);
        }
        let issue = Issue::new(at, Cause::Host).after(after).by_host();
        if self.config.mode == Mode::Adaptive && to - from <= IN_PLACE && stored >= to - from {
            return self.overwrite(file, (from, to), hint, issue);
        }
        self.write_data(file, (from, to), self.data_log(hint), issue)
    }

    /// Blocks of a range that are stored.
    fn stored(&self, file: u32, from: u32, to: u32) -> u32 {
        if u64::from(from) >= self.nodes.file(file).size.div_ceil(self.block()) {
            return 0;
        }
        let mut stored = 0;
        let counted = self.nodes.each_run(&self.config.layout, file, (from, to), |_, _, blocks| {
            stored += blocks;
            Ok(())
        });
        counted.expect("counting does not fail");
        stored
    }

    /// Writes blocks where they are, which are all stored.
    fn overwrite(
        &mut self,
        file: u32,
        (from, to): (u32, u32),
        hint: Hint,
        issue: Issue,
    ) -> NamespaceResult<Token> {
        let stream = self.stream(self.data_log(hint));
        let (volume, layout) = (&mut self.volume, &self.config.layout);
        let mut done = Token::NONE;
        let written = self.nodes.each_run(layout, file, (from, to), |_, place, blocks| {
            let written = volume.main(layout, Op::Write, (place, blocks), stream, issue)?;
            done = volume.device.join(done, written);
            Ok(())
        });
        written.map_err(|error| self.stop("a write of blocks failed", error))?;
        Ok(done)
    }

    fn read(&mut self, file: u32, extent: Extent, at: SimTime) -> NamespaceResult<Token> {
        let block = self.block();
        let (from, to) = ((extent.offset / block) as u32, extent.end().div_ceil(block) as u32);
        let (volume, layout) = (&mut self.volume, &self.config.layout);
        let mut done = Token::NONE;
        self.nodes.each_run(layout, file, (from, to), |first, place, blocks| {
            let start = (u64::from(first) * block).max(extent.offset);
            let end = (u64::from(first + blocks) * block).min(extent.end());
            let byte = layout.byte(place) + (start - u64::from(first) * block);
            let issue = Issue::new(at, Cause::Host);
            let read = volume.bytes(Op::Read, Extent::new(byte, end - start), Hint(0), issue)?;
            done = volume.device.join(done, read);
            Ok(())
        })?;
        Ok(done)
    }

    fn allocation(&self, file: u32, extent: Extent) -> NamespaceResult<Allocation> {
        let (size, block) = (self.nodes.file(file).size, self.block());
        let to = extent.end().min(size).div_ceil(block);
        let from = (extent.offset / block).min(to);
        let mut runs = Vec::new();
        self.nodes.each_run(&self.config.layout, file, (from as u32, to as u32), |first, _, blocks| {
            runs.push((first, blocks));
            Ok(())
        })?;
        Ok(Allocation::of_runs(extent, size, block, runs))
    }

    /// Blocks of a file hold nothing any more.
    fn drop_blocks(&mut self, file: u32, from: u32, to: u32) {
        let mut block = from;
        while block < to {
            let (index, slot, room) = Nodes::split(&self.config.layout, block);
            let end = block.saturating_add(room).min(to);
            let Some(&number) = self.nodes.file(file).nodes.get(&index) else {
                // The next node that there is.
                let Some((&next, _)) = self.nodes.file(file).nodes.range(index + 1..).next() else { return };
                block = self.first_of(next);
                continue;
            };
            let mut freed = 0;
            for at in slot..slot + (end - block) {
                let place = std::mem::replace(&mut self.nodes.node_mut(number).pointers[at as usize], NONE);
                if place != NONE {
                    self.sections.invalidate(place);
                    freed += 1;
                }
            }
            if freed > 0 {
                self.nodes.node_mut(number).used -= freed;
                self.nodes.file_mut(file).blocks -= u64::from(freed);
                self.nodes.touch(number);
            }
            if index > 0 && self.nodes.node(number).used == 0 {
                self.remove_node(number);
                self.nodes.touch_inode(&self.config.layout, file);
            }
            block = end;
        }
    }

    const fn first_of(&self, index: u32) -> u32 {
        let layout = &self.config.layout;
        layout.inode_pointers() + (index - 1) * layout.node_pointers()
    }

    fn remove_node(&mut self, number: u32) {
        let place = self.nodes.remove(number);
        if place != NONE {
            self.sections.invalidate(place);
        }
    }

    fn delete(&mut self, file: u32) {
        let blocks = self.nodes.file(file).size.div_ceil(self.block()) as u32;
        self.drop_blocks(file, 0, blocks);
        let nodes: Vec<u32> = self.nodes.file(file).nodes.values().copied().collect();
        for node in nodes {
            self.remove_node(node);
        }
        self.nodes.forget(file);
    }

    fn truncate(&mut self, file: u32, size: u64) -> NamespaceResult<()> {
        let block = self.block();
        if size.div_ceil(block) >= u64::from(NONE) {
            return Err(ObjectError::TooLarge.into());
        }
        let old = self.nodes.file(file).size;
        if size < old {
            self.drop_blocks(file, size.div_ceil(block) as u32, old.div_ceil(block) as u32);
            if self.nodes.file(file).tail.is_some_and(|tail| u64::from(tail) >= size.div_ceil(block)) {
                self.nodes.file_mut(file).tail = None;
                self.nodes.tails.remove(&file);
            }
        }
        self.nodes.file_mut(file).size = size;
        self.nodes.touch_inode(&self.config.layout, file);
        Ok(())
    }
}
