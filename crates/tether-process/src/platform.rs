//! Processes, sockets and limits of Linux: with `program_facts`, the only file that reads `/proc`.
//!
//! A PID names another process as soon as its owner is reaped. So nothing here signals: callers hold a pidfd
//! first, read here second, and check third that the pidfd's process still runs.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use procfs::ProcError;
use procfs::process::{Process, Stat, StatFlags};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};

/// States of sockets in `/proc/net/tcp`.
const LISTEN: &str = "0A";
const CLOSE_WAIT: &str = "08";

/// How many bytes of an environment are read at once; most are smaller.
const ENVIRONMENT_CHUNK: usize = 32 * 1024;

/// More than a line of `/proc/PID/stat` has: 52 fields, of which the name is the longest.
const STAT_LINE: usize = 2048;

/// What the link to a program ends in when its file is gone.
const DELETED: &[u8] = b" (deleted)";

/// What identifies a process beyond its PID, and where it hangs in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Another process may get it once this one has been reaped.
    pub pid: u32,
    /// PID of who started it, or of who has adopted it since.
    pub parent: u32,
    /// PID of the leader of its session.
    pub session: u32,
    /// Real user id of the owner.
    pub uid: u32,
    /// Clock ticks between boot and its start (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
    /// Ended, but not yet reaped by its parent.
    pub zombie: bool,
    /// It was forked, and runs no program of its own yet.
    pub is_fork: bool,
}

impl ProcessFacts {
    /// How long ago it was started, to a clock tick.
    pub fn age(&self) -> Duration {
        let ticks = read_ticks_since_boot().saturating_sub(self.start_ticks);
        Duration::from_millis(ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second())
    }
}

/// The id of this boot: PIDs and start ticks mean nothing across boots.
pub fn read_boot_id() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The home folder of this process's user in the user database. `None`: the account has none.
pub fn read_account_home() -> Option<PathBuf> {
    // The longest line of a user database that is read.
    let mut buffer = vec![0; 16 << 10];
    let mut found = std::ptr::null_mut();
    let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
    // SAFETY: all pointers are valid for the call, and the length is that of the buffer.
    let status = unsafe {
        let uid = rustix::process::getuid().as_raw();
        libc::getpwuid_r(uid, entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found)
    };
    if status != 0 || found.is_null() {
        return None;
    }
    // SAFETY: a found entry is initialised, and its strings are in `buffer`, which lives until the end.
    let home = unsafe { std::ffi::CStr::from_ptr(entry.assume_init_ref().pw_dir) };
    Some(PathBuf::from(OsStr::from_bytes(home.to_bytes()))).filter(|home| home.is_absolute())
}

/// The facts about `pid`; an error of kind `NotFound` when no such process is there.
pub fn read_facts(pid: u32) -> io::Result<ProcessFacts> {
    read_facts_of(&open_process(pid)?)
}

/// The clock ticks since boot, as [`ProcessFacts::start_ticks`] counts them: a process that is started later has no smaller
/// number.
pub fn read_ticks_since_boot() -> u64 {
    let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanoseconds) = (since_boot.tv_sec.unsigned_abs(), since_boot.tv_nsec.unsigned_abs());
    let ticks = rustix::param::clock_ticks_per_second();
    seconds * ticks + nanoseconds * ticks / 1_000_000_000
}

/// The name of `pid` as `ps` shows it, for messages.
pub fn read_name(pid: u32) -> Option<String> {
    open_process(pid).ok()?.stat().ok().map(|stat| stat.comm)
}

/// The command line of `pid`, the program first. Programs may have overwritten it with a title.
pub fn read_arguments(pid: u32) -> io::Result<Vec<OsString>> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline"))?;
    let words = line.strip_suffix(b"\0").unwrap_or(&line).split(|&byte| byte == 0);
    Ok(words.map(|word| OsString::from_vec(word.to_vec())).collect())
}

/// Whether a debugger traces `pid`. A process that is gone is not.
pub fn is_traced(pid: u32) -> bool {
    read_tracer(pid).is_some()
}

/// The process that traces `pid`; `None` also if `pid` is gone.
pub fn read_tracer(pid: u32) -> Option<u32> {
    let status = open_process(pid).ok()?.status().ok()?;
    u32::try_from(status.tracerpid).ok().filter(|tracer| *tracer != 0)
}

