//! What system calls do to paths: links, renames, directories, and what `stat` tells.

use super::calls::System;
use super::files::Origin;
use super::line::{Call, Fd, has};
use super::processes::Object;

impl System {
    /// Calls on paths.
    pub(super) fn of_path(&mut self, pid: u32, call: &Call<'_>, held: Option<u64>) -> Result<(), String> {
        match call.name {
            b"truncate" | b"truncate64" => {
                if let Some(path) = self.path(pid, call, None, 0)? {
                    let file = self.files.at_path(&path);
                    self.files.truncate(file, call.whole(1)?);
                }
            }
            b"unlink" | b"rmdir" => {
                let path = self.path(pid, call, None, 0)?;
                self.remove(path, call.name == b"rmdir");
            }
            b"unlinkat" => {
                let path = self.path(pid, call, Some(0), 1)?;
                self.remove(path, call.has(2, "AT_REMOVEDIR"));
            }
            b"mkdir" | b"mkdirat" => {
                let at = usize::from(call.name == b"mkdirat");
                if let Some(path) = self.path(pid, call, at.checked_sub(1), at)? {
                    self.files.add_folder(&path);
                }
            }
            b"rename" => {
                let paths = (self.path(pid, call, None, 0)?, self.path(pid, call, None, 1)?);
                self.rename(paths, false);
            }
            b"renameat" | b"renameat2" => {
                let paths = (self.path(pid, call, Some(0), 1)?, self.path(pid, call, Some(2), 3)?);
                self.rename(paths, call.has(4, "RENAME_EXCHANGE"));
            }
            b"link" => {
                let paths = (self.path(pid, call, None, 0)?, self.path(pid, call, None, 1)?);
                self.link(pid, call, paths)?;
            }
            b"linkat" => {
                let paths = (self.path(pid, call, Some(0), 1)?, self.path(pid, call, Some(2), 3)?);
                self.link(pid, call, paths)?;
            }
            b"symlink" => self.special(pid, call, None, 1)?,
            b"symlinkat" => self.special(pid, call, Some(1), 2)?,
            b"mknod" => self.special(pid, call, None, 0)?,
            b"mknodat" => self.special(pid, call, Some(0), 1)?,
            b"chdir" | b"getcwd" => {
                if let Some(path) = self.path(pid, call, None, 0)? {
                    self.change_folder(pid, path);
                }
            }
            b"fchdir" => {
                let fd = call.fd(0)?;
                if let Some(path) = self.folder(pid, &fd)? {
                    self.change_folder(pid, path);
                }
            }
            b"access" | b"faccessat" | b"faccessat2" => {}
            _ => self.look(pid, call, held)?,
        }
        Ok(())
    }

    fn change_folder(&mut self, pid: u32, path: Vec<u8>) {
        self.files.add_folder(&path);
        self.processes.set_folder(pid, path);
    }

    fn remove(&mut self, path: Option<Vec<u8>>, is_folder: bool) {
        match path {
            Some(path) if is_folder => self.files.remove_folder(&path),
            Some(path) => self.files.unlink(path),
            None => {}
        }
    }

    fn rename(&mut self, paths: (Option<Vec<u8>>, Option<Vec<u8>>), is_exchange: bool) {
        if let (Some(from), Some(to)) = paths {
            if is_exchange {
                self.files.exchange(&from, &to);
            } else {
                self.files.rename(from, &to);
            }
        }
    }

    fn link(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        paths: (Option<Vec<u8>>, Option<Vec<u8>>),
    ) -> Result<(), String> {
        let (Some(from), Some(to)) = paths else { return Ok(()) };
        // A file without a path gets one by its descriptor.
        let by_number =
            from.strip_prefix(b"/proc/self/fd/").and_then(|number| str::from_utf8(number).ok()?.parse().ok());
        let fd = match by_number {
            Some(number) => Some(Fd { number: Some(number), path: None }),
            None if call.has(4, "AT_EMPTY_PATH") => Some(call.fd(0)?),
            None => None,
        };
        let Some(fd) = fd else {
            let file = self.files.at_path(&from);
            self.files.link(file, &to);
            return Ok(());
        };
        if let Some(open) = self.descriptor(pid, &fd)?
            && let Object::File(file) = self.processes.open(open).object
        {
            self.files.link(file, &to);
        }
        Ok(())
    }

    fn special(&mut self, pid: u32, call: &Call<'_>, folder: Option<usize>, at: usize) -> Result<(), String> {
        if let Some(path) = self.path(pid, call, folder, at)? {
            if call.has(at + 1, "S_IFREG") {
                self.files.add(&path, Origin::New, true);
            } else {
                self.files.add_other(path);
            }
        }
        Ok(())
    }

    /// The `stat` family: kinds and sizes.
    fn look(&mut self, pid: u32, call: &Call<'_>, held: Option<u64>) -> Result<(), String> {
        let (folder, path, answer) = match call.name {
            b"fstat" | b"fstat64" => (Some(0), None, 1),
            b"newfstatat" | b"fstatat64" => (Some(0), Some(1), 2),
            b"statx" => (Some(0), Some(1), 4),
            _ => (None, Some(0), 1),
        };
        let answer = call.get(answer)?;
        let is_of_fd = match path {
            None => true,
            Some(at) => call.string(at)?.is_empty() || call.get(at)? == b"NULL",
        };
        if has(answer, "S_IFDIR") {
            if let (false, Some(at)) = (is_of_fd, path)
                && let Some(path) = self.path(pid, call, folder, at)?
            {
                self.files.add_folder(&path);
            }
            return Ok(());
        }
        let Some(size) = size(answer).filter(|_| has(answer, "S_IFREG")) else { return Ok(()) };
        let file = match (is_of_fd, path) {
            (false, Some(at)) => {
                let path = self.path(pid, call, folder, at)?;
                path.and_then(|path| self.files.find(&path))
            }
            _ => self.file(pid, call, 0, held)?.map(|(_, file)| file),
        };
        if let Some(file) = file {
            self.files.learn_size(file, size);
        }
        Ok(())
    }
}

/// The size in a printed `struct stat` or `statx`.
fn size(text: &[u8]) -> Option<u64> {
    let at = memchr::memmem::find(text, b"_size=")? + b"_size=".len();
    let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    str::from_utf8(&text[at..at + digits]).ok()?.parse().ok()
}
