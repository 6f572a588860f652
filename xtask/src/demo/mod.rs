//! `cargo xtask demo`: the README's story, run by a real MCP client on a real window.
//!
//! The window is started; everything but the window is killed; it is reconnected; a source file is edited, which is
//! rebuilt and the window refreshed; a screenshot is taken. Each step checks the result that it prints.

mod mcp_agent;
mod preparation;
mod story_output;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use procfs::process::{Process, all_processes};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};
use xshell::Shell;

use crate::paths::CheckoutPaths;
use crate::test_run::TestRun;
use mcp_agent::{McpAgent, TetherCommand};
use story_output::{format_duration, green, print_detail, print_preparation, print_step, print_title};

#[derive(clap::Args)]
pub struct DemoOptions {
    /// Leave the window open at the end
    #[arg(long)]
    keep: bool,
}

const SOURCE: &str = "src/extension.ts";
const BEFORE: &str = "Hello from the tether";
const AFTER: &str = "Hello again, and no reload";

/// Prepares, runs the story, and ends everything that it started, unless the window is kept.
pub fn run_demo(options: &DemoOptions) -> Result<()> {
    let place = CheckoutPaths::find()?;
    let sh = Shell::new()?;
    sh.change_dir(&place.checkout);
    preparation::install_tools()?;
    let program = preparation::build_binary(&sh, &place)?;
    let workspace = preparation::make_workspace(&sh, &place)?;

    // A window that is kept must be found with the environment of the user's own shell.
    let run = TestRun::start()?;
    let mut variables = if options.keep { Vec::new() } else { run.variables()? };
    variables.push(("DEVTETHER_DATA_DIR", place.data.clone()));
    let tether = TetherCommand { program, workspace, variables };
    let picture = place.target().join("demo/window.png");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let result = run_story(&tether, &picture).await;
        if !options.keep || result.is_err() {
            tether
                .run(&["stop"])
                .await
                .and(tether.run(&["shutdown", "--all"]).await)
                .context("cannot stop the demo's window and supervisor")?;
        }
        result
    });
    result.and_then(|()| if options.keep { report_kept(&tether) } else { check_nothing_left(&run) })?;
    print_step("picture", &picture_text(&place, &picture));
    Ok(())
}

async fn run_story(tether: &TetherCommand, picture: &Path) -> Result<()> {
    tether.run(&["trust", "--yes"]).await?;
    print_preparation("trust", "npm run compile, as devtools.toml says");
    print_title("An agent opens the window; everything around the window is killed");
    let agent = McpAgent::start(tether).await?;
    let window = start_window(&agent).await?;
    kill_all_but_window(agent, tether).await?;
    let agent = reconnect(tether, window).await?;
    print_title("A source file is edited");
    edit_source(&tether.workspace.join(SOURCE))?;
    check_refresh(&agent, window).await?;
    agent.call("window_screenshot", json!({})).await?.save_image(picture)?;
    agent.close().await
}

/// Opens the window; returns its PID.
async fn start_window(agent: &McpAgent) -> Result<u64> {
    let started = agent.call("window_start", json!({})).await?;
    let pid = started.number("pid")?;
    let seen = agent.call("window_evaluate", greeting_call(BEFORE)).await?;
    print_step("window_start", &format!("{}: window {pid} in {}", green("started"), format_duration(started.took)));
    print_detail(&format!("a click on its status bar item: “{}”", seen.text("value")?));
    Ok(pid)
}

/// Kills the MCP server and the supervisor with SIGKILL: the window and its session file are left.
async fn kill_all_but_window(agent: McpAgent, tether: &TetherCommand) -> Result<()> {
    let server = agent.kill().await?;
    let supervisor = all_processes()?
        .flatten()
        .find(|process| process.cmdline().is_ok_and(|line| line.contains(&"supervise".into()) && tether.serves(&line)))
        .context("no supervisor runs")?;
    kill_process(&supervisor).await?;
    print_step("kill -9", &format!("MCP server {server} and supervisor {} are gone", supervisor.pid()));
    Ok(())
}