/// Where the program of this process lies, or what has replaced it.
pub fn find_own_program() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let before = program.as_os_str().as_bytes().strip_suffix(DELETED);
    let before = before.filter(|_| !program.exists()).map(|path| PathBuf::from(OsStr::from_bytes(path)));
    Ok(before.unwrap_or(program))
}

/// Whether the file at `path` is the one that `pid` runs; `None` if there is none.
pub fn runs_program(pid: u32, path: &Path) -> Option<bool> {
    let (there, run) = (path.metadata().ok()?, std::fs::metadata(format!("/proc/{pid}/exe")).ok()?);
    Some((there.dev(), there.ino()) == (run.dev(), run.ino()))
}

/// The program that `pid` runs; `None` if there is no such process.
pub fn program_path(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// Whether another file has taken the place of the program that `pid` runs.
pub fn is_program_replaced(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_ok_and(|program| program.as_os_str().as_bytes().ends_with(DELETED))
}

/// The inotify limits of our user.
#[derive(Clone, Copy, Debug)]
pub struct InotifyLimits {
    /// Folders, over all programs.
    pub watches: u64,
    /// Programs that watch, or parts of them.
    pub instances: u64,
    /// By all processes of our user.
    pub instances_used: u64,
}

/// The limits of our user, and how many instances are in use. Errors: `/proc` cannot be read.
pub fn read_inotify_limits() -> io::Result<InotifyLimits> {
    let limit = |name: &str| -> io::Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}"))?;
        text.trim().parse().map_err(io::Error::other)
    };
    let us = rustix::process::getuid().as_raw();
    let ours = list_processes()?.into_iter().filter(|facts| facts.uid == us);
    let links = ours.flat_map(|facts| descriptor_links(facts.pid));
    let instances_used = links.filter(|link| link == Path::new("anon_inode:inotify")).count() as u64;
    Ok(InotifyLimits { watches: limit("max_user_watches")?, instances: limit("max_user_instances")?, instances_used })
}

/// The TCP ports that `pid` listens on, in the order in which it has begun to.
pub fn list_ports_of(pid: u32) -> io::Result<Vec<u16>> {
    let mut sockets: Vec<(String, u16)> = listening_sockets()?
        .filter(|(_, socket)| has_open(pid, socket))
        .map(|(port, socket)| (format!("{socket:>32}"), port))
        .collect();
    // The numbers of sockets rise.
    sockets.sort();
    Ok(sockets.into_iter().map(|(_, port)| port).collect())
}

/// The value of `name` in the environment that `pid` was started with.
///
/// Some programs overwrite that area with their title (Chromium's renderers do): `None` proves nothing.
pub fn read_environment_value(pid: u32, name: &str) -> io::Result<Option<OsString>> {
    let [value] = read_environment_values(pid, [name])?;
    Ok(value)
}

/// As [`read_environment_value`], of several names at once.
pub fn read_environment_values<const N: usize>(pid: u32, names: [&str; N]) -> io::Result<[Option<OsString>; N]> {
    let mut environment = read_environment(pid)?.unwrap_or_default();
    Ok(names.map(|name| environment.remove(OsStr::new(name))))
}

/// The environment that `pid` was started with. `None`: it shows none, or not all of it, since it has none or is in the middle
/// of an exec (Linux, `environ_read`: each read looks at the memory that the process had when the file was opened, and
/// that is gone after an exec).
pub fn read_environment(pid: u32) -> io::Result<Option<HashMap<OsString, OsString>>> {
    let mut file = File::open(format!("/proc/{pid}/environ"))?;
    let mut bytes = vec![0; ENVIRONMENT_CHUNK];
    let mut length = 0;
    // One read is not interrupted by an exec; std's `read_to_end` would begin with one of 32 bytes.
    loop {
        match file.read(&mut bytes[length..])? {
            0 => break,
            read => length += read,
        }
        bytes.resize(length + ENVIRONMENT_CHUNK, 0);
    }
    bytes.truncate(length);
    Ok(bytes.strip_suffix(&[0]).map(|bytes| {
        let variables = bytes.split(|&byte| byte == 0).filter_map(|variable| {
            let at = variable.iter().position(|&byte| byte == b'=')?;
            Some((OsStr::from_bytes(&variable[..at]).to_owned(), OsStr::from_bytes(&variable[at + 1..]).to_owned()))
        });
        variables.collect()
    }))
}

