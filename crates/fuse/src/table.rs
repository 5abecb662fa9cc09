//! What the system knows: mounts, loop devices, who has a file open.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

pub const NAME: &str = "nandscape";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    pub point: PathBuf,
    pub kind: String,
    pub source: PathBuf,
}

impl MountEntry {
    /// Whether it is a mount of ours. The type has the name in it where `fusermount3` has mounted.
    pub fn is_ours(&self) -> bool {
        self.source == Path::new(NAME) && (self.kind == "fuse" || self.kind == format!("fuse.{NAME}"))
    }
}

/// The mounts that this process sees.
pub fn mounts() -> Vec<MountEntry> {
    fs::read_to_string("/proc/self/mountinfo").map(|text| parse_mounts(&text)).unwrap_or_default()
}

/// Lines are `id parent major:minor root point options [tags] - type source options`.
fn parse_mounts(text: &str) -> Vec<MountEntry> {
    let line = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?;
        let mut after = after.split(' ');
        Some(MountEntry {
            point: unescape(point),
            kind: after.next()?.to_owned(),
            source: unescape(after.next()?),
        })
    };
    text.lines().filter_map(line).collect()
}

/// Blanks, tabs, newlines and backslashes stand there as a backslash and three octal digits.
fn unescape(field: &str) -> PathBuf {
    let bytes = field.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = (bytes[at] == b'\\').then(|| bytes.get(at + 1..at + 4)).flatten();
        let byte = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        out.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 4 } else { 1 };
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

/// Loop devices whose file lies in `dir`, with that file.
pub fn loop_devices(dir: &Path) -> Vec<(PathBuf, PathBuf)> {
    let Ok(entries) = fs::read_dir("/sys/block") else { return Vec::new() };
    let mut found: Vec<(PathBuf, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let file = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
            let file = PathBuf::from(file.trim_end_matches('\n'));
            file.starts_with(dir).then(|| (Path::new("/dev").join(entry.file_name()), file))
        })
        .collect();
    found.sort();
    found
}

/// Who uses a block device: mounts and swap.
pub fn users_of_device(device: &Path) -> Vec<String> {
    let mounted = mounts().into_iter().filter(|mount| mount.source == device);
    let mut users: Vec<String> = mounted.map(|mount| format!("mount {}", mount.point.display())).collect();
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().any(|line| line.split_whitespace().next().map(Path::new) == Some(device)) {
        users.push("swap".to_owned());
    }
    users.extend(processes(|path| path == device));
    users
}

/// Who uses a mount: loop devices over its files, and processes.
pub fn users_of_mount(dir: &Path) -> Vec<String> {
    let mut users = Vec::new();
    for (device, file) in loop_devices(dir) {
        let by = users_of_device(&device);
        let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
        users.push(format!("{} over {}{by}", device.display(), file.display()));
    }
    users.extend(processes(|path| path.starts_with(dir)));
    users
}

/// Processes other than this one that have such a path open or stand in it, as far as this user may see them.
fn processes(is_meant: impl Fn(&Path) -> bool) -> Vec<String> {
    let own = std::process::id();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let uses = |pid: u32| {
        let base = PathBuf::from(format!("/proc/{pid}"));
        let open = fs::read_dir(base.join("fd")).into_iter().flatten().flatten().map(|fd| fd.path());
        let links = open.chain([base.join("cwd"), base.join("root")]);
        links.filter_map(|link| fs::read_link(link).ok()).any(|path| is_meant(&path))
    };
    let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let mut users: Vec<u32> = pids.filter(|pid| *pid != own && uses(*pid)).collect();
    users.sort_unstable();
    users.into_iter().map(|pid| format!("process {pid} ({})", name(pid).trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_table_is_read_with_blanks_and_tags() {
        let text = "36 35 7:3 / /mnt/with\\040blank rw,noatime shared:1 - ext4 /dev/loop3 rw\n\
                    40 35 0:52 / /srv/flash rw - fuse.nandscape nandscape rw,user_id=0\n\
                    odd line\n";
        let mounts: [MountEntry; 2] = parse_mounts(text).try_into().expect("two lines are mounts");
        let entry = |point: &str, kind: &str, source: &str| MountEntry {
            point: point.into(),
            kind: kind.to_owned(),
            source: source.into(),
        };
        assert_eq!(
            mounts,
            [entry("/mnt/with blank", "ext4", "/dev/loop3"), entry("/srv/flash", "fuse.nandscape", NAME)]
        );
        assert_eq!(mounts.map(|mount| mount.is_ours()), [false, true]);
    }

    #[test]
    fn this_machine_has_a_root_mount() {
        assert!(mounts().iter().any(|mount| mount.point == Path::new("/")));
    }
}
