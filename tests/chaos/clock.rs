//! The wall clock of the `tether` processes: a library that is loaded before theirs adds an offset, which can be changed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

use procfs::process::MMapPath;

use crate::support::Sandbox;

/// The file with the offset, in seconds.
const VARIABLE: &str = "CHAOS_CLOCK";

const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *offset;

/* Its descriptor is closed again: the process has as many as without it. */
__attribute__((constructor)) static void load(void) {
  const char *path = getenv("CHAOS_CLOCK");
  if (!path || strcmp(program_invocation_short_name, "tether")) return;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *page = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (page != MAP_FAILED) offset = page;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, now);
  if (!failed && offset && clock == CLOCK_REALTIME) now->tv_sec += *offset;
  return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
  struct timespec at;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &at);
  now->tv_sec = at.tv_sec;
  now->tv_usec = at.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  if (now) *now = at.tv_sec;
  return at.tv_sec;
}
"#;

pub struct Clock {
    file: File,
    pub shim: PathBuf,
}

impl Clock {
    /// Compiles the library, and has all `tether` of the sandbox load it.
    pub fn of(sandbox: &mut Sandbox) -> Clock {
        let [source, shim, offset] = ["clock.c", "clock.so", "clock"].map(|name| sandbox.home().join(name));
        std::fs::write(&source, LIBRARY).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).args([&shim, &source]).arg("-ldl");
        assert!(compiler.status().unwrap().success());
        let file = File::create_new(&offset).unwrap();
        file.write_all_at(&0_i64.to_ne_bytes(), 0).unwrap();
        sandbox.more_variables.extend([("LD_PRELOAD", shim.clone().into()), (VARIABLE, offset.into())]);
        Clock { file, shim }
    }

    /// Sets how far it is off, in seconds.
    pub fn set(&self, offset: i64) {
        // As long as before: it takes no room on a full disk.
        self.file.write_all_at(&offset.to_ne_bytes(), 0).unwrap();
    }

    /// Whether a process has loaded it.
    pub fn is_loaded(&self, pid: u32) -> bool {
        let maps = procfs::process::Process::new(pid as i32).and_then(|process| process.maps());
        let is_shim = |path: &MMapPath| matches!(path, MMapPath::Path(path) if *path == self.shim);
        maps.is_ok_and(|maps| maps.iter().any(|map| is_shim(&map.pathname)))
    }
}
