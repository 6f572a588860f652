//! When changes are noticed: by our own clock, whatever the times of the files are.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use tether_base::clock::monotonic_ms;
use tether_changes::ChangeCriterion;

use super::workspace_fixture::Workspace;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_change_is_noticed_when_it_happens_also_with_a_time_in_the_past_or_future() {
    let now = SystemTime::now();
    for (case, modified) in [("past", now - HOUR), ("present", now), ("future", now + HOUR)] {
        let workspace = Workspace::new();
        workspace.write("src/app.js", "1");
        // Outside of the tracked folder: as by `cp -p`, `mv`, or an unpacked archive.
        let other = workspace.cookies.path().join("new.js");
        fs::write(&other, "2").unwrap();
        let tracker = workspace.watched(ChangeCriterion::Metadata).await;
        assert_eq!(tracker.last_noticed().await.unwrap(), None, "{case}: nothing has changed");
        File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
        let before = monotonic_ms();
        fs::rename(&other, workspace.path("src/app.js")).unwrap();
        let noticed = tracker.last_noticed().await.unwrap().expect("a change");
        assert!((before..=monotonic_ms()).contains(&noticed), "{case}: {before} {noticed}");
        // It stays noticed at that time; another change, of another file too, is a later one.
        assert_eq!(tracker.last_noticed().await.unwrap(), Some(noticed), "{case}");
        let later = monotonic_ms();
        workspace.write("src/other.js", "3");
        let noticed = tracker.last_noticed().await.unwrap().expect("two changes");
        assert!((later..=monotonic_ms()).contains(&noticed), "{case}: {later} {noticed}");
        // Nor does what is not tracked count.
        workspace.write("node_modules/cache.js", "4");
        assert_eq!(tracker.last_noticed().await.unwrap(), Some(noticed), "{case}");
        tracker.set_baseline(tracker.take_snapshot().await.unwrap()).await;
        assert_eq!(tracker.last_noticed().await.unwrap(), None, "{case}");
    }
}
