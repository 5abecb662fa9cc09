//! What is recorded of a run below its layer: the operations, what each waited for, and what a token stands
//! for.

use super::order::{Change, OpSet, Operation};
use nandscape_core::{BlockId, Token};

/// What is recorded of a run that is going to be cut.
#[derive(Debug)]
pub(super) struct Recorder<O> {
    pub operations: Vec<Operation<O>>,
    /// The last operation of each block.
    pub last: Vec<Option<usize>>,
    /// By block, what its programs waited for before a buffer took them.
    pub taken: Vec<OpSet>,
    /// All programs so far, with what they need.
    pub programs: OpSet,
    /// What is on the flash, and when, once token `i + 1` completes.
    pub tokens: Vec<(OpSet, u64)>,
}

impl<O> Recorder<O> {
    /// Nothing yet, on a device of so many blocks.
    pub fn new(blocks: usize) -> Self {
        Self {
            operations: Vec::new(),
            last: vec![None; blocks],
            taken: vec![OpSet::default(); blocks],
            programs: OpSet::default(),
            tokens: Vec::new(),
        }
    }

    pub fn set(&self, token: Token) -> &OpSet {
        static NONE: std::sync::LazyLock<OpSet> = std::sync::LazyLock::new(OpSet::default);
        if token == Token::NONE { &NONE } else { &self.tokens[token.0 as usize - 1].0 }
    }

    pub fn time(&self, token: Token) -> u64 {
        if token == Token::NONE { 0 } else { self.tokens[token.0 as usize - 1].1 }
    }

    pub fn token(&mut self, set: OpSet, at: u64) -> Token {
        self.tokens.push((set, at));
        Token(self.tokens.len() as u64)
    }

    /// What the block's last operation stands on, itself included.
    pub fn before(&self, block: BlockId) -> OpSet {
        let Some(last) = self.last[block.index()] else { return OpSet::default() };
        let mut set = self.operations[last].needs.clone();
        set.insert(last);
        set
    }

    /// Notes an operation on a block; gives what is on the flash once it is.
    pub fn push(&mut self, change: Change<O>, block: BlockId, after: &OpSet) -> OpSet {
        let mut needs = self.before(block);
        needs.unite(after);
        let number = self.operations.len();
        let mut done = needs.clone();
        done.insert(number);
        if matches!(change, Change::Program { .. }) {
            self.programs.unite(&done);
            self.taken[block.index()].unite(after);
        }
        self.operations.push(Operation { change, needs });
        self.last[block.index()] = Some(number);
        done
    }
}
