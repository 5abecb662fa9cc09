//! The system calls of loop devices (Linux 5.8 and later), from the kernel's `include/uapi/linux/loop.h`.

use super::LoopOptions;
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, Setter, ioctl};
use std::ffi::c_void;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const LOOP_CONFIGURE: Opcode = 0x4C0A;
const LOOP_CTL_GET_FREE: Opcode = 0x4C82;

const LO_FLAGS_READ_ONLY: u32 = 1;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

#[derive(Debug)]
pub struct Control(OwnedFd);

impl Control {
    pub fn open() -> rustix::io::Result<Self> {
        rustix::fs::open("/dev/loop-control", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map(Self)
    }

    /// Number of a loop device that nobody uses, which the kernel makes if there is none.
    #[expect(unsafe_code, reason = "a system call that the library has no function for")]
    pub fn free(&self) -> rustix::io::Result<u32> {
        // SAFETY: the call takes no argument and gives a number.
        unsafe { ioctl(&self.0, GetFree) }
    }
}

/// A call whose result is the number it returns.
struct GetFree;

// SAFETY: the opcode takes no argument, so no memory is touched, and the output is the call's own return
// value.
#[expect(unsafe_code, reason = "a system call that the library has no function for")]
unsafe impl Ioctl for GetFree {
    type Output = u32;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        LOOP_CTL_GET_FREE
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(number: IoctlOutput, _: *mut c_void) -> rustix::io::Result<u32> {
        Ok(number.cast_unsigned())
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<Info>() == 232 && size_of::<Config>() == 304);

impl Config {
    /// Over the whole of an open file, with direct I/O, until the last user goes.
    pub fn new(backing: &OwnedFd, file: &Path, options: LoopOptions) -> Self {
        let mut file_name = [0; 64];
        // What the kernel shows of the name is cut, with a zero at its end.
        for (to, from) in file_name[..63].iter_mut().zip(file.as_os_str().as_bytes()) {
            *to = *from;
        }
        let read_only = if options.is_read_only { LO_FLAGS_READ_ONLY } else { 0 };
        let info = Info {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags: LO_FLAGS_DIRECT_IO | LO_FLAGS_AUTOCLEAR | read_only,
            file_name,
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        };
        let fd = backing.as_raw_fd().cast_unsigned();
        Self { fd, block_size: options.sector, info, reserved: [0; 8] }
    }

    #[expect(unsafe_code, reason = "a system call that the library has no function for")]
    pub fn apply(self, device: &OwnedFd) -> rustix::io::Result<()> {
        // SAFETY: the opcode takes a pointer to a `struct loop_config`, whose layout `Config` has, and only
        // reads it. The descriptor in it belongs to the caller's open file; the kernel takes a
        // reference of its own.
        unsafe { ioctl(device, Setter::<LOOP_CONFIGURE, Self>::new(self)) }
    }
}
