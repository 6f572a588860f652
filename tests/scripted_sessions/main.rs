//! Whole sessions with scripted peers: random requests to each adapter, whose peer answers late, twice, wrong or not at all.
//!
//! `DEVTETHER_SCRIPTED_REQUESTS=N` sends so many to each; `DEVTETHER_SCRIPTED_SEED=N` runs the session of one seed.

mod scripted_peers;
mod sessions;
