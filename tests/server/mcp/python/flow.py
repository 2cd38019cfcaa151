"""What a Python program does with the official MCP SDK, of either generation: tools, runs, long and large results, contexts,
files. Arguments are kinds of connection; "logs" before them asks for log messages too. HEARTH_URL is the server's, HEARTH_BIN
the program."""

import asyncio
import base64
import contextlib
import json
import os
import re
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

LOGS = "logs" in sys.argv
URL = os.environ["HEARTH_URL"]
TOOLS = {"pool_list", "workspace_open", "workspace_list", "workspace_extend", "workspace_close", "run", "run_status", "packages",
         "file_put", "file_get"}
MIB = 1 << 20  # the second generation takes no larger event of a stream
NOISE = ("import numpy as np\nfrom PIL import Image\nfor i in range(2):\n"
         "    Image.fromarray((np.random.rand(480, 480, 3) * 255).astype('uint8')).show()")


def stdio():
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HEARTH_URL") or name.endswith("SAN_OPTIONS")}
    return StdioServerParameters(command=os.environ["HEARTH_BIN"], args=["mcp"], env=kept)


@contextlib.asynccontextmanager
async def of_session(transport):
    """A session as programs for the first generation make it; the second still has it."""
    async with transport as streams, ClientSession(streams[0], streams[1], logging_callback=note) as session:
        await session.initialize()
        if LOGS:
            with contextlib.suppress(Exception):  # the second generation has no word for it
                await session.set_logging_level("debug")
        yield session


def of_client(mode, server=URL + "/mcp"):
    from mcp import Client  # of the second generation only
    return Client(server, mode=mode, logging_callback=note, log_level="debug" if LOGS and mode != "legacy" else None)


KINDS = {
    "http": lambda: of_session(streamable_http_client(URL + "/mcp")),
    "sse": lambda: of_session(sse_client(URL + "/sse")),
    "stdio": lambda: of_session(stdio_client(stdio())),
    "client": lambda: of_client("auto"),
    "client of 2026-07-28": lambda: of_client("2026-07-28"),
    "client with a handshake": lambda: of_client("legacy"),
    "client by stdio": lambda: of_client("auto", stdio()),
}
told = []  # log messages


async def note(params):
    told.append(len(json.dumps(params.data)))


class Caller:
    """Calls in the words of the protocol: the generations name fields differently."""

    def __init__(self, client):
        self.client = client

    async def call(self, tool, **arguments):
        async def progress(*_):
            pass

        answer = await asyncio.wait_for(self.client.call_tool(tool, arguments, progress_callback=progress), 150)
        result = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        size = len(json.dumps(result))
        assert size < MIB, f"{tool} gave {size} bytes"
        return result

    async def good(self, tool, **arguments):
        result = await self.call(tool, **arguments)
        assert not result.get("isError"), result
        return result["content"]

    async def text(self, tool, **arguments):
        return "\n".join(part["text"] for part in await self.good(tool, **arguments) if part["type"] == "text")

    async def read(self, uri):
        return (await self.client.read_resource(uri)).model_dump(by_alias=True, mode="json")["contents"][0]

    async def alive(self):
        assert {tool.name for tool in (await self.client.list_tools()).tools} == TOOLS


async def runs(c):
    text = await c.text("run", code="print(6 * 7)", language="python")
    assert text.startswith("ok, exit 0") and "42" in text, text
    text = await c.text("run", command="echo out; echo err >&2; exit 3")
    assert text.startswith("failed, exit 3") and "out" in text and "err" in text, text
    refused = await c.call("run", command="true", code="1")
    assert refused["isError"] and "exactly one of" in refused["content"][0]["text"], refused
    with contextlib.suppress(Exception):  # a result in one, an error of the protocol in the other
        refused = await c.call("no_such_tool")
        assert refused["isError"], refused


async def figures(c):
    content = await c.good("run", code=NOISE, language="python", timeout_s=120)
    shown = [base64.b64decode(part["data"]) for part in content if part["type"] == "image"]
    assert len(shown) == 2 and all(len(each) > 10_000 for each in shown), [part.get("text") for part in content]
    words = "\n".join(part["text"] for part in content if part["type"] == "text")
    assert "hearth-figure-1.png" in words and "hearth-figure-2.png" in words, words


async def long_output(c):
    text = await c.text("run", code="for i in range(1_000_000): print('line', i)", language="python", timeout_s=120)
    assert "line 0\n" in text and "line 999999" in text, text[:1000]
    run = re.search("ex_[0-9a-f]{32}", text)
    assert run, text[:1000]
    assert "line " in await c.text("run_status", run_id=run.group(), since=0)


async def contexts_and_files(c):
    workspace = re.search("ws_[0-9a-f]{32}", await c.text("workspace_open", pool="python")).group()
    await c.good("run", workspace_id=workspace, context="main", language="python", code="x = [1, 2, 3]")
    assert "6" in await c.text("run", workspace_id=workspace, context="main", language="python", code="sum(x)")
    await c.good("file_put", workspace_id=workspace, path="gr\u00fc\u00dfe.txt", text="hello")
    assert await c.text("file_get", workspace_id=workspace, path="gr\u00fc\u00dfe.txt") == "hello"
    await c.good("run", workspace_id=workspace, command="head -c 3000000 /dev/urandom > noise.bin; seq 400000 > lines.txt",
                 collect=[])
    for name in ("noise.bin", "lines.txt"):
        await c.call("file_get", workspace_id=workspace, path=name)  # its size alone is looked at
        await c.alive()
    for name in ("noise.bin", "lines.txt"):
        with contextlib.suppress(Exception):  # the whole or a refusal, but never a session's end
            await asyncio.wait_for(c.read(f"workspace://{workspace}/files/{name}"), 60)
        await c.alive()
    assert (await c.read("pool://python"))["text"]
    await c.good("workspace_close", workspace_id=workspace)


async def main():
    for kind in filter(KINDS.get, sys.argv[1:]):
        told.clear()
        async with KINDS[kind]() as client:
            c = Caller(client)
            for part in (runs, figures, long_output, contexts_and_files):
                await c.alive()
                await part(c)
            await c.alive()
        assert max(told, default=0) < MIB, max(told)
        print(f"{kind}: {len(told)} log messages", flush=True)


asyncio.run(main())
