//! The script that holds extension hosts, in a real Node: a host starts whatever happens to its files.

use std::process::Command;

use devtether::window::launch::HostHold;

/// Loads the hook as an extension host does. `races` makes the file `armed` seem to be there for a moment longer.
fn start_host(hook: &std::path::Path, races: &str) -> std::process::Output {
    let script = format!(
        "const fs = require('fs'); const exists = fs.existsSync; {races}
         process.argv.push('--type=extensionHost'); require({:?}); console.log('activated')",
        hook.display().to_string()
    );
    Command::new("node").args(["-e", &script]).output().unwrap()
}

#[test]
fn a_host_starts_although_its_files_are_removed_while_it_looks_at_them() {
    let state = tempfile::tempdir().unwrap();
    let (scratch, cache) = (state.path().join("window-abcdefgh"), state.path().join("cache"));
    std::fs::create_dir_all(&scratch).unwrap();
    std::fs::create_dir(&cache).unwrap();
    let hold = HostHold::of_launch(state.path(), "abcdefgh");
    let hook = hold.install(&cache, false).unwrap();
    let cases = [
        ("nothing", ""),
        ("removed before it is read", "fs.existsSync = (file) => file.endsWith('armed') || exists(file);"),
        (
            "its folder is removed before it says that it waits",
            "const read = fs.readFileSync; fs.existsSync = (file) => file.endsWith('armed') || exists(file);
             fs.readFileSync = (file, ...more) => String(file).endsWith('armed') ? String(process.ppid) : read(file, ...more);
             const write = fs.writeFileSync; fs.writeFileSync = (file, ...more) => {
                 if (String(file).includes('held-')) throw Object.assign(new Error('gone'), { code: 'ENOENT' });
                 return write(file, ...more);
             };",
        ),
    ];
    for (case, races) in cases {
        let host = start_host(&hook, races);
        let text = String::from_utf8_lossy(&host.stdout).into_owned() + &String::from_utf8_lossy(&host.stderr);
        assert!(host.status.success() && text.contains("activated"), "{case}: {text}");
    }
}
