//! Bounds on everything a client sends. A connection has about 2 MiB of its own, however it behaves; longer
//! requests draw on the memory of all connections together (`nandscape_engine::budget`).

use std::time::Duration;

/// The longest read or write. Announced to clients that ask for block sizes; a longer one gets `EINVAL`.
pub const MAX_REQUEST_BYTES: u32 = 32 << 20;

/// The least memory for long requests: the longest one fits.
pub const LEAST_MEMORY_BYTES: u64 = 33 << 20;

/// The longest name of an export that is looked at, in bytes; the protocol's own limit for strings.
pub const MAX_NAME_BYTES: usize = 4096;

/// The longest option with its data. A longer one is skipped and answered with `ERR_TOO_BIG`.
pub const MAX_OPTION_BYTES: usize = 64 << 10;

/// The longest option that is skipped; one beyond it ends the connection.
pub const MAX_SKIPPED_OPTION_BYTES: usize = 16 << 20;

/// Options in one negotiation; one more ends the connection.
pub const MAX_OPTIONS: u32 = 64;

/// Queries in an option about kinds of block status, and pieces of information asked for at once.
pub const MAX_QUERIES: u32 = 64;

/// Extents in one answer to a block status.
pub const MAX_EXTENTS: usize = 16 << 10;

/// How long a negotiation may take, TLS included.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long connections have to finish what they run when the server stops.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(5);
