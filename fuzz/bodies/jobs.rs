//! Arbitrary fio job files.

use nandscape_jobs::JobFile;

pub fn feed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // An included file is a file of this machine.
    if text.contains("include") {
        return;
    }
    if let Ok(file) = JobFile::parse("fuzz.fio", text) {
        assert!(!file.jobs.is_empty(), "a job file without a job was accepted");
    }
}
