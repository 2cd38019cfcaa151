#!/usr/bin/env python3
# suite: seconds=110 needs=node sanitizers=no
"""Clients that are generated from openapi.json, by openapi-python-client, datamodel-codegen, openapi-generator and
openapi-typescript, do what the README does: claim, run, read a file, end. The generators come from PyPI and npm, at the versions
of generators.txt and generated/package-lock.json."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from environments import environment  # noqa: E402
from harness import BUILD, Server, main, note, npm_ci, pool_yaml, record, sse_events  # noqa: E402

TYPESCRIPT = os.path.join(HERE, "generated")
PINS = os.path.join(HERE, "generators.txt")
TOOLS = os.path.join(BUILD, "generators")
PYTHON = os.path.join(TOOLS, "bin", "python")

# Run with the generated package beside it; HEARTH_URL is the server's.
FLOW = '''
import io, os
from hearth_client import AuthenticatedClient, Client
from hearth_client.api.executions import execute, execute_once, get_execution, list_executions, write_stdin
from hearth_client.api.files import read_archive, read_file, write_archive, write_file
from hearth_client.api.pools import get_pool, put_pool
from hearth_client.api.system import get_capabilities
from hearth_client.api.workspaces import create_workspace, delete_workspace, get_workspace
from hearth_client.models import (Capabilities, Execution, ExecutionRequest, ExecutionStatus, FileEntry, InlineFile, OneShotRequest, Pool, PoolManifest,
                                  PoolManifestMetadata, PoolSpec, Problem, Workspace, WorkspaceRequest)
from hearth_client.types import File

client = Client(base_url=os.environ["HEARTH_URL"], timeout=60)
w = create_workspace.sync(client=client, body=WorkspaceRequest(files=[InlineFile(path="a.txt", text="hello")]))
assert isinstance(w, Workspace) and w.limits.pids > 0, w
ran = execute.sync(w.id, client=client, body=ExecutionRequest(command="cat a.txt; mkdir -p out; echo kept > out/note.txt"))
assert isinstance(ran, Execution) and ran.status == ExecutionStatus.OK and ran.stdout == "hello" and ran.exit_code == 0, ran
told = get_execution.sync(ran.id, client=client, prefer="wait=5")
assert told.id == ran.id and told.stdout == "hello", told
assert [x.id for x in list_executions.sync(w.id, client=client).items] == [ran.id]
note = read_file.sync_detailed(w.id, "out/note.txt", client=client)
assert note.status_code == 200 and note.parsed.payload.read() == b"kept\\n", note
wrote = write_file.sync(w.id, "deep/er.bin", client=client, body=File(payload=io.BytesIO(bytes(range(256)))))
assert isinstance(wrote, FileEntry) and wrote.size == 256, wrote
tar = read_archive.sync_detailed(w.id, client=client, path="out")
assert tar.status_code == 200 and b"note.txt" in tar.content, tar
fed = execute.sync(w.id, client=client, body=ExecutionRequest(argv=["cat"], background=True, stdin_open=True))
assert fed.status == ExecutionStatus.RUNNING, fed
assert write_stdin.sync_detailed(fed.id, client=client, body=File(payload=io.BytesIO(b"typed")), close=True).status_code == 204
assert get_execution.sync(fed.id, client=client, prefer="wait=30").stdout == "typed"
once = execute_once.sync(client=client, body=OneShotRequest(command="echo once"))
assert once.stdout == "once\\n" and once.claim.total_ms > 0, once

pool = get_pool.sync("shell", client=client)
assert isinstance(pool, Pool) and pool.spec.template.image == "shell" and pool.spec.warm.min_ == 1, pool
pool.spec.warm.min_ = 2
again = put_pool.sync("shell", client=client, body=PoolManifest(api_version=pool.api_version, kind=pool.kind, metadata=PoolManifestMetadata(name="shell"), spec=pool.spec))
assert isinstance(again, Pool) and again.spec.warm.min_ == 2, again
can = get_capabilities.sync(client=client)
assert isinstance(can, Capabilities) and can.isolation.seccomp and can.images[0].languages == ["sh"], can

assert delete_workspace.sync_detailed(w.id, client=client).status_code == 204
gone = get_workspace.sync(w.id, client=client)
assert isinstance(gone, Problem) and gone.status == 410 and gone.reason == "deleted", gone
'''

# Run with a generated package beside it: a module that nothing uses may still be broken.
IMPORTS = '''
import importlib, pkgutil
import hearth_client
modules = [m.name for m in pkgutil.walk_packages(hearth_client.__path__, "hearth_client.")]
assert len(modules) > 50, modules
for name in modules:
    importlib.import_module(name)
'''

# Run with the generated models beside it; its input is the server's answers.
MODELS = '''
import json, sys
import models
from pydantic import TypeAdapter
said = json.load(sys.stdin)
models.Workspace.model_validate(said["workspace"])
models.Pool.model_validate(said["pool"])
models.Capabilities.model_validate(said["capabilities"])
ended = models.Execution.model_validate(said["execution"])
assert ended.exitCode == 3 and ended.stdout == "out\\\\n".encode().decode("unicode_escape"), ended
events = [TypeAdapter(models.ExecutionEvent).validate_python(one) for one in said["events"]]
events = [getattr(one, "root", one) for one in events]
kinds = [type(one).__name__ for one in events]
assert kinds == ["StartedEvent", "StdoutEvent", "ExitEvent"], kinds
assert events[-1].data.status.value == "failed", events[-1]
request = models.ExecutionRequest(command="true")
assert request.model_dump(exclude_unset=True) == {"command": "true"}
'''

# Run with the package of openapi-generator beside it.
JAVA_FLOW = '''
import json, os
import hearth_client as h

with h.ApiClient(h.Configuration(host=os.environ["HEARTH_URL"], access_token=os.environ["HEARTH_TOKEN"])) as client:
    workspaces, executions, files, pools = (api(client) for api in (h.WorkspacesApi, h.ExecutionsApi, h.FilesApi, h.PoolsApi))
    w = workspaces.create_workspace(workspace_request=h.WorkspaceRequest(files=[h.InlineFile(path="a.txt", text="hello")]))
    assert isinstance(w, h.Workspace) and w.limits.pids > 0, w
    command = "cat a.txt; mkdir -p out; echo kept > out/note.txt"
    ran = executions.execute(w.id, execution_request=h.ExecutionRequest(command=command))
    assert isinstance(ran, h.Execution) and ran.status == "ok" and ran.stdout == "hello" and ran.exit_code == 0, ran
    told = executions.get_execution(ran.id, prefer="wait=5")
    assert told.stdout == "hello", told
    assert [x.id for x in executions.list_executions(w.id).items] == [ran.id]
    assert files.read_file(w.id, "out/note.txt") == b"kept\\n"
    wrote = files.write_file(w.id, "deep/er.bin", body=bytes(range(256)))
    assert isinstance(wrote, h.FileEntry) and wrote.size == 256, wrote
    fed = executions.execute(w.id, execution_request=h.ExecutionRequest(argv=["cat"], background=True, stdin_open=True))
    assert fed.status == "running", fed
    executions.write_stdin(fed.id, close=True, body=b"typed")
    assert executions.get_execution(fed.id, prefer="wait=30").stdout == "typed"
    once = executions.execute_once(one_shot_request=h.OneShotRequest(command="echo once"))
    assert once.stdout == "once\\n" and once.claim.total_ms > 0, once
    kinds = []
    for event in json.load(open("events.json", encoding="utf-8")):
        one = h.ExecutionEvent.from_dict(event).actual_instance
        kinds.append(type(one).__name__)
    assert kinds == ["StartedEvent", "StdoutEvent", "ExitEvent"], kinds
    assert one.data.status == "failed" and one.data.exit_code == 3, one
    pool = pools.get_pool("shell")
    assert isinstance(pool, h.Pool) and pool.spec.template.image == "shell" and pool.spec.warm.min == 1, pool
    assert h.SystemApi(client).get_capabilities().isolation.seccomp
    workspaces.delete_workspace(w.id)
    try:
        workspaces.get_workspace(w.id)
        raise SystemExit("it is still there")
    except h.ApiException as e:
        assert e.status == 410 and e.data.reason == "deleted", e
'''


def run(folder, *command, said=""):
    path = os.path.join(TOOLS, "bin") + os.pathsep + os.environ["PATH"]
    done = subprocess.run(command, input=said, capture_output=True, text=True, timeout=600, cwd=folder, check=False,
                          env=dict(os.environ, PATH=path, HOME=folder))
    assert done.returncode == 0, f"{command[:3]}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr


class Generated:
    """A server, with or without tokens, and a folder with its document."""

    def __init__(self, guarded=False):
        self.guarded = guarded

    def __enter__(self):
        self.server = Server(pools=pool_yaml(warm=1)).__enter__()
        if self.guarded:
            self.server.token = self.server.post("/v1/tokens", {"name": "root", "role": "admin"}).json["token"]
        self.folder = tempfile.mkdtemp(prefix="hearth-generated-")
        with open(os.path.join(self.folder, "openapi.json"), "wb") as file:
            file.write(self.server.get("/openapi.json").body)
        return self

    def __exit__(self, *why):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.server.__exit__(*why)

    def stream(self):
        """Returns the events of a run that fails, as the document describes them."""
        s = self.server
        answer = s.post(f"/v1/workspaces/{s.open_workspace()['id']}/executions", {"command": "echo out; exit 3"},
                        headers={"Accept": "text/event-stream"})
        return [{"id": one["id"], "event": one["event"], "data": json.loads(one["data"])}
                for one in sse_events(answer.body.decode().split("\n"))]

    def script(self, text, said=""):
        with open(os.path.join(self.folder, "flow.py"), "w", encoding="utf-8") as file:
            file.write(text)
        os.environ.update(HEARTH_URL=self.server.url, HEARTH_TOKEN=self.server.token or "")
        run(self.folder, PYTHON, "flow.py", said=said)


def asking_for_a_token(api):
    """Names the modules of openapi-python-client's operations that take a client with a token only."""
    found = set()
    for folder, _, files in os.walk(api):
        for name in files:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                if re.search(r"client: AuthenticatedClient\b(?! \|)", file.read()):
                    found.add(name)
    return found


