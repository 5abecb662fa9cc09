//! A mapped file that outlives the loss of its pages.
//!
//! Where the file system cannot provide a mapped page (the file was truncated, a write needs room that is not
//! there, a sector is bad), the kernel sends SIGBUS to the thread that touched it, which by default ends the
//! process. The handler here maps an anonymous page in that place, fills it with what the file still has, and
//! notes the loss ([`Mapping::is_lost`]); the access is then repeated. systemd's journal does the same
//! (`src/basic/sigbus.c`). Whoever uses the mapping checks the note before it believes what it read or wrote.
//!
//! Faults at other addresses go to the handler that was there before.

use memmap2::{MmapMut, MmapOptions};
use nandscape_files::os::LockedFile;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Whether writes through a mapping reach the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    Shared,
    /// They stay in memory.
    Private,
}

/// The first bytes of a file, mapped.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// Unmapped before the region is given back, so that the region never names another mapping.
    map: Option<MmapMut>,
    region: &'static Region,
    /// The handler reads from it.
    _file: Arc<LockedFile>,
}

impl Mapping {
    /// Maps the first `length` bytes of a file, which has as many and which this process has locked.
    #[expect(unsafe_code, reason = "a mapped file")]
    pub fn new(file: &Arc<LockedFile>, length: usize, writes: Writes) -> io::Result<Self> {
        install()?;
        let mut options = MmapOptions::new();
        options.len(length);
        // SAFETY: the file is locked. Others that keep to the lock do not change it; one that does not can
        // make bytes change under us, which are read as plain bytes and verified by their checksums.
        // Pages that the file loses are replaced by the handler.
        let map = unsafe {
            match writes {
                Writes::Shared => options.map_mut(&***file),
                Writes::Private => options.map_copy(&***file),
            }
        }?;
        let region = Region::take(&map, file);
        Ok(Self { map: Some(map), region, _file: Arc::clone(file) })
    }

    /// Whether a page was lost: reads and writes since this was last false may differ from the file.
    #[inline]
    pub fn is_lost(&self) -> bool {
        // The handler ran on the thread that touched the page.
        self.region.is_lost.load(Ordering::Relaxed)
    }
}

impl Deref for Mapping {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.map.as_deref().expect("present until it is dropped")
    }
}

impl DerefMut for Mapping {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.map.as_deref_mut().expect("present until it is dropped")
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.map = None;
        self.region.give_back();
    }
}

/// Addresses that the handler knows. It walks through them without a lock, so they are reused, never freed.
#[derive(Debug)]
struct Region {
    start: AtomicUsize,
    /// 0 while nothing is mapped there.
    length: AtomicUsize,
    descriptor: AtomicI32,
    is_lost: AtomicBool,
    next: *const Region,
}

// SAFETY: `next` is written before the region is published and never changes; its target is never freed.
#[expect(unsafe_code, reason = "a list without a lock")]
unsafe impl Sync for Region {}

static REGIONS: AtomicPtr<Region> = AtomicPtr::new(std::ptr::null_mut());
static UNUSED: Mutex<Vec<&'static Region>> = Mutex::new(Vec::new());

