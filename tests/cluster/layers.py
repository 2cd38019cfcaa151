"""A volume that all Pods share: the packages of a pool are installed into it once, and each of the pool's sandboxes reads
them."""

import contextlib
import os
import secrets
import tempfile

import layer_test
from harness import wait_for
from index import Index
from sandboxes import PYTHON, SHELL, load_images, serving
from session import NAMESPACE, apply, kubectl, session


@contextlib.contextmanager
def volume(folder):
    """Yields the claim of a volume that several Pods can write: the folder `shared` in that folder of the only node. Its name is unique."""
    place = os.path.join(folder, "shared")
    os.mkdir(place)
    os.chmod(place, 0o777)
    os.chmod(folder, 0o755)
    # An earlier claim exists until the last Pod that used it has gone.
    claim = f"shared-{secrets.token_hex(4)}"
    size, name = {"storage": "1Gi"}, f"{NAMESPACE}-{claim}"
    apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
           "spec": {"capacity": size, "accessModes": ["ReadWriteMany"], "hostPath": {"path": place}, "storageClassName": "",
                    "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": NAMESPACE, "name": claim}}},
          {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": claim},
           "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": name, "resources": {"requests": size}}})
    try:
        yield claim
    finally:
        kubectl("delete", "--wait=false", f"pv/{name}", f"pvc/{claim}")


def pool(name, packages, **more):
    return layer_test.pool(name, packages, **more).replace("image: python", f"image: {PYTHON}").replace("allowTags: false", "allowTags: true")


def packages_of_pools():
    """the packages of a pool are installed once, into the shared volume: its Pods have them read-only, also after kill -9 and without the index; others' are not there to be seen"""
    load_images(session.at("full"), PYTHON)
    with tempfile.TemporaryDirectory() as folder, volume(folder) as claim:
        args = ["--shared-volume", os.path.join(folder, "shared"), "--shared-volume-claim", claim]
        with Index(layer_test.WHEELS) as index, serving("---\n".join([pool("p", ["hearthfoo"]), pool("q", ["hearthbar"])]), [*args, "--mirror-pypi", index.pypi]) as s:
            told = layer_test.installed(s, "p")
            assert told["installed"] == {"hearthfoo": "1.0", "hearthbar": "2.5"}, told
            layer_test.installed(s, "q")
            workspace = s.open_workspace(pool="p")["id"]
            assert layer_test.code(s, workspace, layer_test.SHOW)["stdout"].split() == ["1.0", "2.5"]
            tried = s.run(workspace, "cd /.hearth/layer/site-packages; touch x; rm -rf ./*; ls ../.. ; grep -c sha256- /proc/self/mountinfo")
            assert tried["stderr"].count("Read-only file system") >= 2, tried
            assert tried["stdout"].splitlines()[-1] == "1", tried
            assert layer_test.code(s, workspace, layer_test.SHOW, env={"PYTHONHASHSEED": "1"})["stdout"].split() == ["1.0", "2.5"]
            asked = len(index.asked)
            s.kill9()
            s.start()
            wait_for("warm Pods again", lambda: s.get("/v1/pools/p").json["status"]["ready"] == 1, 90)
            other = s.open_workspace(pool="p")["id"]
            assert layer_test.code(s, other, layer_test.SHOW)["stdout"].split() == ["1.0", "2.5"]
            assert len(index.asked) == asked, index.asked[asked:]


def no_volume():
    """without a volume the condition of a pool with packages says what to start the server with, and other pools serve"""
    load_images(session.at("full"), PYTHON)
    with Index(layer_test.WHEELS) as index, serving("---\n".join([pool("p", ["hearthfoo"], warm=0), layer_test.pool_yaml("shell", image=SHELL, warm=1)]),
                                                    ["--mirror-pypi", index.pypi]) as s:
        told = wait_for("the condition", lambda: (c := layer_test.condition(s, "p"))["status"] == "False" and c, 60)
        assert "--shared-volume" in told["message"], told
        assert s.run(s.open_workspace(pool="shell")["id"], "echo on")["stdout"] == "on\n"


CASES = [packages_of_pools, no_volume]
