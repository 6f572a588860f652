"""A workspace with a page, and what a user does around the agent: trusting, shutting down.

Needs TETHER, the path of the binary, in the environment. Knows nothing of MCP.
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

TETHER = os.environ["TETHER"]

SETTINGS = """\
[window]
kind = "browser"
url = "{url}"
headless = true

[build]
command = ["sh", "-c", "echo built >> built.log"]
"""


class Workspace:
    """A folder with a page, opened in Chromium, and a build that counts itself."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ws-"))
        self.page = self.folder / "index.html"
        self.say("first")
        (self.folder / "devtools.toml").write_text(SETTINGS.format(url=self.page.as_uri()))
        (self.folder / ".devtoolsignore").write_text("built.log\n")

    def say(self, word):
        """Edits the page: its title is now `word`."""
        self.page.write_text(f"<!doctype html><title>{word}</title><h1>{word}</h1>\n")

    def builds(self):
        log = self.folder / "built.log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def tether(self, *arguments):
        """Runs the command line; its answer as an object."""
        command = [TETHER, "--workspace", str(self.folder), "--json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}"
        lines = done.stdout.splitlines()
        return json.loads(lines[-1]) if lines and lines[-1].startswith("{") else None

    def close(self):
        """Leaves no window, no supervisor and no folder."""
        self.tether("stop")
        self.tether("shutdown", "--all")
        shutil.rmtree(self.folder)
