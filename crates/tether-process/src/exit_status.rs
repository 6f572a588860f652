//! How a process has ended that is not our child: Linux keeps that with its pidfd once it was reaped (since 6.15), and shows it of
//! a zombie before.
//!
//! Does not wait.

use std::os::fd::BorrowedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::ioctl::{self, Opcode, Updater, opcode};

use super::process_handle::ProcessExit;

/// `struct pidfd_info` of `<linux/pidfd.h>`, in its first version.
#[derive(Default)]
#[repr(C)]
struct PidfdInfo {
    mask: u64,
    cgroup_id: u64,
    /// Process, group, parent, and the user and group ids.
    ids: [u32; 11],
    /// As `wait` returns it.
    exit_code: i32,
}

/// `PIDFD_GET_INFO`.
const GET_INFO: Opcode = opcode::read_write::<PidfdInfo>(0xFF, 11);
/// `PIDFD_INFO_EXIT`.
const HAS_EXIT: u64 = 1 << 3;

/// How the process of a pidfd, which has ended, did so. Unknown to an older kernel once its parent has reaped it.
pub(super) fn read_exit(pidfd: BorrowedFd<'_>, pid: u32, start_ticks: u64) -> ProcessExit {
    // Its parent may reap it between two of these.
    let status = read_reaped(pidfd).or_else(|| read_zombie(pid, start_ticks)).or_else(|| read_reaped(pidfd));
    status.map_or(ProcessExit::Unknown, |status| ExitStatus::from_raw(status).into())
}

fn read_reaped(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let mut info = PidfdInfo { mask: HAS_EXIT, ..PidfdInfo::default() };
    // SAFETY: this request reads and writes one `struct pidfd_info`, of the size that its number tells the kernel.
    unsafe { ioctl::ioctl(pidfd, Updater::<GET_INFO, PidfdInfo>::new(&mut info)) }.ok()?;
    (info.mask & HAS_EXIT != 0).then_some(info.exit_code)
}

/// Zero is also what the kernel shows of a process that we may not look into, and tells nothing.
fn read_zombie(pid: u32, start_ticks: u64) -> Option<i32> {
    let stat = procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?;
    stat.exit_code.filter(|status| stat.starttime == start_ticks && *status != 0)
}
