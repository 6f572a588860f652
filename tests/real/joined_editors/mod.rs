//! Editors that join debug sessions: over `tether dap`, and a real Neovim with the client of examples/nvim.

mod breakpoint_owners;
mod dap_editor;
mod join_cycles;
mod launches;
mod linked_sources;
mod neovim;
pub mod programs;
mod session_cycles;
mod shared_stops;