/// The facts of every process that we may look at, without the threads of the kernel.
pub(crate) fn list_processes() -> io::Result<Vec<ProcessFacts>> {
    // One that ends while we walk is no error.
    Ok(list_pids()?.filter_map(read_listed_facts).collect())
}

/// The PIDs of all processes that we may look at.
pub(crate) fn list_pids() -> io::Result<impl Iterator<Item = u32>> {
    let names = std::fs::read_dir("/proc")?.flatten().map(|entry| entry.file_name());
    Ok(names.filter_map(|name| name.to_str()?.parse().ok()))
}

/// As [`read_facts`], with few system calls: a search reads those of all processes, and each end of a launch searches more than
/// once. `None`: it is gone, or a thread of the kernel.
pub(crate) fn read_listed_facts(pid: u32) -> Option<ProcessFacts> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(format!("/proc/{pid}"), flags, Mode::empty()).ok()?;
    let stat = rustix::fs::openat(&folder, "stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut line = [0; STAT_LINE];
    let length = rustix::io::read(&stat, &mut line).ok()?;
    let facts = parse_listed_facts(pid, line.get(..length)?)?;
    Some(ProcessFacts { uid: rustix::fs::fstat(&folder).ok()?.st_uid, ..facts })
}

/// The facts in a line of `/proc/PID/stat`, without the owner (proc_pid_stat(5)).
fn parse_listed_facts(pid: u32, line: &[u8]) -> Option<ProcessFacts> {
    // The name before it may be anything.
    let after_name = line.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(line.get(after_name.saturating_add(1)..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number.saturating_sub(3));
    let flags = StatFlags::from_bits_retain(field(9)?.parse().ok()?);
    (!flags.contains(StatFlags::PF_KTHREAD)).then_some(ProcessFacts {
        pid,
        parent: field(4)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        uid: 0,
        start_ticks: field(22)?.parse().ok()?,
        zombie: matches!(*field(3)?, "Z" | "X"),
        is_fork: flags.contains(StatFlags::PF_FORKNOEXEC),
    })
}

/// Whether anybody listens on `port`.
pub fn is_listened_on(port: u16) -> io::Result<bool> {
    Ok(listening_sockets()?.any(|(listens_on, _)| listens_on == port))
}

/// Whether one of these processes listens on any TCP port.
pub fn is_any_listening(candidates: &[u32]) -> io::Result<bool> {
    Ok(listening_sockets()?.any(|(_, socket)| candidates.iter().any(|&pid| has_open(pid, &socket))))
}

/// An input that is empty and never ends: a pipe whose only writer is its reader.
pub(crate) fn open_endless_input() -> io::Result<File> {
    let (reader, _writer) = pipe_with(PipeFlags::CLOEXEC)?;
    File::options().read(true).write(true).open(format!("/proc/self/fd/{}", reader.as_raw_fd()))
}

/// The first of `candidates` that holds a socket listening on `port`, whatever the address.
pub fn find_listener_among(port: u16, candidates: &[u32]) -> io::Result<Option<u32>> {
    let mut sockets = listening_sockets()?.filter(|(listens_on, _)| *listens_on == port);
    Ok(sockets.find_map(|(_, socket)| candidates.iter().copied().find(|&pid| has_open(pid, &socket))))
}

/// The first of `ports` on which one of `candidates` listens, whatever the address.
pub fn find_listened_port(ports: &[u16], candidates: &[u32]) -> io::Result<Option<u16>> {
    let sockets: Vec<(u16, String)> = listening_sockets()?.filter(|(port, _)| ports.contains(port)).collect();
    let is_held = |socket: &str| candidates.iter().any(|&pid| has_open(pid, socket));
    let is_listened = |port: &u16| sockets.iter().any(|(at, socket)| at == port && is_held(socket));
    Ok(ports.iter().copied().find(is_listened))
}

/// Every process we may look into that listens on `port`; for messages ("port 9222 is taken by …").
pub fn list_listeners(port: u16) -> io::Result<Vec<u32>> {
    let on_port = listening_sockets()?.filter(|(listens_on, _)| *listens_on == port);
    let sockets: Vec<String> = on_port.map(|(_, socket)| socket).collect();
    let listens = |pid: &u32| sockets.iter().any(|socket| has_open(*pid, socket));
    Ok(list_processes()?.iter().map(|facts| facts.pid).filter(listens).collect())
}

/// Every process we may look into that holds the pipe with this inode, except ourselves.
pub(crate) fn list_pipe_holders(inode: u64) -> io::Result<Vec<u32>> {
    let pipe = format!("pipe:[{inode}]");
    let others = list_processes()?.into_iter().map(|facts| facts.pid).filter(|&pid| pid != std::process::id());
    Ok(others.filter(|&pid| has_open(pid, &pipe)).collect())
}

/// Every process we may look into that has a file below `folder` open.
pub(crate) fn list_holders_below(folder: &Path) -> io::Result<Vec<ProcessFacts>> {
    Ok(list_processes()?.into_iter().filter(|facts| has_open_below(facts.pid, folder)).collect())
}

/// Whether `pid` has a file below `folder` open.
pub(crate) fn has_open_below(pid: u32, folder: &Path) -> bool {
    descriptor_links(pid).any(|target| target.starts_with(folder))
}

pub(super) fn open_process(pid: u32) -> io::Result<Process> {
    let pid = i32::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
    Process::new(pid).map_err(to_io_error)
}

/// The library's error as an `io::Error`; `NotFound` when there is no such process.
pub(super) fn to_io_error(cause: ProcError) -> io::Error {
    match cause {
        ProcError::NotFound(_) => io::ErrorKind::NotFound.into(),
        ProcError::PermissionDenied(_) => io::ErrorKind::PermissionDenied.into(),
        // Reading below the folder of a process that has just ended.
        ProcError::Io(cause, _) if cause.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            io::ErrorKind::NotFound.into()
        }
        ProcError::Io(cause, _) => cause,
        other => io::Error::other(other),
    }
}