def client():
    """openapi-python-client makes a client that leaves nothing out and asks for no token where the server asks for none"""
    with Generated() as made:
        told = run(made.folder, os.path.join(TOOLS, "bin", "openapi-python-client"), "generate", "--path", "openapi.json", "--meta", "none",
                   "--output-path", "hearth_client")
        assert "will not be generated" not in told and "will be omitted" not in told, told
        document = json.loads(made.server.get("/openapi.json").body)
        operations = sum(len(methods) for methods in document["paths"].values())
        api = os.path.join(made.folder, "hearth_client", "api")
        modules = [name for _, _, files in os.walk(api) for name in files if name != "__init__.py" and name.endswith(".py")]
        assert len(modules) == operations, (len(modules), operations)
        assert asking_for_a_token(api) == set()
        made.script(IMPORTS)
        made.script(FLOW)


def guarded_client():
    """the client that openapi-python-client makes from a server with tokens asks for one, but not to read a link or a document"""
    with Generated(guarded=True) as made:
        run(made.folder, os.path.join(TOOLS, "bin", "openapi-python-client"), "generate", "--path", "openapi.json", "--meta", "none",
            "--output-path", "hearth_client")
        api = os.path.join(made.folder, "hearth_client", "api")
        modules = {name for _, _, files in os.walk(api) for name in files if name != "__init__.py" and name.endswith(".py")}
        free = {"get_open_api.py", "get_docs.py", "get_root.py", "follow_link.py", "head_link.py"}
        assert asking_for_a_token(api) == modules - free, asking_for_a_token(api) ^ (modules - free)
        made.script(IMPORTS)
        made.script(FLOW.replace("client = Client(", 'client = AuthenticatedClient(token=os.environ["HEARTH_TOKEN"], '))


