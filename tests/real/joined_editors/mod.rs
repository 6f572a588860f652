//! Editors that join debug sessions: over `tether dap`, and a real Neovim with the client of examples/nvim.

mod breakpoint_owners;
mod dap_editor;
mod launches;
mod join_cycles;
mod neovim;
mod programs;
mod shared_stops;
