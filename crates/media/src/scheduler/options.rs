//! What the parallel schedulers can model beyond array times and bus speed. Everything is off by default.

/// The link to the host and the controller's way through: pure delays for each operation of the host, and one
/// FIFO in either direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostLink {
    /// Bytes per second in each direction; 0 leaves the transfer out.
    pub bytes_per_s: u64,
    /// From the submission of a read until its channel knows of it, in nanoseconds.
    pub read_front_ns: u64,
    /// From the submission of a write until it asks for room in the buffer, or for its die without one, in
    /// nanoseconds.
    pub write_front_ns: u64,
    /// From the last byte until the host sees the completion, in nanoseconds.
    pub completion_ns: u64,
}

impl HostLink {
    /// Time of a transfer, rounded up to whole nanoseconds.
    pub const fn transfer_ns(&self, bytes: u32) -> u64 {
        if self.bytes_per_s == 0 { 0 } else { (bytes as u64 * 1_000_000_000).div_ceil(self.bytes_per_s) }
    }

    /// Whether anything is modelled.
    pub const fn is_some(&self) -> bool {
        self.bytes_per_s > 0 || self.read_front_ns > 0 || self.write_front_ns > 0 || self.completion_ns > 0
    }
}

/// The controller's write buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteBuffer {
    /// Its size; 0 is none. A page takes its whole size until its program ends.
    pub bytes: u64,
    /// A loss of power loses what has not been programmed, so that a flush waits for it.
    pub is_volatile: bool,
    /// When more than half of it is full, host pages come in at the pace at which programs end.
    pub is_paced: bool,
    /// With more bytes in it than this, a die takes reads and writes of the host by age, and no read stops or
    /// holds off a program. 0: reads always go first.
    pub drain_above: u64,
}

/// What the controller takes in the long run, whatever the dies can program: what the host writes and, a turn
/// at a time, what the layer programs. A buffer full is taken at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intake {
    /// Bytes per second; 0: no limit.
    pub bytes_per_s: u64,
    /// The layer's programs queue for the controller in turns of so many bytes, one at a time, so that they
    /// get the share of one command of the host that is as large. At least 1.
    pub turn: u32,
    /// From 0 to 1: this share of the time of each page or turn is drawn from an exponential distribution of
    /// the same mean, so that the rate stays what it is. 0: always the same time.
    pub spread: f64,
}

impl Default for Intake {
    fn default() -> Self {
        Self { bytes_per_s: 0, turn: 8 << 10, spread: 0.0 }
    }
}

/// Times of the array in blocks with one bit a cell ([`nandscape_core::SlcBlocks`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcTiming {
    /// Array read of a page, in nanoseconds.
    pub read_ns: u64,
    /// Array program, in nanoseconds: of as many pages as have the cells of a program unit of other blocks.
    /// It varies by [`Options::program_jitter`], not from word line to word line.
    pub program_ns: u64,
}

/// Times that depend on the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockTimes {
    /// An erase takes so much longer for each page of the block that was programmed, in nanoseconds.
    pub erase_page_ns: u64,
    /// Times of blocks with one bit a cell; `None`: those of all others.
    pub slc: Option<SlcTiming>,
}

/// How reads stop a program or an erase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspension {
    /// Programs can be stopped.
    pub programs: bool,
    /// Erases can be stopped.
    pub erases: bool,
    /// From the decision until the die takes the read, in nanoseconds, of a program.
    pub stop_ns: u64,
    /// The same of an erase.
    pub erase_stop_ns: u64,
    /// From the end of the last read until the array goes on, in nanoseconds.
    pub resume_ns: u64,
    /// The array runs at least so long before the first stop and between two, in nanoseconds.
    pub run_ns: u64,
    /// No stop when the array needs no longer than this to finish, in nanoseconds.
    pub tail_ns: u64,
    /// Stops of one program.
    pub most: u32,
    /// Stops of one erase.
    pub erase_most: u32,
}

/// The order of operations of the layer itself (garbage collection and the like) against those of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GcOrder {
    /// By age.
    #[default]
    Fifo,
    /// The host's first, at each die and in each command core, unless one of them waits for an erase.
    HostFirst,
    /// By age, but programs and erases of the layer start at a die no more often than every so many
    /// nanoseconds, unless the host waits for an erase.
    RateLimited {
        /// Between two starts at one die, in nanoseconds.
        gap_ns: u64,
    },
}

/// The options of [`super::Scheduler::with_options`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "abilities that are independent of each other")]
pub struct Options {
    /// Array reads by page number in the block, in rotation, in nanoseconds. Empty:
    /// [`super::Timing::read_ns`] for all.
    pub reads_ns: Vec<u64>,
    /// The program time of a word line is off the mean by up to this share, always the same on every block.
    pub program_spread: f64,
    /// Each program is off that by up to this share.
    pub program_jitter: f64,
    /// Consecutive pages of a block programmed in one array operation.
    pub program_pages: u32,
    /// Consecutive pages of a block that lie on as many planes: reads of them that wait at a die run as one.
    /// Not together with `multi_plane`.
    pub read_pages: u32,
    /// Times that depend on the block.
    pub blocks: BlockTimes,
    /// A channel's command core is busy so long with each read, in nanoseconds.
    pub core_ns: u64,
    /// A channel's decoder is busy so long with each read, in nanoseconds.
    pub decode_ns: u64,
    /// Bus time that begins the data of a read, in nanoseconds.
    pub data_out_ns: u64,
    /// Bytes of program data after which a read may take the bus; 0: a page is one piece.
    pub burst_bytes: u32,
    /// The data of a program page waits at most so long for the reads of its channel, in nanoseconds.
    pub hold_off_ns: u64,
    /// The data of the next program is loaded while the array programs (cached program).
    pub load_overlap: bool,
    /// The array reads the next page while the data of the last one leaves the die (cached read). The time
    /// in which data moves from one register to the other is not modelled.
    pub read_overlap: bool,
    /// Operations of one kind on equal page numbers of different planes that wait at a die run as one.
    pub multi_plane: bool,
    /// Bus, command core and decoder make operations wait for each other.
    pub contention: bool,
    /// How reads stop programs and erases.
    pub suspension: Suspension,
    /// The link to the host.
    pub host: HostLink,
    /// The write buffer.
    pub buffer: WriteBuffer,
    /// What the controller takes in the long run.
    pub intake: Intake,
    /// Host against the layer.
    pub gc_order: GcOrder,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            reads_ns: Vec::new(),
            program_spread: 0.0,
            program_jitter: 0.0,
            program_pages: 1,
            read_pages: 1,
            blocks: BlockTimes::default(),
            core_ns: 0,
            decode_ns: 0,
            data_out_ns: 0,
            burst_bytes: 0,
            hold_off_ns: 0,
            load_overlap: false,
            read_overlap: false,
            multi_plane: false,
            contention: true,
            suspension: Suspension::default(),
            host: HostLink::default(),
            buffer: WriteBuffer::default(),
            intake: Intake::default(),
            gc_order: GcOrder::Fifo,
        }
    }
}
