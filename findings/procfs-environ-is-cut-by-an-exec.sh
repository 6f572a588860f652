#!/usr/bin/env bash
# procfs 0.18.0 (crates.io): what `Process::environ` returns for a process that runs another program in its place (exec).
#
# Expected: the environment before, the environment after, or an error.
# Seen: also an empty map, and a map with the first variables only, both as `Ok`. Linux keeps the memory of the program that ran
# when the file was opened, and has nothing more to read once an exec has replaced it; `std::io::Read::read_to_end`, by which
# procfs reads, begins with a read of 32 bytes, so an exec between its first two reads cuts the environment there.
# What follows: who looks for processes by a variable misses those in the middle of an exec. One read into a large buffer is
# whole or empty; text that does not end in a NUL byte is cut; what is empty may be any process.
#
# Needs: cargo, a linker, Linux. Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export CARGO_TARGET_DIR="$folder/target"
pinned=procfs@0.18.0
mkdir src
cat > Cargo.toml <<TOML
[package]
name = "reader"
version = "0.1.0"
edition = "2021"

[dependencies]
procfs = { version = "=${pinned#*@}", default-features = false }
TOML
cat > src/main.rs <<'RUST'
use std::{ffi::OsStr, process::Command};

fn main() {
    let script = "exec sh \"$0\"";
    std::fs::write("again", script).unwrap();
    let mut child = Command::new("sh").arg("again").env_clear().env("A_FIRST", "x".repeat(40)).env("PATH", std::env::var("PATH").unwrap())
        .env("Z_LAST", "here").spawn().unwrap();
    let (mut whole, mut empty, mut cut) = (0, 0, 0);
    for _ in 0..200_000 {
        let process = procfs::process::Process::new(child.id() as i32).unwrap();
        match process.environ() {
            Ok(read) if read.get(OsStr::new("Z_LAST")).is_some_and(|it| it == "here") => whole += 1,
            Ok(read) if read.is_empty() => empty += 1,
            Ok(_) => cut += 1,
            Err(_) => {}
        }
        if whole > 100 && empty > 10 && cut > 10 {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let seen = |count: i32| if count > 0 { "yes" } else { "no" };
    println!("whole: {}, empty: {}, cut: {}", seen(whole), seen(empty), seen(cut));
}
RUST
cargo build --quiet --release > build.log 2>&1 || { cat build.log; exit 1; }
seen=$(target/release/reader)
echo "$seen"
[ "$seen" = 'whole: yes, empty: yes, cut: yes' ] || { echo 'changed: before, all three were seen'; exit 1; }
echo 'as it was seen'
