//! Transparent decompression, by the first bytes and not by the name.
//!
//! Recordings of a server ([`crate::recording`]) are zstd too, but one that was cut off ends with its last
//! whole frame.
//!
//! Everything is streamed, so a small file that expands to terabytes costs time but not memory: zstd windows
//! are limited to 128 MiB (`--long=27`), xz decoders to 256 MiB.

use crate::frames::{Frames, is_framed};
use flate2::read::MultiGzDecoder;
use std::io::{BufReader, Cursor, Error, ErrorKind, Read};

const ZSTD_WINDOW_LOG_MAX: u32 = 27;
const XZ_MEMORY_MAX: u64 = 256 << 20;

/// A stream of bytes that can move to another thread.
pub(crate) type Bytes = Box<dyn Read + Send>;

/// Unpacks gzip (all members), zstd (all frames) and xz (all streams); passes anything else through.
pub(crate) fn decompress(mut raw: Bytes) -> std::io::Result<Bytes> {
    let head = peek(&mut raw, 12)?;
    let is = |magic: &[u8]| head.starts_with(magic);
    // Skippable zstd frames start with 0x184D2A5?.
    let skippable = head.len() >= 4 && head[0] & 0xf0 == 0x50 && head[1..4] == [0x2a, 0x4d, 0x18];
    let (gzip, zstd, xz) = (is(&[0x1f, 0x8b]), is(&[0x28, 0xb5, 0x2f, 0xfd]) || skippable, is(b"\xfd7zXZ\0"));
    let framed = is_framed(&head);
    let whole = Cursor::new(head).chain(raw);
    Ok(if framed {
        Box::new(Frames::new(BufReader::new(whole)))
    } else if gzip {
        Box::new(Named { inner: MultiGzDecoder::new(whole), what: "gzip" })
    } else if zstd {
        let mut decoder = zstd::Decoder::new(whole)?;
        decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
        Box::new(Named { inner: decoder, what: "zstd" })
    } else if xz {
        let stream =
            liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_MAX, liblzma::stream::CONCATENATED)?;
        let decoder = liblzma::bufread::XzDecoder::new_stream(BufReader::new(whole), stream);
        Box::new(Named { inner: decoder, what: "xz" })
    } else {
        Box::new(whole)
    })
}

/// Any bytes unpacked in the same way: `.gz`, `.zst` and `.xz`, by their content.
///
/// # Errors
///
/// What reading the first bytes gives. A damaged stream is an error of a later read, which names its kind.
pub fn unpacked(raw: impl Read + Send + 'static) -> std::io::Result<Box<dyn Read + Send>> {
    decompress(Box::new(raw))
}

/// The first `most` bytes, or fewer at the end of the source.
pub(crate) fn peek(source: &mut dyn Read, most: usize) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(most);
    source.take(most as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Says which decoder failed, since "unexpected end of file" alone does not.
struct Named<R> {
    inner: R,
    what: &'static str,
}

impl<R: Read> Read for Named<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            if error.kind() == ErrorKind::Interrupted {
                return error;
            }
            Error::new(error.kind(), format!("the {} stream is damaged or cut off: {error}", self.what))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn unpack(bytes: Vec<u8>) -> std::io::Result<Vec<u8>> {
        let mut out = Vec::new();
        decompress(Box::new(Cursor::new(bytes)))?.read_to_end(&mut out)?;
        Ok(out)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    type Packer = fn(&[u8]) -> Vec<u8>;
    const PACKERS: [Packer; 3] = [gzip, |text| zstd::encode_all(text, 1).unwrap(), xz];

    fn xz(text: &[u8]) -> Vec<u8> {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn every_member_frame_and_stream_is_read() {
        for pack in PACKERS {
            let twice = [pack(b"first "), pack(b"second")].concat();
            assert_eq!(unpack(twice).unwrap(), b"first second");
        }
        assert_eq!(unpack(b"plain".to_vec()).unwrap(), b"plain");
        assert_eq!(unpack(Vec::new()).unwrap(), b"");
    }

    #[test]
    fn cut_off_streams_say_so() {
        let text: Vec<u8> =
            (0..50_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for pack in PACKERS {
            let whole = pack(&text);
            for cut in [whole.len() / 2, whole.len() - 1, 8] {
                let error = unpack(whole[..cut].to_vec()).unwrap_err().to_string();
                assert!(error.contains("stream is damaged or cut off"), "{error}");
            }
        }
    }
}
