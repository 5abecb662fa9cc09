//! What an image was opened under: the start of the machine and the mount of its file system. While both are
//! the same, what a process wrote to the page cache is there when it has died; a disk that went away and came
//! back has lost it, and is mounted anew.

use crate::state::boot_id;
use nandscape_files::os;
use std::fs::File;

/// Tells starts of the machine and mounts apart; zeroes, which equal nothing, where the system does not say.
pub(crate) fn session_of(file: &File) -> [u8; 16] {
    let mut id = boot_id();
    if id != [0; 16]
        && let Ok(mount) = os::mount_id(file)
    {
        for (byte, of_mount) in id.iter_mut().zip(mount.to_le_bytes()) {
            *byte ^= of_mount;
        }
    }
    id
}

#[cfg(test)]
mod tests {
    use super::session_of;
    use std::fs::File;
    use std::io::Write as _;
    use std::process::Command;

    #[test]
    fn another_mount_of_the_same_file_is_another_session() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (dir.path().join("here"), dir.path().join("there"));
        std::fs::create_dir_all(&here).unwrap();
        std::fs::create_dir_all(&there).unwrap();
        std::fs::write(here.join("file"), "x").unwrap();
        let session = |path: &std::path::Path| session_of(&File::open(path.join("file")).unwrap());
        assert_eq!(session(&here), session(&here));
        let bound = Command::new("mount").arg("--bind").args([&here, &there]).output();
        if !bound.is_ok_and(|output| output.status.success()) {
            let _ = writeln!(std::io::stderr(), "SKIP: sessions of two mounts: only root can mount");
            return;
        }
        let other = session(&there);
        let again = {
            assert!(Command::new("umount").arg(&there).status().unwrap().success());
            assert!(Command::new("mount").arg("--bind").args([&here, &there]).status().unwrap().success());
            let again = session(&there);
            assert!(Command::new("umount").arg(&there).status().unwrap().success());
            again
        };
        assert_ne!(session(&here), other);
        // Kernels before 6.8 use the numbers of mounts again.
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let version: Vec<u32> =
            kernel.split(['.', '-']).map_while(|part| part.parse().ok()).take(2).collect();
        assert!(other != again || version < vec![6, 8], "Linux {kernel}");
    }
}
