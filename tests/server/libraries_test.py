#!/usr/bin/env python3
# suite: seconds=150 sanitizers=no
"""The Python libraries of the image python, beside packages of the real index: whatever is installed, each library
still imports and works. Five packages by default, thirty with HEARTH_TEST_PACKAGES=all."""

import glob
import json
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import harness  # noqa: E402
from harness import REPO, Shared, main, pool_yaml, record  # noqa: E402

ALL = os.environ.get("HEARTH_TEST_PACKAGES") == "all"
IMAGE = os.path.join(REPO, "sandbox_images", "python")
MOST_UNPACKED = 610  # MB

# Each package with one of its modules. The first five pin, extend or replace numpy, scipy, pandas or matplotlib.
PACKAGES = {
    "numpy==2.1": "numpy", "scikit-learn": "sklearn", "statsmodels": "statsmodels.api", "opencv-python-headless": "cv2",
    "seaborn": "seaborn",

    "scipy": "scipy", "numpy<2": "numpy", "pandas<3": "pandas", "numba": "numba", "pyarrow": "pyarrow", "polars": "polars",
    "duckdb": "duckdb", "sqlalchemy": "sqlalchemy", "dask[dataframe]": "dask.dataframe", "xarray": "xarray", "h5py": "h5py",
    "networkx": "networkx", "scikit-image": "skimage", "xgboost": "xgboost", "lightgbm": "lightgbm", "plotly": "plotly.express",
    "bokeh": "bokeh.plotting", "altair": "altair", "nltk": "nltk", "spacy": "spacy", "gensim": "gensim", "shap": "shap",
    "geopandas": "geopandas", "transformers": "transformers", "xlsxwriter": "xlsxwriter",
}
DEFAULT = 5

# A small use of each library of the image, by the library's name in `wheels`.
USES = {
    "numpy": "import numpy; assert (numpy.arange(6).reshape(2, 3) @ numpy.ones(3)).tolist() == [3, 12]",
    "pandas": "import pandas; frame = pandas.DataFrame({'k': list('aab'), 'v': [1, 2, 3]})\n"
              "assert frame.groupby('k').v.sum().to_dict() == {'a': 3, 'b': 3}",
    "matplotlib": "import io, matplotlib.pyplot as p; p.plot([1, 4, 9]); p.title('标题'); out = io.BytesIO(); p.savefig(out)\n"
                  "assert out.getvalue().startswith(b'\\x89PNG')",
    "scipy": "import scipy.optimize, scipy.stats, scipy.linalg\n"
             "assert abs(scipy.optimize.brentq(lambda x: x * x - 2, 0, 2) ** 2 - 2) < 1e-9 and scipy.stats.norm.cdf(0) == 0.5",
    "pillow": "from PIL import Image; assert Image.new('RGB', (4, 4), 'red').resize((2, 2)).getpixel((1, 1)) == (255, 0, 0)",
    "requests": "import requests; assert requests.Request('GET', 'http://x', params={'a': 'b'}).prepare().url == 'http://x/?a=b'",
    "openpyxl": "import io, pandas; out = io.BytesIO(); pandas.DataFrame({'a': [1, 2]}).to_excel(out, engine='openpyxl')\n"
                "assert pandas.read_excel(out).a.tolist() == [1, 2]",
}
PROGRAM = f"""
import importlib, json, sys, traceback, warnings
failed = {{}}
for name, use in {USES!r}.items():
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Glyph")  # a title without a font for it
            exec(use, {{}})
    except BaseException:
        failed[name] = traceback.format_exc()[-600:]
try:
    [importlib.import_module(name) for name in sys.argv[1:]]
except BaseException:
    failed[sys.argv[1]] = traceback.format_exc()[-600:]
print(json.dumps(failed))
"""


def named():
    """Returns the libraries that the image's definition names."""
    with open(os.path.join(IMAGE, "wheels"), encoding="utf-8") as f:
        return [line.split("#")[0].strip() for line in f if line.split("#")[0].strip()]


def locked():
    with open(os.path.join(IMAGE, "wheels.lock"), encoding="utf-8") as f:
        return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", f.read(), re.MULTILINE))


def index_of_this_machine():
    """Returns the index that pip uses here, and the hosts of its files."""
    url = os.environ.get("PIP_INDEX_URL")
    for question in (["-m", "pip", "config", "get", "global.index-url"],
                     ["-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"]):
        if not url:
            url = subprocess.run([sys.executable, *question], capture_output=True, text=True, check=False).stdout.strip()
    assert url, "pip is missing; try: apt-get install python3-pip"
    url = url.rstrip("/") + "/"
    with urllib.request.urlopen(url + "six/", timeout=60) as page:
        files = re.findall(r'href="([^"#]+)', page.read().decode())
    return url, sorted({urllib.parse.urlsplit(urllib.parse.urljoin(page.url, each)).hostname for each in files})


