"""`tether wrap` between the MCP client and a server of PyPI's `mcp`, in both eras of the protocol."""

import asyncio
import os
import shutil
import tempfile
import unittest
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import Client, MCPError, StdioServerParameters

from workspace import TETHER

SERVER = """\
import sys
from mcp.server import MCPServer

server = MCPServer("wrapped")

@server.tool()
def version() -> str:
    return "VERSION"

@server.tool()
def crash() -> str:
    print("it went wrong", file=sys.stderr, flush=True)
    import os
    os._exit(3)

server.run()
"""
EDITS = 10


class Story:
    mode: str

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)
        self.folder = Path(tempfile.mkdtemp(prefix="wrap-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.edit("1")

    def edit(self, version):
        (self.folder / "server.py").write_text(SERVER.replace("VERSION", version))

    @asynccontextmanager
    async def client(self):
        import sys

        arguments = ["--workspace", str(self.folder), "wrap", "--", sys.executable, "-B", "server.py"]
        server = StdioServerParameters(command=TETHER, args=arguments, env=dict(os.environ))
        async with Client(server, mode=self.mode, read_timeout_seconds=60) as client:
            yield client

    async def version(self, client):
        result = await client.call_tool("version", {})
        return result.content[0].text

    async def test_each_edit_is_answered_by_the_next_call(self):
        async with self.client() as client:
            self.assertEqual({tool.name for tool in (await client.list_tools()).tools}, {"version", "crash"})
            for edit in range(2, 2 + EDITS):
                self.edit(str(edit))
                self.assertEqual(await self.version(client), str(edit))

    async def test_a_stream_of_calls_over_edits_is_answered_whole(self):
        async with self.client() as client:
            await self.version(client)
            seen = []

            async def call():
                seen.append(int(await self.version(client)))

            for edit in range(2, 2 + EDITS):
                self.edit(str(edit))
                await asyncio.gather(*[call() for _ in range(20)])
                self.assertEqual(await self.version(client), str(edit))
            self.assertEqual(len(seen), 20 * EDITS)

    async def test_a_crash_is_an_error_and_the_next_call_is_answered(self):
        async with self.client() as client:
            with self.assertRaises(MCPError) as raised:
                await client.call_tool("crash", {})
            self.assertIn("exited with code 3", str(raised.exception))
            self.assertEqual(await self.version(client), "1")

    async def test_a_server_that_does_not_come_up_leaves_the_old_one(self):
        async with self.client() as client:
            await self.version(client)
            (self.folder / "server.py").write_text("raise SystemExit('no such thing')")
            self.assertEqual(await self.version(client), "1")
            self.edit("2")
            self.assertEqual(await self.version(client), "2")


class Handshake(Story, unittest.IsolatedAsyncioTestCase):
    mode = "legacy"


class Stateless(Story, unittest.IsolatedAsyncioTestCase):
    mode = "auto"
