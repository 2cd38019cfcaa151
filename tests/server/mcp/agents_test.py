#!/usr/bin/env python3
# suite: seconds=5 sanitizers=no
"""Libraries for agents, each with its own MCP client, and schemathesis against the operations of openapi.json. Only with
HEARTH_TEST_CLIENTS=all, as they are 500 MB of packages: of PyPI, at the versions of agents/*.txt."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from environments import environment  # noqa: E402
from harness import SLOWER, Server, Shared, main, note, pool_yaml, record  # noqa: E402

ALL = os.environ.get("HEARTH_TEST_CLIENTS") == "all"
python = Shared(pools=pool_yaml("python", image="python", memory="512Mi"))
# What every answer must be; that every wrong request is refused, rest_contract_test shows.
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance"
SECONDS = 60
# 501 is what is said of contexts that an image does not keep.
SETTINGS = """[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 501]
"""
# The end of the server's work; pools, whose examples would make warm sandboxes of large images; and a stream, whose schema is
# of its text, which schemathesis takes for that of each event.
LEFT_OUT = ("/v1/drain", "/v1/pools", "/v1/pools/{pool}", "/v1/executions/{execution}/events")


def pinned(name):
    return environment("agents-" + name, os.path.join(HERE, "agents", name + ".txt"))


def drive(name):
    program = pinned(name)
    with python as s:
        done = subprocess.run([program, os.path.join(HERE, "agents", "flows.py"), name], capture_output=True, text=True,
                              timeout=300 * SLOWER, check=False, env=dict(os.environ, HEARTH_URL=s.url))
        assert done.returncode == 0, (done.stdout[-1000:], done.stderr[-4000:])


def fastmcp():
    """fastmcp takes the tools, their results with figures, and a refusal as words"""
    drive("fastmcp")


def langchain():
    """langchain-mcp-adapters does the same"""
    drive("langchain")


def pydantic_ai():
    """pydantic-ai does the same"""
    drive("pydantic_ai")


def openai_agents():
    """openai-agents does the same by both transports, and makes strict functions of the tools"""
    drive("openai_agents")


def smolagents():
    """smolagents makes tools of its own of them, and they answer"""
    drive("smolagents")


def schemathesis():
    """schemathesis finds no answer of the operations that openapi.json does not describe"""
    program = os.path.join(os.path.dirname(pinned("schemathesis")), "schemathesis")
    with Server(pools=pool_yaml(warm=4, max_wait="1s")) as s, tempfile.TemporaryDirectory() as folder:
        token = s.post("/v1/tokens", {"name": "tests", "role": "admin"}).json["token"]
        with open(os.path.join(folder, "schemathesis.toml"), "w", encoding="utf-8") as file:
            file.write(SETTINGS)
        header = {"Authorization": f"Bearer {token}"}
        done = subprocess.run([program, "run", s.url + "/openapi.json", "--phases", "examples,coverage,fuzzing", "--max-examples", "3",
                               "--checks", CHECKS, "--seed", "1", "--continue-on-failure", "--request-timeout", "30",
                               "--max-time", str(SECONDS), *(word for path in LEFT_OUT for word in ("--exclude-path", path)),
                               "-H", f"Authorization: Bearer {token}", "--no-color"],
                              cwd=folder, capture_output=True, text=True, timeout=(SECONDS + 180) * SLOWER, check=False)
        print("      " + "\n      ".join(line[:160] for line in done.stdout.splitlines()[-12:]))
        for workspace in s.get("/v1/workspaces", headers=header).json["items"]:
            s.call("DELETE", f"/v1/workspaces/{workspace['id']}", headers=header)
        s.post("/v1/drain", headers=header)
        s.stop()
        assert done.returncode == 0, "\n".join(line[:300] for line in done.stdout.splitlines())[:12_000] + done.stderr[-2000:]


def ends():
    """the server of the libraries for agents leaves nothing behind"""
    python.end()


TESTS = [fastmcp, langchain, pydantic_ai, openai_agents, smolagents, schemathesis, ends]
for each in TESTS:
    each.only = "oci"  # what a client sees does not depend on the runtime

if __name__ == "__main__":
    if not ALL:
        note("libraries for agents and schemathesis run with HEARTH_TEST_CLIENTS=all")
        sys.exit(0)
    try:
        for name in ("fastmcp", "langchain", "pydantic_ai", "openai_agents", "smolagents", "schemathesis"):
            pinned(name)
    except OSError as e:
        for each in TESTS[:-1]:
            record("skip", "server", f"{each.__doc__} (its packages cannot be had: {e})")
        sys.exit(0)
    try:
        main("server", TESTS)
    finally:
        python.clean_up()