def real_mirror():
    """Returns arguments of a server that mirrors this machine's index. Its files may be on a host of their own, which a network may resolve to an
    internal address."""
    url, hosts = index_of_this_machine()
    return ("--mirror-pypi", url, *(word for host in hosts for word in ("--mirror-hosts", host)))


def with_real_mirror(tests, asking):
    """Returns the arguments of real_mirror(), and the tests; without an index those that ask it are skipped."""
    for each in tests:
        each.only = "oci"  # they test the image and its drivers
    try:
        return real_mirror(), tests
    except OSError as e:
        for each in asking:
            record("skip", "server", f"{each.__doc__} (the index cannot be reached: {e})")
        return (), [each for each in tests if each not in asking]


def roomy_pool(warm=1):
    """Returns a pool for the largest wheels: pip keeps each download twice in /tmp, which is memory."""
    text = pool_yaml(name="python", image="python", warm=warm)
    return re.sub(r"    resources: .*\n", "    resources: {cpu: \"2\", memory: 4Gi, pids: 512, workspace: 4Gi, tmp: 2Gi}\n"
                                          "    network: {mode: Mirror}\n    prewarm: {languages: [python], timeout: 60s}\n", text)


def uses(s, workspace, module="json", **fields):
    """Runs the uses of all libraries. Returns the execution and the failed uses."""
    put = s.call("PUT", f"/v1/workspaces/{workspace}/files/uses.py", raw=PROGRAM.encode())
    assert put.status == 200, put
    answer = s.post(f"/v1/workspaces/{workspace}/executions",
                    dict(fields, command=f"python3 uses.py {module}", timeoutSeconds=900), timeout=960)
    assert answer.status == 200 and answer.json["status"] == "ok", answer
    return answer.json, json.loads(answer.json["stdout"])


def preinstalled():
    """the image python has the libraries of its lock, each of them works, and it is at most 610 MB without documentation"""
    assert sorted(USES) == sorted(named()), "each library of sandbox_images/python/wheels needs a use here"
    with shared as s:
        workspace = s.open_workspace()["id"]
        assert uses(s, workspace)[1] == {}
        told = s.post(f"/v1/workspaces/{workspace}/packages", {"list": True, "waitSeconds": 60}, timeout=90).json["packages"]
        assert {name: told.get(name, {}).get("version") for name in locked()} == locked(), told
        listed = {each["name"].lower().replace("_", "-"): each["version"]
                  for each in json.loads(s.run(workspace, "pip list --format json")["stdout"])}
        assert locked().items() <= listed.items(), listed
        documents = s.run(workspace, "ls -d /usr/share/doc /usr/share/man /usr/share/info /usr/local/share/man "
                                     "$(python3 -c 'import pandas; print(*pandas.__path__)')/tests 2>/dev/null")
        assert documents["stdout"] == "", documents
        with open(os.path.join(harness.IMAGES, "python", "index.json"), encoding="utf-8") as f:
            digest = json.load(f)["manifests"][0]["digest"].split(":")[1]
        tree = os.path.join(s.data, "rootfs", digest)
        unpacked = int(subprocess.run(["du", "-sm", tree], capture_output=True, check=True).stdout.split()[0])
        assert unpacked <= MOST_UNPACKED, f"{unpacked} MB"


def beside(spec, module):
    def test():
        with shared as s:
            done, failed = uses(s, s.open_workspace()["id"], module, packages=[spec])
            assert not failed, "\n".join(f"{name}: {why}" for name, why in failed.items())
            (version,) = done["installed"].values()
            print(f"      {spec}: {version}, installed in {done['installMs'] / 1000:.1f} s")
    name = re.sub(r"\W+", "_", spec)
    test.__name__ = f"beside_{name}"
    test.__doc__ = f"every library of the image works beside {spec} of the real index"
    return test


MESSAGE = r"""
import threading, zmq
context = zmq.Context()
server, client = context.socket(zmq.REP), context.socket(zmq.REQ)
server.bind("ipc:///tmp/socket"), client.connect("ipc:///tmp/socket")
answer = threading.Thread(target=lambda: server.send(server.recv() + b" back"))
answer.start(), client.send(b"there and"), print(client.recv().decode()), answer.join()
"""


def messages():
    """pyzmq makes a context, whose threads set their scheduling, and passes a message"""
    with shared as s:
        done = s.post(f"/v1/workspaces/{s.open_workspace()['id']}/executions",
                      {"code": MESSAGE, "language": "python", "packages": ["pyzmq"], "timeoutSeconds": 300}, timeout=330).json
        assert (done["status"], done["stdout"]) == ("ok", "there and back\n"), done


def ends():
    """the server of these tests leaves nothing behind"""
    shared.end()


if __name__ == "__main__":
    tests = [preinstalled, *(beside(*each) for each in list(PACKAGES.items())[:None if ALL else DEFAULT]), messages, ends]
    mirror, tests = with_real_mirror(tests, tests[1:-1])
    shared = Shared(pools=roomy_pool(), args=mirror)
    try:
        main("server", tests)
    finally:
        shared.clean_up()