fn read_facts_of(process: &Process) -> io::Result<ProcessFacts> {
    facts_of(process, &process.stat().map_err(to_io_error)?)
}

fn facts_of(process: &Process, stat: &Stat) -> io::Result<ProcessFacts> {
    Ok(ProcessFacts {
        pid: stat.pid.unsigned_abs(),
        parent: stat.ppid.unsigned_abs(),
        session: stat.session.unsigned_abs(),
        uid: process.uid().map_err(to_io_error)?,
        start_ticks: stat.starttime,
        zombie: matches!(stat.state, 'Z' | 'X'),
        is_fork: StatFlags::from_bits_retain(stat.flags).contains(StatFlags::PF_FORKNOEXEC),
    })
}

/// The ports that are listened on, each with its socket as `/proc/PID/fd` names it.
///
/// The kernel lists listening sockets before all others, and makes each line when it is read. Its walk over the
/// others takes milliseconds, so we read line by line and stop before it.
fn listening_sockets() -> io::Result<impl Iterator<Item = (u16, String)>> {
    /// Less than a line, so that no read makes two.
    const READ: usize = 128;
    let v4 = File::open("/proc/net/tcp")?;
    // A machine without IPv6 has no such file. Opened only when it is needed.
    let v6 = std::iter::once_with(|| File::open("/proc/net/tcp6")).flatten();
    let lines = |file| BufReader::with_capacity(READ, file).lines().map_while(io::Result::ok).skip(1);
    let listening = move |file| lines(file).map_while(|line| parse_listening_socket(&line));
    let all = std::iter::once(v4).chain(v6).flat_map(listening);
    Ok(all.map(|(port, inode)| (port, format!("socket:[{inode}]"))))
}

/// Local port, state and inode of a socket, from its line of `/proc/net/tcp`.
fn parse_socket(line: &str) -> Option<(u16, &str, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (_, port) = words.nth(1)?.rsplit_once(':')?;
    let (state, inode) = (words.nth(1)?, words.nth(5)?);
    Some((u16::from_str_radix(port, 16).ok()?, state, inode.parse().ok()?))
}

