//! Arguments of `serve`, and of what is asked of a server.

use super::{DeviceArgs, ServeCacheArgs, name};
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// Arguments of `serve fuse`.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct ServeFuseArgs {
    /// Directory to mount on, made if it is missing; each namespace is a file in it, such as DIR/ns1.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub mount: PathBuf,
    /// A loop device over each file (needs root), ready for mkfs and mount.
    #[arg(long = "loop")]
    pub with_loop: bool,
    /// Logical sector of the loop devices in bytes: 512, 1024, 2048 or 4096.
    #[arg(long, value_name = "BYTES", default_value = "512", requires = "with_loop")]
    pub sector: String,
    /// Refuse writes, and do not change the image.
    #[arg(long)]
    pub read_only: bool,
    /// Threads that take requests from the kernel.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Let the kernel gather writes to files of zone-files or oftl before they are passed on, as for a local
    /// file system: small ones get faster; a full store is then an error of fsync or close.
    #[arg(long)]
    pub writeback: bool,
    /// Space that the files of a user on zone-files or oftl may take together; may be given for many users.
    #[arg(long, value_name = "UID=SIZE")]
    pub quota: Vec<String>,
    /// The same for their number: files, directories and links.
    #[arg(long, value_name = "UID=N")]
    pub quota_files: Vec<String>,
    /// Print what is served as JSON, instead of a path for each namespace.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub stack: ServeArgs,
}

/// Arguments of `serve nbd`.
#[derive(Clone, Debug, Args)]
pub struct ServeNbdArgs {
    #[command(flatten)]
    pub stack: ServeArgs,
    /// Socket file to listen on; one left behind is replaced [default, without --listen: nandscape.sock].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,
    /// Address to listen on, such as 127.0.0.1 or localhost:0 (a free port) [default port: 10809].
    #[arg(long, value_name = "ADDR[:PORT]")]
    pub listen: Option<String>,
    /// TLS on --listen: the server's certificate, with those between it and its authority (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Take only clients with a certificate signed by one of these authorities (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// TLS on the socket file, too.
    #[arg(long, requires = "tls_cert")]
    pub tls_socket: bool,
    /// Listen on an address that other machines can reach without TLS: whoever can connect reads and writes
    /// the device.
    #[arg(long, requires = "listen")]
    pub insecure_listen: bool,
    /// Only these namespaces, the first of them also under the empty name [default: all].
    #[arg(long = "export", value_name = "NAMES", value_delimiter = ',')]
    pub exports: Vec<String>,
    /// Refuse writes, to all exports or to those named; without names the image is not changed.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', num_args = 0.., require_equals = true)]
    pub read_only: Option<Vec<String>>,
    /// Connections at the same time; one more is closed at once.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..))]
    pub connections: u16,
}

/// The stack that a server serves, and where its bytes are kept.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub cached: ServeCacheArgs,
    /// Translation layer ('nandscape list ftls') [default: page-map].
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub ftl: Option<String>,
    /// Keep the bytes in this image file, made if it is absent; without it they are in memory and gone with
    /// the server. An image keeps the configuration it was made with; a flag that contradicts it is an
    /// error.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub image: Option<PathBuf>,
    /// Answer when the model's device would have, instead of as fast as possible.
    #[arg(long)]
    pub pace: bool,
    /// Requests outstanding in the model, which without --pace is a closed loop; of no effect with --cache
    /// [default: 32].
    #[arg(long, value_name = "N", conflicts_with = "pace", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub depth: Option<u32>,
    /// Memory for requests that are longer than a connection's own buffers (NBD: 1 MiB), of all connections
    /// together; a request that finds none waits.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub memory: String,
    /// Record every command in a new file, .csv or .csv.zst, that 'nandscape replay' reads.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: Option<PathBuf>,
    /// Socket for 'nandscape stat' and 'nandscape control' [default: one of its own, where both look].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub control: Option<PathBuf>,
    /// No control socket.
    #[arg(long, conflicts_with = "control")]
    pub no_control: bool,
    /// Statistics over HTTP, such as 127.0.0.1:9464: /metrics for Prometheus and /stat.json.
    #[arg(long, value_name = "ADDR:PORT")]
    pub http: Option<std::net::SocketAddr>,
    /// Statistics on an address that other machines can reach: whoever can connect reads them.
    #[arg(long, requires = "http")]
    pub insecure_http: bool,
}

/// Arguments of `stat`.
#[derive(Clone, Debug, Args)]
pub struct StatArgs {
    /// Control socket of the server [default: that of the only server that runs].
    #[arg(value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,
    /// Print the stat document (JSON).
    #[arg(long)]
    pub json: bool,
    /// A line for each interval of so many seconds, until interrupted.
    #[arg(long, value_name = "SECS", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    pub watch: Option<f64>,
}

/// Arguments of `control`.
#[derive(Clone, Debug, Args)]
pub struct ControlArgs {
    /// Control socket of the server [default: that of the only server that runs; 'shutdown' has none].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,
    /// What it is to do.
    #[command(subcommand)]
    pub action: ControlAction,
}

/// What a running server can be told to do.
#[derive(Clone, Debug, Subcommand)]
pub enum ControlAction {
    /// Start all counters and measurements anew; wear counts on.
    Reset,
    /// Write down what makes the next start quick.
    Checkpoint,
    /// Record every command from now on.
    RecordStart {
        /// New file, .csv or .csv.zst.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// End the recording.
    RecordStop,
    /// Copy the device, as it is now, to a new image file (servers with --image).
    Snapshot {
        /// New file.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// End the server as SIGTERM does; it must be named with --socket.
    Shutdown,
}