def models():
    """datamodel-codegen makes models, one for each request, that the answers and the events of streams fit"""
    with Generated() as made:
        run(made.folder, os.path.join(TOOLS, "bin", "datamodel-codegen"), "--input", "openapi.json", "--input-file-type", "openapi",
            "--output", "models.py", "--output-model-type", "pydantic_v2.BaseModel")
        s = made.server
        w = s.open_workspace()
        where, work = f"/v1/workspaces/{w['id']}/executions", {"command": "echo out; exit 3"}
        made.script(MODELS, json.dumps({"workspace": w, "execution": s.post(where, work).json, "events": made.stream(),
                                        "pool": s.get("/v1/pools/shell").json, "capabilities": s.get("/v1/capabilities").json}))


def another_client():
    """the Python client that openapi-generator makes has every operation, and does what the README does with the token that it was given"""
    with Generated(guarded=True) as made:
        told = run(made.folder, os.path.join(TOOLS, "bin", "openapi-generator-cli"), "generate", "-i", "openapi.json", "-g", "python",
                   "-o", "client", "--additional-properties=packageName=hearth_client", "--global-property=apiTests=false,modelTests=false")
        assert "ERROR" not in told and "Unable to" not in told, told
        os.rename(os.path.join(made.folder, "client", "hearth_client"), os.path.join(made.folder, "hearth_client"))
        document = json.loads(made.server.get("/openapi.json").body)
        operations = sum(len(methods) for methods in document["paths"].values())
        api = os.path.join(made.folder, "hearth_client", "api")
        text = "".join(open(os.path.join(api, name), encoding="utf-8").read() for name in os.listdir(api) if name.endswith("_api.py"))
        assert text.count("_with_http_info(\n        self") == operations, (text.count("_with_http_info(\n        self"), operations)
        with open(os.path.join(made.folder, "events.json"), "w", encoding="utf-8") as file:
            json.dump(made.stream(), file)
        made.script(IMPORTS)
        made.script(JAVA_FLOW)