/// Port and inode of a line of `/proc/net/tcp`, if it is a listening socket's.
fn parse_listening_socket(line: &str) -> Option<(u16, u64)> {
    parse_socket(line).filter(|(_, state, _)| *state == LISTEN).map(|(port, _, inode)| (port, inode))
}

/// Whether a program that listens on `port` has connections whose other end is gone, and has not closed its own.
pub fn has_dead_connections(port: u16) -> io::Result<bool> {
    let is_dead = |line: &str| parse_socket(line).is_some_and(|(local, state, _)| (local, state) == (port, CLOSE_WAIT));
    let v6 = std::fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    Ok(std::fs::read_to_string("/proc/net/tcp")?.lines().chain(v6.lines()).any(is_dead))
}

/// Whether our user has made the connection from `from` to `to`, both on this machine.
pub fn is_own_connection(from: SocketAddr, to: SocketAddr) -> io::Result<bool> {
    let table = if from.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
    let us = rustix::process::getuid().as_raw();
    let ends = format!(" {} {} ", format_table_address(from), format_table_address(to));
    let text = std::fs::read_to_string(table)?;
    let owner = |line: &str| line.split_ascii_whitespace().nth(7)?.parse().ok();
    Ok(text.lines().find(|line| line.contains(&ends)).and_then(owner) == Some(us))
}

/// The user whose process listens for connections to an address of this machine; `None` when nobody does. Of several
/// listeners, the most specific one gets the connections.
pub fn find_listener_owner(address: SocketAddr) -> io::Result<Option<u32>> {
    let port = address.port();
    let any_v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let (v4, v6) = match address.ip().to_canonical() {
        IpAddr::V4(ip) => {
            let any_v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
            (vec![SocketAddr::from((ip, port)), any_v4], vec![SocketAddr::from((ip.to_ipv6_mapped(), port)), any_v6])
        }
        IpAddr::V6(ip) => (Vec::new(), vec![SocketAddr::from((ip, port)), any_v6]),
    };
    for (table, candidates) in [("/proc/net/tcp", v4), ("/proc/net/tcp6", v6)] {
        let text = match std::fs::read_to_string(table) {
            // A machine without IPv6 has no such file.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
            text => text?,
        };
        let owner = candidates.iter().find_map(|at| text.lines().find_map(|line| parse_listener_owner(line, *at)));
        if owner.is_some() {
            return Ok(owner);
        }
    }
    Ok(None)
}

/// The owner in a line of `/proc/net/tcp`, if it is the one of the socket that listens at the address.
fn parse_listener_owner(line: &str, at: SocketAddr) -> Option<u32> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let is_listener = words.get(1) == Some(&format_table_address(at).as_str()) && words.get(3) == Some(&LISTEN);
    words.get(7).filter(|_| is_listener)?.parse().ok()
}

/// The kernel prints an address in words of its own byte order.
fn format_table_address(address: SocketAddr) -> String {
    let words = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = words.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    format!("{}:{:04X}", words.map(|word| format!("{word:08X}")).collect::<String>(), address.port())
}

/// Whether `pid` has `target` open.
fn has_open(pid: u32, target: &str) -> bool {
    descriptor_links(pid).any(|link| link == Path::new(target))
}

