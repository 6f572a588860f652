//! What the way through supervisor and host costs, with an adapter that answers at once.

use std::sync::Arc;
use std::time::Duration;

use tether_dap::DapServer;

use crate::client::median;
use crate::client::sandbox::Sandbox;
use crate::scripted::{Adapters, CALLS, Door, MANY, TIMES};
use crate::{Builds, runtime, tell, tell_ratio};

/// A supervisor with one session.
struct Place {
    door: Door,
    session: String,
    program: Arc<DapServer>,
    _sandbox: Sandbox,
}

impl Place {
    async fn open(build: &std::path::Path, adapters: &mut Adapters) -> Place {
        let sandbox = Sandbox::of(build, &[]);
        sandbox.json(&["debug", "status"]);
        let door = Door::open(&sandbox).await;
        let (session, program) = adapters.stopped(&door).await;
        Place { door, session, program, _sandbox: sandbox }
    }
}

/// Single calls, and the answer to who waits, beside the base build.
pub fn measure(builds: &Builds, _: usize) {
    runtime().block_on(async {
        let mut adapters = Adapters::start().await;
        let mut places = Vec::new();
        for build in builds.all() {
            places.push(Place::open(build, &mut adapters).await);
        }
        calls(&places).await;
        answers(&places).await;
        for place in &places {
            place.door.end(&place.session).await;
        }
    });
}

async fn calls(places: &[Place]) {
    let mut took = vec![[vec![], vec![], vec![]]; places.len()];
    for _ in 0..TIMES {
        for (place, took) in places.iter().zip(&mut took) {
            let call = place.door.call(&place.session).await;
            took.iter_mut().zip(call).for_each(|(took, call)| took.push(call));
        }
    }
    let medians: Vec<[Duration; 3]> = took.into_iter().map(|took| took.map(median)).collect();
    for (kind, name) in CALLS.into_iter().enumerate() {
        let new = medians[0][kind];
        match medians.get(1) {
            Some(base) => {
                let (more, goal) = (new.saturating_sub(base[kind]), Duration::from_micros(120));
                tell(
                    &format!("{name}, more than the base"),
                    more,
                    goal,
                    &format!("{new:.0?}, base {:.0?}", base[kind]),
                );
            }
            None => println!("{name}: {new:.0?}"),
        }
    }
}

async fn answers(places: &[Place]) {
    for (budget, what) in [(0, "its reason"), (1500, "its reason and snapshot")] {
        let mut took = vec![vec![]; places.len()];
        for _ in 0..TIMES {
            for (place, took) in places.iter().zip(&mut took) {
                took.push(place.door.answer(&place.session, &place.program, budget).await);
            }
        }
        let mut took = took.into_iter().map(median);
        let new = took.next().unwrap();
        let beside = took.next().map(|base| format!("base {base:.0?}")).unwrap_or_default();
        tell(&format!("event → wait answered with {what}"), new, Duration::from_micros(250), &beside);
    }
}

/// One session beside many others.
pub fn many(builds: &Builds, _: usize) {
    runtime().block_on(async {
        let mut adapters = Adapters::start().await;
        let place = Place::open(&builds.new, &mut adapters).await;
        place.door.costs(&place.session).await;
        let alone = place.door.costs(&place.session).await;
        let mut others = Vec::new();
        for _ in 1..MANY {
            others.push(adapters.stopped(&place.door).await.0);
        }
        let among = place.door.costs(&place.session).await;
        for ((name, alone), among) in CALLS.into_iter().zip(alone).zip(among) {
            tell_ratio(&format!("{MANY} sessions: {name} beside the others"), among, alone, 1.3, "");
        }
        for session in others.iter().chain([&place.session]) {
            place.door.end(session).await;
        }
    });
}
