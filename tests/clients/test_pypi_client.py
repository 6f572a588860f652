"""The MCP client of PyPI's `mcp`, in both eras of the protocol, against `tether mcp` and a real Chromium."""

import asyncio
import base64
import json
import os
import re
import signal
import unittest
import warnings
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import Client, MCPError, StdioServerParameters

from workspace import TETHER, Workspace

# A client passes on only a few variables of its environment; a user's session has these as well.
ENVIRONMENT = dict(os.environ)

TOOLS = {"status", "start", "stop", "restart", "changes", "evaluate", "screenshot"}


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def server_processes():
    """The PIDs of the `tether mcp` processes that this process started."""
    children = Path("/proc/self/task").glob("*/children")
    pids = [int(pid) for listed in children for pid in listed.read_text().split()]
    return [pid for pid in pids if b"mcp" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]


class Story:
    """What every client sees; the eras below only choose how it talks."""

    mode: str

    @classmethod
    def setUpClass(cls):
        cls.workspace = Workspace()
        cls.addClassCleanup(cls.workspace.close)
        cls.workspace.tether("trust", "--yes")

    async def asyncSetUp(self):
        # unittest turns on asyncio's debug mode, which reports every moment in which this machine was slow.
        asyncio.get_running_loop().set_debug(False)

    @asynccontextmanager
    async def client(self, workspace=None, **options):
        arguments = ["--workspace", str((workspace or self.workspace).folder), "mcp"]
        server = StdioServerParameters(command=TETHER, args=arguments, env=ENVIRONMENT)
        async with Client(server, mode=self.mode, read_timeout_seconds=60, **options) as client:
            yield client

    async def call(self, client, tool, **arguments):
        """The structured answer of a call that must succeed, with a short text beside it."""
        result = await client.call_tool(tool, arguments)
        self.assertFalse(result.is_error, result.content)
        self.assertTrue(result.content[0].text.strip())
        return result.structured_content

    async def test_the_tools_are_listed_with_their_parameters(self):
        async with self.client() as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        self.assertLessEqual({f"window_{verb}" for verb in TOOLS}, tools.keys())
        evaluate = tools["window_evaluate"].input_schema
        self.assertEqual(evaluate["required"], ["expression"])
        self.assertEqual(evaluate["properties"]["expression"]["type"], "string")
        for tool in tools.values():
            self.assertTrue(tool.description, tool.name)
            self.assertEqual(tool.input_schema["type"], "object", tool.name)
        self.assertTrue(tools["window_status"].annotations.read_only_hint)

    async def test_starting_twice_is_starting_once(self):
        async with self.client() as client:
            first = await self.call(client, "window_start")
            second = await self.call(client, "window_start")
            status = await self.call(client, "window_status")
        self.assertEqual([first["state"], status["state"]], ["ready", "ready"])
        self.assertTrue(alive(first["pid"]))
        self.assertEqual(len({answer["pid"] for answer in (first, second, status)}), 1)

    async def test_an_expression_has_a_value_or_an_exception(self):
        async with self.client() as client:
            value = await self.call(client, "window_evaluate", expression="[1 + 1, await Promise.resolve('x')]")
            exception = await client.call_tool("window_evaluate", {"expression": "null.x"})
        self.assertEqual(value["value"], [2, "x"])
        self.assertRegex(json.dumps(exception.structured_content), "TypeError")

    async def test_the_window_outlives_its_client_and_a_killed_server(self):
        async with self.client() as client:
            window = (await self.call(client, "window_start"))["pid"]
        self.assertEqual(server_processes(), [], "the server ended with its client")
        self.assertTrue(alive(window))
        async with self.client() as client:
            self.assertEqual((await self.call(client, "window_start"))["pid"], window)
            [server] = server_processes()
            os.kill(server, signal.SIGKILL)
            with self.assertRaises(Exception):
                await client.call_tool("window_status", {})
        async with self.client() as client:
            status = await self.call(client, "window_status")
        self.assertEqual([status["state"], status["pid"]], ["ready", window])

    async def test_an_edit_rebuilds_and_refreshes_before_the_next_operation(self):
        word = f"edited-{self.mode}"
        async with self.client() as client:
            before = await self.call(client, "window_start")
            builds = self.workspace.builds()
            self.workspace.say(word)
            changes = await self.call(client, "window_changes")
            answer = await self.call(client, "window_evaluate", expression="document.title")
            after = await self.call(client, "window_status")
        self.assertEqual([changes["stale"], changes["newest"]["path"]], [True, "index.html"])
        self.assertEqual(answer["value"], word)
        self.assertIn("index.html", answer["refreshed"]["because"])
        self.assertEqual(self.workspace.builds(), builds + 1)
        self.assertEqual([answer["refreshed"]["by"], after["pid"]], ["reload", before["pid"]])
        self.assertGreater(after["generation"], before["generation"])

    async def test_a_screenshot_is_an_image(self):
        async with self.client() as client:
            await self.call(client, "window_start")
            result = await client.call_tool("window_screenshot", {})
        images = [content for content in result.content if content.type == "image"]
        self.assertEqual([image.mime_type for image in images], ["image/png"])
        self.assertTrue(base64.b64decode(images[0].data).startswith(b"\x89PNG\r\n"))

    async def test_the_results_are_as_the_tools_say(self):
        async with self.client() as client:
            # Of tools with the same result, one has its outline.
            outlines = [tool.output_schema for tool in (await client.list_tools()).tools if tool.output_schema]
            self.assertGreater(len(outlines), 20)
            self.assertTrue(all(outline["type"] == "object" for outline in outlines), outlines)
            # This client checks each structured result against the schema, and fails the call when it does not fit.
            await self.call(client, "window_start")
            await self.call(client, "window_changes")
            picture = await client.call_tool("window_screenshot", {})
        self.assertIn("generation", picture.structured_content)

    async def test_progress_is_told_while_the_window_is_replaced(self):
        told = []

        async def progress(done, total, message):
            told.append(message)

        async with self.client() as client:
            await self.call(client, "window_start")
            again = await client.call_tool("window_restart", {"rebuild": "always"}, progress_callback=progress)
            self.assertFalse(again.is_error, again.content)
        self.assertTrue(any("building" in message for message in told), told)

    async def test_a_change_of_state_is_told_to_whoever_subscribed(self):
        state = "tether://window/state"
        async with self.listener(state) as (client, told):
            self.assertIn(state, [resource.uri for resource in (await client.list_resources()).resources])
            await self.call(client, "window_stop")
            while (await self.read(client, state))["state"] != "absent":
                await asyncio.wait_for(told.get(), 60)
            await self.call(client, "window_start")
            while (await self.read(client, state))["state"] != "ready":
                await asyncio.wait_for(told.get(), 60)
            # One that we do not cause: an edit makes the window stale.
            self.workspace.say(f"told-{self.mode}")
            while (await self.read(client, state))["state"] != "stale":
                await asyncio.wait_for(told.get(), 60)

    async def read(self, client, uri):
        [content] = (await client.read_resource(uri)).contents
        return json.loads(content.text)

    async def test_wrong_arguments_are_an_error_that_names_them(self):
        async with self.client() as client:
            for arguments, named in [
                ({}, "expression"),
                ({"expression": 7}, "expression|string"),
                ({"expression": "1", "expresion": "2"}, "expresion"),
            ]:
                with self.subTest(arguments=arguments):
                    result = await client.call_tool("window_evaluate", arguments)
                    self.assertTrue(result.is_error)
                    self.assertRegex(result.content[0].text, named)

    async def test_an_unknown_tool_is_refused_with_the_names_of_the_known(self):
        async with self.client() as client:
            with self.assertRaises(MCPError) as caught:
                await client.call_tool("window_fly", {})
            self.assertEqual(caught.exception.error.code, -32602)
            self.assertRegex(caught.exception.error.message, "window_fly.*window_status")
            self.assertTrue(await client.list_tools(), "the conversation goes on")

    async def test_commands_of_the_workspace_wait_for_the_users_trust(self):
        workspace = Workspace()
        self.addCleanup(workspace.close)
        async with self.client(workspace) as client:
            refused = await client.call_tool("window_start", {})
            self.assertTrue(refused.is_error)
            self.assertRegex(refused.content[0].text, "hint: .*tether trust")
            self.assertEqual(workspace.builds(), 0)
            workspace.tether("trust", "--yes")
            self.assertEqual((await self.call(client, "window_start"))["state"], "ready")
            stopped = await self.call(client, "window_stop")
        self.assertEqual(stopped["state"], "absent")

    async def test_the_negotiated_revision_is_of_the_era(self):
        async with self.client() as client:
            version = client.protocol_version
        self.assertTrue(re.fullmatch(self.revision, version), version)


class HandshakeEra(Story, unittest.IsolatedAsyncioTestCase):
    mode = "legacy"
    revision = "2025-.*"

    @asynccontextmanager
    async def listener(self, uri):
        """A client that subscribed, and the queue of what it is told."""
        told = asyncio.Queue()

        async def heard(message):
            if getattr(message, "method", None) == "notifications/resources/updated":
                await told.put(message.params.uri)

        async with self.client(message_handler=heard) as client:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the next era has another way
                await client.subscribe_resource(uri)
            yield client, told


class ListeningEra(Story):
    @asynccontextmanager
    async def listener(self, uri):
        told = asyncio.Queue()

        async def follow(stream):
            async for event in stream:
                await told.put(event.uri)

        async with self.client() as client, client.listen(resource_subscriptions=[uri]) as stream:
            following = asyncio.create_task(follow(stream))
            yield client, told
            following.cancel()


class StatelessEra(ListeningEra, unittest.IsolatedAsyncioTestCase):
    mode = "2026-07-28"
    revision = "2026-07-28"


class Discovering(ListeningEra, unittest.IsolatedAsyncioTestCase):
    mode = "auto"
    revision = "2026-07-28"


if __name__ == "__main__":
    unittest.main()
