//! Arguments of `object`.

use clap::{Subcommand, ValueHint};
use std::path::PathBuf;

/// The verbs of `object`.
#[derive(Clone, Debug, Subcommand)]
pub enum ObjectVerb {
    /// The objects of an image: number, size, space, and the path that 'serve fuse' gives each. Changes
    /// nothing.
    Ls {
        /// Image of a store of objects.
        #[arg(value_hint = ValueHint::FilePath)]
        image: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// What is known of one object: owner, mode, names, and which bytes are stored. Changes nothing.
    Stat {
        /// Image of a store of objects.
        #[arg(value_hint = ValueHint::FilePath)]
        image: PathBuf,
        /// Number of the object, or its path, such as /dir/file.
        object: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Verify the image as 'image check' does, each object byte by byte, and the tree of names. Changes
    /// nothing; exit status 1 if something is wrong.
    Check {
        /// Image of a store of objects.
        #[arg(value_hint = ValueHint::FilePath)]
        image: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}
