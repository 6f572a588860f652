//! The tests of a VS Code extension, in hosts of their own: built, run, and reported, or debugged.
//!
//! | file | owns |
//! |---|---|
//! | `prepare` | consent, build, and which configurations there are |
//! | `run` | the operation `test/run`: one host after the other |
//! | `report` | from the events of the runner to a report |
//! | `debug_launch` | a debug session in a host, which ends with the session or with the tests |

pub(in crate::supervisor) mod debug_launch;
mod prepare;
mod report;
mod run;
