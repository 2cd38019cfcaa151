"""What libraries for agents do with an MCP server, without a model: the tools become theirs, some are called, a mistake comes back
as words, and large figures reach them. The argument names one of the functions below. HEARTH_URL is the server's."""

import asyncio
import os
import sys

URL = os.environ["HEARTH_URL"] + "/mcp"
TOOLS = {"pool_list", "workspace_open", "workspace_list", "workspace_extend", "workspace_close", "run", "run_status", "packages",
         "file_put", "file_get"}
CODE = {"code": "print(6 * 7)", "language": "python"}
WRONG = {"code": "1", "command": "true"}
WORDS = "exactly one of"
FIGURES = {"code": "import numpy as np\nfrom PIL import Image\nfor i in range(2):\n"
                   "    Image.fromarray((np.random.rand(480, 480, 3) * 255).astype('uint8')).show()", "language": "python", "timeout_s": 120}


async def fastmcp():
    from fastmcp import Client
    from fastmcp.exceptions import ToolError
    async with Client(URL) as client:
        assert {tool.name for tool in await client.list_tools()} == TOOLS
        assert "42" in (await client.call_tool("run", CODE)).content[0].text
        content = (await client.call_tool("run", FIGURES)).content
        assert [part.type for part in content].count("image") == 2, [part.type for part in content]
        try:
            await client.call_tool("run", WRONG)
            raise SystemExit("it was not refused")
        except ToolError as e:
            assert WORDS in str(e), e
        assert await client.list_resources() and await client.list_prompts()
        assert (await client.read_resource("pool://python"))[0].text


async def langchain():
    from langchain_mcp_adapters.client import MultiServerMCPClient
    client = MultiServerMCPClient({"hearth": {"transport": "streamable_http", "url": URL}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    assert set(tools) == TOOLS
    assert "42" in str(await tools["run"].ainvoke(CODE))
    seen = await tools["run"].ainvoke({"name": "run", "args": FIGURES, "id": "1", "type": "tool_call"})
    assert [part["type"] for part in seen.content].count("image") == 2, [part["type"] for part in seen.content]
    refused = await tools["run"].ainvoke({"name": "run", "args": WRONG, "id": "2", "type": "tool_call"})
    assert refused.status == "error" and WORDS in str(refused.content), refused


async def pydantic_ai():
    from pydantic_ai.exceptions import ModelRetry
    from pydantic_ai.mcp import MCPToolset
    toolset = MCPToolset(URL)
    async with toolset:
        assert {tool.name for tool in await toolset.list_tools()} == TOOLS
        assert "42" in str(await toolset.direct_call_tool("run", CODE))
        seen = await toolset.direct_call_tool("run", FIGURES)
        assert sum(type(part).__name__ == "BinaryContent" or type(part).__name__ == "BinaryImage" for part in seen) == 2, [type(part) for part in seen]
        try:
            await toolset.direct_call_tool("run", WRONG)
            raise SystemExit("it was not refused")
        except ModelRetry as e:
            assert WORDS in str(e), e


async def openai_agents():
    from agents.mcp import MCPServerSse, MCPServerStreamableHttp, MCPUtil
    for server in (MCPServerStreamableHttp(params={"url": URL}, client_session_timeout_seconds=150),
                   MCPServerSse(params={"url": os.environ["HEARTH_URL"] + "/sse"}, client_session_timeout_seconds=150)):
        async with server:
            tools = await server.list_tools()
            assert {tool.name for tool in tools} == TOOLS
            for strict in (False, True):  # their schemas become those of functions
                made = [MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=strict) for tool in tools]
                assert len(made) == len(TOOLS)
            assert "42" in (await server.call_tool("run", CODE)).content[0].text
            content = (await server.call_tool("run", FIGURES)).content
            assert [part.type for part in content].count("image") == 2, [part.type for part in content]
            refused = await server.call_tool("run", WRONG)
            assert WORDS in refused.content[0].text, refused


async def smolagents():
    await asyncio.to_thread(smolagents_here)


def smolagents_here():
    from smolagents import MCPClient
    with MCPClient({"url": URL, "transport": "streamable-http"}, structured_output=False) as tools:
        named = {tool.name: tool for tool in tools}
        assert set(named) == TOOLS
        assert "42" in named["run"](**CODE)
        assert "hearth-figure-1.png" in named["run"](**FIGURES)  # it takes the first part alone
        assert WORDS in str(named["run"](**WRONG))
        assert "python" in named["pool_list"]()


asyncio.run({each.__name__: each for each in (fastmcp, langchain, pydantic_ai, openai_agents, smolagents)}[sys.argv[1]]())