/// What the open descriptors of `pid` link to; another user's process counts as having none.
fn descriptor_links(pid: u32) -> impl Iterator<Item = PathBuf> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    // Reads the links only: a `stat` of each descriptor takes ten times as long.
    descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_dead_between_the_end_of_its_peer_and_its_own() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let peer = std::net::TcpStream::connect(address).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        assert!(!has_dead_connections(address.port()).unwrap());
        drop(peer);
        assert_eq!(std::io::Read::read(&mut accepted, &mut [0]).unwrap(), 0);
        assert!(has_dead_connections(address.port()).unwrap());
        drop(accepted);
        assert!(!has_dead_connections(address.port()).unwrap());
    }

    #[test]
    fn our_own_facts_do_not_change() {
        let me = std::process::id();
        let first = read_facts(me).unwrap();
        assert_eq!((first.pid, first.uid, first.zombie), (me, rustix::process::getuid().as_raw(), false));
        assert!(first.start_ticks > 0);
        assert_eq!(read_facts(me).unwrap().start_ticks, first.start_ticks);
        assert!(list_processes().unwrap().contains(&first));
        assert_eq!(read_boot_id().unwrap().len(), 36);
    }

    #[test]
    fn listed_facts_are_those_of_the_line_whatever_the_name() {
        let line = |flags: u32| {
            let before = format!("7 (a) R 1 (b) S 3 7 5 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 ");
            [before.as_bytes(), b"4242 1 2 18446744073709551615\n"].concat()
        };
        let facts =
            ProcessFacts { pid: 7, parent: 3, session: 5, uid: 0, start_ticks: 4242, zombie: false, is_fork: false };
        assert_eq!(parse_listed_facts(7, &line(0x0040_0000)), Some(facts));
        let forked = ProcessFacts { is_fork: true, ..facts };
        assert_eq!(parse_listed_facts(7, &line(0x0040_0040)), Some(forked));
        assert_eq!(parse_listed_facts(7, &line(StatFlags::PF_KTHREAD.bits())), None);
        assert_eq!(parse_listed_facts(7, b"7 (cut"), None);
    }

    #[test]
    fn a_process_that_is_not_there_is_not_found() {
        for pid in [u32::MAX, 0, i32::MAX as u32] {
            assert_eq!(read_facts(pid).unwrap_err().kind(), io::ErrorKind::NotFound, "{pid}");
        }
    }

    #[test]
    fn only_listening_sockets_are_read_from_the_table() {
        let check = |line: &str, expect: Option<(u16, u64)>| assert_eq!(parse_listening_socket(line), expect, "{line}");
        let v4 = "   0: 0100007F:A78B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 231912 1 000000001ca1349d 100 0 0 10 0";
        check(v4, Some((0xa78b, 231912)));
        check(&v4.replace(" 0A ", " 01 "), None);
        let v6 = "   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0000000000000000 100 0 0 10 0";
        check(v6, Some((8080, 77)));
        check("", None);
    }

    #[test]
    fn a_connection_that_we_have_made_is_ours_and_one_that_is_not_there_is_nobodys() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(address) else { continue };
            let to = listener.local_addr().unwrap();
            let dialled = std::net::TcpStream::connect(to).unwrap();
            let from = dialled.local_addr().unwrap();
            assert!(is_own_connection(from, to).unwrap(), "{from} {to}");
            assert!(!is_own_connection(to, "127.0.0.1:1".parse().unwrap()).unwrap());
        }
        assert_eq!(format_table_address("127.0.0.1:42891".parse().unwrap()), "0100007F:A78B");
    }

    #[test]
    fn a_listener_has_the_owner_of_the_process_that_bound_it() {
        let us = rustix::process::getuid().as_raw();
        for bound in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(bound) else { continue };
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port()));
            assert_eq!(find_listener_owner(address).unwrap(), Some(us), "{bound}");
        }
        let line =
            " 0: 0100007F:0035 00000000:0000 0A 00000000:00000000 00:00000000 00000000 65534 0 7 1 0 100 0 0 10 0";
        assert_eq!(parse_listener_owner(line, "127.0.0.1:53".parse().unwrap()), Some(65534));
        assert_eq!(parse_listener_owner(line, "0.0.0.0:53".parse().unwrap()), None);
        assert_eq!(parse_listener_owner(&line.replace(" 0A ", " 01 "), "127.0.0.1:53".parse().unwrap()), None);
    }

    #[test]
    fn the_listener_of_a_port_is_found_among_candidates_only() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may have no IPv6.
            let Ok(listener) = std::net::TcpListener::bind(address) else { continue };
            the_listener_is_found(listener);
        }
    }

    fn the_listener_is_found(listener: std::net::TcpListener) {
        let port = listener.local_addr().unwrap().port();
        let me = std::process::id();
        assert_eq!(find_listener_among(port, &[1, me]).unwrap(), Some(me));
        assert_eq!(find_listener_among(port, &[1]).unwrap(), None);
        assert!(list_listeners(port).unwrap().contains(&me) && is_listened_on(port).unwrap());
        drop(listener);
        assert_eq!(find_listener_among(port, &[me]).unwrap(), None);
        // Another test that forks in this moment holds the socket until its exec.
        let started = std::time::Instant::now();
        while is_listened_on(port).unwrap() {
            assert!(started.elapsed().as_secs() < 60, "a closed socket is still listed");
        }
    }
}
