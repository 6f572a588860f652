//! The environment of a program that is started for a launch: it has the program's own PID, which is known only after
//! the fork.
//!
//! Everything that is allocated is allocated before the fork; after it, digits are written and one pointer is set.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;

use super::environment::LAUNCH_SESSION;

/// The digits of the largest PID.
const DIGITS: usize = 10;

// SAFETY: the C library declares it so.
unsafe extern "C" {
    /// The environment that `exec` passes on.
    static mut environ: *const *const libc::c_char;
}

/// The environment in the form of `exec`, with a place for the PID.
pub(super) struct LaunchEnvironment {
    /// They own what `pointers` refers to, and are not read again.
    _entries: Vec<CString>,
    /// Ends with a null pointer.
    pointers: Vec<*const libc::c_char>,
    /// Where the digits of the PID begin: inside the last entry, which this pointer owns.
    digits: *mut u8,
}

// SAFETY: the pointers refer to memory on the heap that the value itself owns, and only `apply_in_child` writes to it,
// which is called in a process with one thread.
unsafe impl Send for LaunchEnvironment {}
// SAFETY: as above.
unsafe impl Sync for LaunchEnvironment {}

impl LaunchEnvironment {
    /// `env` and [`LAUNCH_SESSION`]. Errors: a zero byte in a name or a value.
    pub(super) fn new(env: &BTreeMap<OsString, OsString>) -> io::Result<LaunchEnvironment> {
        let entry = |(name, value): (&OsString, &OsString)| {
            CString::new([name.as_bytes(), value.as_bytes()].join(&b'=')).map_err(io::Error::other)
        };
        let others = env.iter().filter(|(name, _)| *name != OsStr::new(LAUNCH_SESSION));
        let entries = others.map(entry).collect::<io::Result<Vec<CString>>>()?;
        let session = CString::new(format!("{LAUNCH_SESSION}={}", "0".repeat(DIGITS))).map_err(io::Error::other)?;
        let session = session.into_raw();
        // SAFETY: the entry is longer than the name and its `=`.
        let digits = unsafe { session.add(LAUNCH_SESSION.len() + 1) }.cast::<u8>();
        let pointers = entries.iter().map(|entry| entry.as_ptr());
        let pointers = pointers.chain([session.cast_const(), std::ptr::null()]).collect();
        Ok(LaunchEnvironment { _entries: entries, pointers, digits })
    }

    /// Makes it the environment of this process.
    ///
    /// # Safety
    /// Only between fork and exec: there is no other thread that reads the environment, and nothing frees the value.
    pub(super) unsafe fn apply_in_child(&self) {
        let mut pid = std::process::id();
        for place in (0..DIGITS).rev() {
            // SAFETY: `digits` has DIGITS bytes.
            unsafe { self.digits.add(place).write(b'0' + (pid % 10) as u8) };
            pid /= 10;
        }
        // SAFETY: by the contract of this function.
        unsafe { environ = self.pointers.as_ptr() };
    }
}

impl Drop for LaunchEnvironment {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from `CString::into_raw`; its zero byte is where it was.
        drop(unsafe { CString::from_raw(self.digits.sub(LAUNCH_SESSION.len() + 1).cast()) });
    }
}
