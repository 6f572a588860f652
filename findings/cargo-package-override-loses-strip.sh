#!/usr/bin/env bash
# Cargo 1.95.0: what `strip` of a profile is for a package that has an override in that profile.
#
# Expected: an override of a package changes what it names, and leaves all else as the profile has it.
# Seen: an override of the package with the binary, whatever it names, sets `strip` back to Cargo's default ("debuginfo" in the
# release profile): the binary keeps its symbols, and no warning says so. `opt-level` and `codegen-units` stay those of the
# profile, and an override of "*", which are the dependencies, has no such effect.
# What follows: with a setting for the package of the binary, `strip` must be repeated in its override.
#
# Needs: rustup, a linker. Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export RUSTUP_HOME="$folder/rustup" CARGO_HOME="$folder/cargo" CARGO_TARGET_DIR="$folder/target"
pinned=rust@1.95.0
rustup toolchain install "${pinned#*@}" --profile minimal --no-self-update > install.log 2>&1 || { cat install.log; exit 1; }
cargo=(rustup run "${pinned#*@}" cargo)

mkdir src
echo 'fn main() { println!("hello"); }' > src/main.rs

# Prints what the compiler is told for a release build with this override.
told() {
  cat > Cargo.toml <<TOML
[package]
name = "hello"
version = "0.1.0"
edition = "2024"

[profile.release]
strip = "symbols"
opt-level = "z"
codegen-units = 1

$1
TOML
  touch src/main.rs
  "${cargo[@]}" build --release --verbose 2>&1 | grep -o -- '-C \(strip\|opt-level\|codegen-units\)=[a-z0-9]*' | sort | tr '\n' ' '
}

check() {
  local seen
  seen=$(told "$2")
  printf '%-44s %s\n' "$1" "$seen"
  [ "$seen" = "$3" ] || { echo "changed: before it was $3"; exit 1; }
}

kept='-C codegen-units=1 -C opt-level=z -C strip=symbols '
lost='-C codegen-units=1 -C opt-level=z -C strip=debuginfo '
check 'no override' '' "$kept"
check 'an override of the package' $'[profile.release.package.hello]\ndebug-assertions = false' "$lost"
check 'an override of the dependencies' $'[profile.release.package."*"]\ndebug-assertions = false' "$kept"
check 'an override of the package, with strip' $'[profile.release.package.hello]\nstrip = "symbols"' "$kept"
echo 'as it was seen'
