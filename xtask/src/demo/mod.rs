//! `cargo xtask demo`: the story of the tether, told by a real MCP client with a real window.
//!
//! Started; everything but the window killed; found again; a source file edited, rebuilt, relaunched; a picture.
//! Owns the story. Each step checks what it claims: a demo that lies fails.

mod agent;
mod say;
mod stage;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use procfs::process::{Process, all_processes};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};
use xshell::Shell;

use crate::leftovers::Run;
use crate::place::Place;
use agent::{Agent, Tether};
use say::{good, span, step};

#[derive(clap::Args)]
pub struct Options {
    /// Leave the window open at the end
    #[arg(long)]
    keep: bool,
}

const SOURCE: &str = "src/extension.ts";
const BEFORE: &str = "Hello from the tether";
const AFTER: &str = "Hello again, and no reload";

pub fn run(options: &Options) -> Result<()> {
    let place = Place::find()?;
    let sh = Shell::new()?;
    sh.change_dir(&place.checkout);
    stage::tools()?;
    let program = stage::binary(&sh, &place)?;
    let workspace = stage::workspace(&sh, &place)?;

    // A window that is kept belongs to the reader: it must be found with the reader's own environment.
    let run = Run::begin()?;
    let mut variables = if options.keep { Vec::new() } else { run.variables()? };
    variables.push(("DEVTETHER_DATA_DIR", place.data.clone()));
    let tether = Tether { program, workspace, variables };
    let picture = place.target().join("demo/window.png");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let told = runtime.block_on(async {
        let told = tell(&tether, &picture).await;
        if !options.keep || told.is_err() {
            tether.run(&["stop"]).await.and(tether.run(&["shutdown"]).await).context("cannot clear the stage")?;
        }
        told
    });
    told.and_then(|()| if options.keep { kept(&tether) } else { cleared(&run) })?;
    step("picture", &shown(&place, &picture));
    Ok(())
}

async fn tell(tether: &Tether, picture: &Path) -> Result<()> {
    tether.run(&["trust", "--yes"]).await?;
    say::set_up("trust", "npm run compile, as devtools.toml says");
    say::title("An agent opens the window, and everything around the window dies");
    let agent = Agent::start(tether).await?;
    let window = start(&agent).await?;
    kill_everything(agent, tether).await?;
    let agent = reconnect(tether, window).await?;
    say::title("Somebody edits the source");
    edit(&tether.workspace.join(SOURCE))?;
    relaunch(&agent, window).await?;
    agent.call("window_screenshot", json!({})).await?.save_image(picture)?;
    agent.end().await
}

/// Opens the window; its PID.
async fn start(agent: &Agent) -> Result<u64> {
    let started = agent.call("window_start", json!({})).await?;
    let pid = started.number("pid")?;
    let seen = agent.call("window_evaluate", greet(BEFORE)).await?;
    step("window_start", &format!("{}: window {pid} in {}", good("started"), span(started.took)));
    say::more(&format!("a click on its status bar item: “{}”", seen.text("value")?));
    Ok(pid)
}

/// The MCP server and the supervisor, with SIGKILL: only the window and what it wrote down is left.
async fn kill_everything(agent: Agent, tether: &Tether) -> Result<()> {
    let server = agent.kill().await?;
    let supervisor = all_processes()?
        .flatten()
        .find(|process| process.cmdline().is_ok_and(|line| line.contains(&"supervise".into()) && tether.serves(&line)))
        .context("no supervisor runs")?;
    end(&supervisor).await?;
    step("kill -9", &format!("MCP server {server} and supervisor {} are gone", supervisor.pid()));
    Ok(())
}

/// Kills the process and returns when it has ended.
async fn end(process: &Process) -> Result<()> {
    let handle = pidfd_open(Pid::from_raw(process.pid()).context("no PID")?, PidfdFlags::empty())?;
    ensure!(process.is_alive(), "the supervisor ended by itself");
    pidfd_send_signal(&handle, Signal::KILL)?;
    let mut ended = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut ended, Some(&Duration::from_secs(10).try_into()?))?;
    Ok(())
}

/// Another agent, from `exec` to the answer: the same window.
async fn reconnect(tether: &Tether, window: u64) -> Result<Agent> {
    let began = Instant::now();
    let agent = Agent::start(tether).await?;
    let status = agent.call("window_status", json!({})).await?;
    let took = began.elapsed();
    let pid = status.number("pid")?;
    ensure!(pid == window, "the window was {window} and is {pid}");
    ensure!(status.field("reconnected")? == true, "the supervisor does not say that it reconnected");
    step("window_status", &format!("{}: window {pid}, the same, {} after exec", good("reconnected"), span(took)));
    Ok(agent)
}

fn edit(source: &Path) -> Result<()> {
    let text = fs::read_to_string(source)?;
    ensure!(text.contains(BEFORE), "{} does not say `{BEFORE}`", source.display());
    fs::write(source, text.replace(BEFORE, AFTER))?;
    step("edit", &format!("{SOURCE}: “{AFTER}”"));
    Ok(())
}

/// The next look at the page is at the edited extension, in a new window.
async fn relaunch(agent: &Agent, window: u64) -> Result<()> {
    let seen = agent.call("window_evaluate", greet(AFTER)).await?;
    let ms = |field: &str| seen.number(field).map(Duration::from_millis);
    let (built, launched) = (ms("relaunched/buildMs")?, ms("relaunched/launchMs")?);
    let because = seen.text("relaunched/because")?;
    ensure!(because.contains(SOURCE), "it was relaunched because of {because}");
    let pid = agent.call("window_status", json!({})).await?.number("pid")?;
    ensure!(pid != window, "the window was not replaced");
    let times = format!("built in {}, launched in {}", span(built), span(launched));
    step("window_evaluate", &format!("{} because {because}", good("relaunched")));
    say::more(&format!("{times}: window {pid}"));
    say::more(&format!("a click on its status bar item: “{}”", seen.text("value")?));
    Ok(())
}

/// The arguments of an evaluation that makes the extension greet, and returns what the window then shows.
fn greet(greeting: &str) -> Value {
    let expression = format!("({})({})", include_str!("greet.js").trim_end(), json!(greeting));
    // VS Code activates an extension when it finds the time, which a busy machine may not have for long.
    json!({ "expression": expression, "timeoutMs": 120_000 })
}

fn cleared(run: &Run) -> Result<()> {
    run.assert_nothing_left()?;
    step("stop, shutdown", "no process is left behind");
    Ok(())
}

fn kept(tether: &Tether) -> Result<()> {
    step("kept", &format!("`tether --workspace {} stop` closes the window", tether.workspace.display()));
    Ok(())
}

fn shown(place: &Place, picture: &Path) -> String {
    let file = picture.strip_prefix(&place.checkout).unwrap_or(picture).display();
    let display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if display { format!("{file}") } else { format!("{file} (no display here: the window was headless)") }
}