/// Kills the process and returns when it has ended.
async fn kill_process(process: &Process) -> Result<()> {
    let handle = pidfd_open(Pid::from_raw(process.pid()).context("no PID")?, PidfdFlags::empty())?;
    ensure!(process.is_alive(), "the supervisor ended by itself");
    pidfd_send_signal(&handle, Signal::KILL)?;
    let mut ended = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
    let patience = Duration::from_secs(10).try_into()?;
    rustix::io::retry_on_intr(|| rustix::event::poll(&mut ended, Some(&patience)))?;
    Ok(())
}

/// Starts another MCP server, and measures the time from its start to its first response, which must name the same window.
async fn reconnect(tether: &TetherCommand, window: u64) -> Result<McpAgent> {
    let began = Instant::now();
    let agent = McpAgent::start(tether).await?;
    let status = agent.call("window_status", json!({})).await?;
    let took = began.elapsed();
    let pid = status.number("pid")?;
    ensure!(pid == window, "the window was {window} and is {pid}");
    ensure!(status.field("reconnected")? == true, "the supervisor has not reconnected");
    print_step(
        "window_status",
        &format!("{}: window {pid}, the same, {} after exec", green("reconnected"), format_duration(took)),
    );
    Ok(agent)
}

fn edit_source(source: &Path) -> Result<()> {
    let text = fs::read_to_string(source)?;
    ensure!(text.contains(BEFORE), "`{BEFORE}` is not in {}", source.display());
    fs::write(source, text.replace(BEFORE, AFTER))?;
    print_step("edit", &format!("{SOURCE}: “{AFTER}”"));
    Ok(())
}

/// The next operation on the page runs on the edited extension, which the window was refreshed for.
async fn check_refresh(agent: &McpAgent, window: u64) -> Result<()> {
    let seen = agent.call("window_evaluate", greeting_call(AFTER)).await?;
    let ms = |field: &str| seen.number(field).map(Duration::from_millis);
    let (built, launched) = (ms("refreshed/buildMs")?, ms("refreshed/launchMs")?);
    let because = seen.text("refreshed/because")?;
    ensure!(because.contains(SOURCE), "it was refreshed because of {because}");
    let by = seen.text("refreshed/by")?;
    let (done, step, is_same) = match by {
        "restartExtensionHost" => ("restarted the extension host", "restarted", true),
        "reload" => ("reloaded the page", "reloaded", true),
        _ => ("relaunched", "launched", false),
    };
    let pid = agent.call("window_status", json!({})).await?.number("pid")?;
    ensure!((pid == window) == is_same, "the window was {window} and is {pid} after {by}");
    print_step("window_evaluate", &format!("{} because {because}", green(done)));
    let which = if is_same { ", the same" } else { "" };
    print_detail(&format!(
        "built in {}, {step} in {}: window {pid}{which}",
        format_duration(built),
        format_duration(launched)
    ));
    print_detail(&format!("a click on its status bar item: “{}”", seen.text("value")?));
    Ok(())
}

/// Arguments of `window_evaluate`: clicks the extension's status bar item, and returns the notification that it shows.
fn greeting_call(greeting: &str) -> Value {
    let expression = format!("({})({})", include_str!("greeting.js").trim_end(), json!(greeting));
    // VS Code activates extensions when it is idle, which takes long on a busy machine.
    json!({ "expression": expression, "timeoutMs": 120_000 })
}

fn check_nothing_left(run: &TestRun) -> Result<()> {
    run.assert_nothing_left()?;
    print_step("stop, shutdown", "no process is left behind");
    Ok(())
}

fn report_kept(tether: &TetherCommand) -> Result<()> {
    print_step("kept", &format!("`tether --workspace {} stop` closes the window", tether.workspace.display()));
    Ok(())
}

fn picture_text(place: &CheckoutPaths, picture: &Path) -> String {
    let file = picture.strip_prefix(&place.checkout).unwrap_or(picture).display();
    let display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if display { format!("{file}") } else { format!("{file} (no display here: the window was headless)") }
}