def go():
    """the client for Go that openapi-generator makes compiles"""
    with Generated(guarded=True) as made:
        run(made.folder, os.path.join(TOOLS, "bin", "openapi-generator-cli"), "generate", "-i", "openapi.json", "-g", "go", "-o", "client",
            "--additional-properties=packageName=hearth,withGoMod=true", "--global-property=apiTests=false,modelTests=false")
        folder = os.path.join(made.folder, "client")
        fetched = subprocess.run(["go", "mod", "tidy"], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        if fetched.returncode != 0:
            return note(f"its modules cannot be had: {fetched.stderr.strip()[-200:]}")
        done = subprocess.run(["go", "build", "./..."], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr[-3000:]


def typescript():
    """the types that openapi-typescript makes pass tsc --strict, refuse wrong requests, and a client with them does what the README does"""
    npm_ci(TYPESCRIPT)
    with Generated() as made:
        for name in ("package.json", "tsconfig.json", "flow.ts"):
            shutil.copy(os.path.join(TYPESCRIPT, name), made.folder)
        os.symlink(os.path.join(TYPESCRIPT, "node_modules"), os.path.join(made.folder, "node_modules"))
        tools = os.path.join(made.folder, "node_modules", ".bin")
        run(made.folder, os.path.join(tools, "openapi-typescript"), "openapi.json", "--default-non-nullable=false", "-o", "hearth.ts")
        run(made.folder, os.path.join(tools, "tsc"), "-p", ".")
        os.environ["HEARTH_URL"] = made.server.url
        run(made.folder, "node", os.path.join("out", "flow.js"))


TESTS = [client, guarded_client, models, another_client, typescript]
if shutil.which("go"):
    TESTS.append(go)
for each in TESTS:
    each.only = "oci"  # the document does not depend on the runtime

if __name__ == "__main__":
    try:
        environment("generators", PINS)
    except OSError as e:
        for each in TESTS:
            record("skip", "server", f"{each.__doc__} (the generators cannot be had: {e})")
        sys.exit(0)
    main("server", TESTS)