impl Region {
    fn take(map: &MmapMut, file: &File) -> &'static Self {
        let unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let region = unused.unwrap_or_else(Self::publish);
        region.is_lost.store(false, Ordering::Relaxed);
        region.descriptor.store(file.as_raw_fd(), Ordering::Relaxed);
        region.start.store(map.as_ptr().addr(), Ordering::Release);
        region.length.store(map.len(), Ordering::Release);
        region
    }

    /// Adds a region to the list.
    fn publish() -> &'static Self {
        let mut region = Box::new(Self {
            start: AtomicUsize::new(0),
            length: AtomicUsize::new(0),
            descriptor: AtomicI32::new(-1),
            is_lost: AtomicBool::new(false),
            next: std::ptr::null(),
        });
        let mut first = REGIONS.load(Ordering::Acquire);
        loop {
            region.next = first;
            let region_at = Box::into_raw(region);
            match REGIONS.compare_exchange(first, region_at, Ordering::AcqRel, Ordering::Acquire) {
                #[expect(unsafe_code, reason = "a list without a lock")]
                // SAFETY: it was a box a moment ago and is never freed.
                Ok(_) => return unsafe { &*region_at },
                Err(other) => {
                    first = other;
                    #[expect(unsafe_code, reason = "a list without a lock")]
                    // SAFETY: nobody else has seen it.
                    {
                        region = unsafe { Box::from_raw(region_at) };
                    }
                }
            }
        }
    }

    fn give_back(&'static self) {
        self.length.store(0, Ordering::Release);
        UNUSED.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Whether an address lies in it. Its own thread sees the region as it is; of another's, which may change
    /// meanwhile, it matters only that the answer is no, as it is: while `length` is not 0, `start` does
    /// not change, and no other mapping has these addresses.
    fn holds(&self, address: usize) -> bool {
        let length = self.length.load(Ordering::Acquire);
        let start = self.start.load(Ordering::Acquire);
        length == self.length.load(Ordering::Acquire) && address.wrapping_sub(start) < length
    }

    /// Maps an anonymous page in place of a lost one, with what the file still has. Async-signal-safe.
    #[expect(unsafe_code, reason = "a page is mapped anew")]
    fn replace_page(&self, address: usize) -> bool {
        // SAFETY: asks for a constant.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let page = address & !(page_bytes - 1);
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
        self.is_lost.store(true, Ordering::Relaxed);
        // SAFETY: the page lies in a mapping in use: the interrupted thread touches it through a borrow of
        // the `Mapping`. Only its backing changes: the bytes are those of the file, or zeroes.
        let mapped = unsafe {
            libc::mmap(std::ptr::with_exposed_provenance_mut(page), page_bytes, access, flags, -1, 0)
        };
        if mapped == libc::MAP_FAILED {
            return false;
        }
        let offset = (page - self.start.load(Ordering::Relaxed)).cast_signed() as libc::off_t;
        // SAFETY: mapped just now. What cannot be read stays zero, which no record with a checksum is.
        unsafe { libc::pread(self.descriptor.load(Ordering::Relaxed), mapped, page_bytes, offset) };
        true
    }
}

/// The handler that was there before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once.
#[expect(unsafe_code, reason = "a signal handler")]
fn install() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut is_installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_installed {
        return Ok(());
    }
    // SAFETY: `sigaction` is plain data, for which zeroes are a value; the kernel fills the one and reads the
    // other. The handler calls only what is async-signal-safe. It runs on the alternate stack where there
    // is one, as the standard library's does for its guard pages.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        let _ = BEFORE.set(before);
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_bus_error;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        if libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    *is_installed = true;
    Ok(())
}

#[expect(unsafe_code, reason = "a signal handler")]
extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t`, and `errno` is the thread's own. A code above 0 means
    // that the kernel itself sent the signal for an access, so the address is there.
    unsafe {
        let errno = *libc::__errno_location();
        if (*info).si_code > 0 {
            let address = (*info).si_addr().addr();
            let mut at = REGIONS.load(Ordering::Acquire).cast_const();
            while let Some(region) = at.as_ref() {
                if region.holds(address) && region.replace_page(address) {
                    *libc::__errno_location() = errno;
                    return;
                }
                at = region.next;
            }
        }
        *libc::__errno_location() = errno;
        pass_on(signal, info, context);
    }
}

/// Does what would have been done without the handler here.
///
/// # Safety
///
/// To be called by the handler with its own arguments.
#[expect(unsafe_code, reason = "a signal handler")]
unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.get().filter(|before| ![libc::SIG_DFL, libc::SIG_IGN].contains(&before.sa_sigaction));
    // SAFETY: a value that is neither of the two constants is a function, with the arguments that its flags
    // say. Otherwise the default is restored: the access is repeated and ends the process.
    unsafe {
        match before {
            Some(before) if before.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute(before.sa_sigaction);
                handler(signal, info, context);
            }
            Some(before) => {
                let handler: extern "C" fn(c_int) = std::mem::transmute(before.sa_sigaction);
                handler(signal);
            }
            None => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
