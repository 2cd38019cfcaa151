#!/usr/bin/env python3
# suite: seconds=60 needs=hearth-conformance,node sanitizers=no
"""The official MCP conformance suite, against a server with its fixtures and, for scenarios that need none, a plain one; the
official Inspector's lint of every tool's schema."""

import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Server, main, npm_ci, pool_yaml  # noqa: E402

SUITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mcp", "conformance")
NODE = os.path.join(SUITE, "node_modules", "node", "bin", "node")  # the suite needs Node 22, whatever the machine has
PROGRAM = os.path.join(SUITE, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
INSPECTOR = os.path.join(SUITE, "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")

# Scenarios that need only the protocol. A subscription needs a resource, which is a fixture.
PLAIN = {
    "2025-11-25": ["server-initialize", "logging-set-level", "ping", "completion-complete", "tools-list",
                   "server-sse-multiple-streams", "resources-list", "prompts-list", "dns-rebinding-protection",
                   "server-session-lifecycle"],
    "2026-07-28": ["server-stateless", "completion-complete", "tools-list", "server-sse-multiple-streams", "resources-list",
                   "sep-2164-resource-not-found", "prompts-list", "dns-rebinding-protection", "caching",
                   "input-required-result-unsupported-methods", "input-required-result-validate-input",
                   "http-header-validation"],
}
# Checks in these scenarios that still call a fixture.
NEEDS_FIXTURE = {"sep-2575-server-rejects-undeclared-capability", "sep-2575-http-server-no-independent-requests-on-stream",
                 "sep-2575-server-no-log-without-loglevel", "sep-2575-missing-capability-http-400"}
# Scenarios that the suite runs but does not score: parameters that are also sent as headers.
UNSCORED = {"2025-11-25": [], "2026-07-28": ["http-custom-header-server-validation"]}
# Every endpoint with the number of its tools.
TOOLS = {"/mcp": 10, "/compat/s0/mcp": 9, "/compat/s1/mcp": 7, "/compat/s2/mcp": 3, "/compat/s3/mcp": 4}


def run_suite(server, requirements, out):
    """Returns the exit status (0: every scored scenario passed), the output, and each scenario's checks."""
    done = subprocess.run([NODE, PROGRAM, "server", "--url", server.url + "/mcp", "--requirements", requirements, "-o", out],
                          capture_output=True, text=True, timeout=300, env=dict(os.environ, HOME=out))
    checks = {}
    for folder in sorted(os.listdir(out)):
        path = os.path.join(out, folder, "checks.json")
        scenario = re.match(r"server-(.+)-\d{4}-\d\d-\d\dT", folder)  # the name ends with the time, to the millisecond
        if scenario and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                checks[scenario[1]] = json.load(f)
    return done.returncode, done.stdout + done.stderr, checks


def failures(checks):
    return [f"{one['id']}: {one.get('errorMessage')}" for one in checks if one["status"] == "FAILURE"]


def test_with_fixtures():
    """with its fixtures, every scored scenario of both sets of the official conformance suite passes, and parameters as headers do"""
    npm_ci(SUITE)
    with Server(pools=pool_yaml(), program=("hearth-conformance",)) as server:
        for requirements in PLAIN:
            with tempfile.TemporaryDirectory() as out:
                status, said, checks = run_suite(server, requirements, out)
                assert len(checks) >= 30, said
                assert status == 0, said[said.find("=== SUMMARY"):]
                for scenario in UNSCORED[requirements]:
                    results = {one["status"] for one in checks[scenario]}
                    assert "SUCCESS" in results and results <= {"SUCCESS", "INFO"}, checks[scenario]
                print(f"      {requirements}: {sum(len(each) for each in checks.values())} checks")


def test_without_fixtures():
    """a plain server has none of the suite's fixtures and passes every scenario that needs none"""
    npm_ci(SUITE)
    with Server(pools=pool_yaml()) as server:
        for requirements, scenarios in PLAIN.items():
            with tempfile.TemporaryDirectory() as out:
                _, said, checks = run_suite(server, requirements, out)
                assert '"test_' not in json.dumps([one.get("details") for one in checks["tools-list"]]), "a fixture is listed"
                for scenario in scenarios:
                    left = [one for one in checks[scenario] if one["id"] not in NEEDS_FIXTURE]
                    assert left and not failures(left), f"{requirements} {scenario}: {failures(left)}\n{said[-500:]}"


def lint(home, *where):
    """Returns the Inspector's exit status (6: a finding is an error), the tools that it listed, and its findings, warnings
    too."""
    done = subprocess.run([NODE, INSPECTOR, "--cli", *where, "--method", "tools/list", "--strict", "--format", "json", "-q"],
                          capture_output=True, text=True, timeout=120, env=dict(os.environ, HOME=home))
    assert done.returncode in (0, 6), done
    said = json.loads(done.stdout)
    return done.returncode, said["result"]["tools"], said.get("schemaFindings", [])


# An MCP server with a schema that the lint must refuse.
BAD_SERVER = '''
import json, sys
answers = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "bad", "version": "1"}},
           "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object", "properties": {"anything": True}}}]}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {})}), flush=True)
'''


def test_schemas():
    """the official Inspector's strict lint finds nothing in the schemas of any endpoint, and does find what is wrong elsewhere"""
    npm_ci(SUITE)
    with tempfile.TemporaryDirectory() as home:
        bad = os.path.join(home, "bad.py")
        with open(bad, "w", encoding="ascii") as f:
            f.write(BAD_SERVER)
        status, _, findings = lint(home, sys.executable, bad)
        assert status == 6 and findings[0]["findings"][0]["path"] == "properties.anything", findings
        with Server(pools=pool_yaml()) as server:
            for path, count in TOOLS.items():
                for era in ("legacy", "modern"):
                    status, tools, findings = lint(home, server.url + path, "--transport", "http", "--protocol-era", era)
                    assert status == 0 and not findings and len(tools) == count, (path, era, len(tools), findings)


for each in (test_with_fixtures, test_without_fixtures, test_schemas):
    each.only = "oci"  # the protocol does not depend on the runtime

if __name__ == "__main__":
    main("server", [test_with_fixtures, test_without_fixtures, test_schemas])
