#!/usr/bin/env python3
# suite: seconds=110 sanitizers=no
"""A notebook of Jupyter, run by nbclient and a real kernel in a sandbox, has the outputs that it has in the same image
without Hearth."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from environments import environment  # noqa: E402
from harness import Server, main, pool_yaml, record  # noqa: E402
from plain import like, packed  # noqa: E402

PACKAGES = ".local/lib/python3.11/site-packages"  # of the user, whose home is the workspace
CELLS = [
    "x = 41\nprint('stream', x)",
    "x + 1",
    "import sys\nprint('to out')\nprint('to err', file=sys.stderr)",
    "import pandas as pd\npd.DataFrame({'n': [1, 2], 't': ['é', '<b>']})",
    "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.title('标题');",
    "def divide(a, b):\n    return a / b\ndivide(x, 0)",
    "import asyncio\nawait asyncio.sleep(0.01)\nawait asyncio.gather(asyncio.to_thread(sum, [1, 2]), asyncio.sleep(0, 'slept'))",
    "from IPython.display import HTML, Markdown, display\nhandle = display(Markdown('**first**'), display_id='d')\nhandle.update(HTML('<i>second</i>'))",
    "!echo from a shell; exit 3",
    "%%bash\nfor i in 1 2; do echo $i; done >&2",
    "import concurrent.futures, threading\nwith concurrent.futures.ThreadPoolExecutor(2) as pool:\n    print(list(pool.map(abs, [-1, -2])))\nthreading.Thread(target=print, args=('from a thread',)).start()",
    "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n    print(pool.map(abs, [-3, -4]))",
    "input('not allowed here')",
    "_, Out[2], In[1], __name__, x",
    "import sys\nsys.exit(3)",
    "'the kernel is still there'",
]
RUNNER = """import nbformat
from nbclient import NotebookClient

with open("in.ipynb") as file:
    notebook = nbformat.read(file, as_version=4)
NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True, record_timing=False).execute()
nbformat.write(notebook, "out.ipynb")
print("executed")
"""


def notebook():
    cells = [{"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# A notebook"}]
    cells += [{"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "source": text, "outputs": [], "execution_count": None}
              for number, text in enumerate(CELLS)]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def contents(packages):
    """Returns the files of the workspace at the beginning."""
    found = {"in.ipynb": notebook(), "main.py": RUNNER.encode()}
    for place, folders, files in os.walk(packages):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(("pip", "setuptools"))]
        for name in files:
            with open(os.path.join(place, name), "rb") as file:
                found[os.path.relpath(os.path.join(PACKAGES, os.path.relpath(place, packages), name))] = file.read()
    return found


def outputs(text):
    """The outputs of the cells; pieces of one stream are joined, as it is chance where they are cut."""
    found = []
    for cell in json.loads(text)["cells"]:
        joined = []
        for each in cell.get("outputs", []):
            if each["output_type"] == "stream" and joined and joined[-1].get("name") == each["name"]:
                joined[-1]["text"] += "".join(each["text"])
            else:
                joined.append({**each, "text": "".join(each["text"])} if each["output_type"] == "stream" else each)
        found.append(sorted(joined, key=lambda each: each.get("name", "")))
    return found


def runs_in_a_sandbox():
    """a notebook runs through nbclient and ipykernel in a sandbox as it does without Hearth: streams, values, tables, figures, errors, await, threads"""
    text = pool_yaml("python", image="python", warm=1, memory="1Gi").replace("workspace: 64Mi", "workspace: 512Mi")
    text = text.replace("  template:\n", "  template:\n    prewarm: {languages: [python], timeout: 60s}\n", 1)
    files = packed(contents(packages))
    with Server(text, ready_within=300) as s:
        workspace = s.open_workspace(pool="python")["id"]
        plain = like(s, workspace)
        try:
            without = plain.run(["python3", "main.py"], files)
        finally:
            plain.close()
        assert without["exitCode"] == 0, without["stderr"]
        expected = outputs(without["files"]["out.ipynb"][1])
        kinds = {each["output_type"] for cell in expected for each in cell}
        assert kinds == {"stream", "execute_result", "display_data", "error"}, kinds
        assert s.call("PUT", f"/v1/workspaces/{workspace}/archive", raw=files, timeout=120).status < 300
        for fields in ({"argv": ["python3", "main.py"]}, {"code": RUNNER, "language": "python"}):
            done = s.post(f"/v1/workspaces/{workspace}/executions", {**fields, "timeoutSeconds": 100}, timeout=120).json
            assert done["status"] == "ok" and done["stdout"] == without["stdout"], done
            got = outputs(s.get(f"/v1/workspaces/{workspace}/files/out.ipynb").body)
            for text, left, right in zip(["", *CELLS], expected, got):
                assert left == right, f"{text}\nwithout Hearth: {left}\nin a sandbox: {right}"
            assert s.run(workspace, "rm out.ipynb")["exitCode"] == 0


if __name__ == "__main__":
    runs_in_a_sandbox.only = "oci"
    try:
        python = environment("notebook", os.path.join(HERE, "notebook.txt"))
        packages = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True,
                                  check=True).stdout.strip()
        if not packages.endswith(PACKAGES.split("/", 1)[1]):
            raise OSError(f"the packages of this machine's Python are not for the image's: {packages}")
        main("server", [runs_in_a_sandbox])
    except OSError as e:
        record("skip", "server", f"{runs_in_a_sandbox.__doc__} ({e})")
