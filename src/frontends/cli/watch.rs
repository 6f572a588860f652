//! `tether watch`: starts the window, has it built and refreshed after each save, and shows what happens until it is ended. The
//! window stays.
//!
//! | file | owns |
//! |---|---|
//! | `connection` | the connection by which the supervisor knows that saves refresh the window |
//! | `lines` | without a terminal: a line for each event |
//! | `view` | in a terminal: keys, notifications, and what they do |
//! | `view_state` | what is shown |
//! | `view_drawing` | how it is drawn |

mod connection;
mod lines;
mod view;
mod view_drawing;
mod view_state;

use std::io::IsTerminal;
use std::path::Path;

use tether_base::error::Result;

use super::GlobalArgs;
use connection::WatchConnection;

/// Watches until the process is ended, or the user quits. Errors: the window cannot be started, or the terminal is gone.
pub(super) async fn watch_workspace(common: &GlobalArgs, workspace: &Path, as_lines: bool) -> Result<()> {
    let connection = WatchConnection::of(workspace);
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match is_terminal && !as_lines && !common.json {
        true => view::show_view(&connection, workspace).await,
        false => lines::print_events(&connection, common).await,
    }
}
