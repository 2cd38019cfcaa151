"""A machine with GPUs for a server: the folder that the stand-in for NVIDIA's libraries reads (tests/support/gpu), and CDI files
that give a sandbox each device's memory as a file. Standard library only."""

import hashlib
import json
import os
import shutil
import tempfile

from harness import BUILD, Server, pool_yaml

STANDIN = os.path.join(BUILD, "gpu-standin")
LIBRARIES = ("libnvidia-ml-standin.so", "libcuda-standin.so")
MEMORY = 4 << 20


def uuid(number):
    return f"GPU-00000000-0000-0000-0000-{number:012d}"


def gpu_pool(name="gpu", warm=1, count=1, more="", **fields):
    return pool_yaml(name, warm=warm, **fields).replace("    resources:", f"    gpu: {{count: {count}{more}}}\n    resources:")


class Machine:
    """The folder that the stand-in reads, and CDI files for its devices. A device's node is another name of /dev/zero."""

    def __init__(self, count=1):
        self.root = tempfile.mkdtemp(prefix="hearth-gpus-")
        os.chmod(self.root, 0o755)
        for library in LIBRARIES:  # servers of one library share a machine's GPUs, and tests run side by side
            shutil.copy(os.path.join(STANDIN, library), self.root)
        self.cdi = os.path.join(self.root, "cdi")
        os.mkdir(self.cdi, 0o755)
        devices = []
        for i in range(count):
            folder = self.place(i)
            os.mkdir(folder)
            os.chmod(folder, 0o777)  # the scrub is not root
            self.write(i, "uuid", uuid(i))
            self.write(i, "name", "NVIDIA H100 80GB HBM3")
            self.write(i, "memory", str(MEMORY))
            self.write(i, "memory.bin", "\0" * MEMORY)
            os.chmod(self.place(i, "memory.bin"), 0o666)
            devices.append({"name": uuid(i), "containerEdits": {
                "deviceNodes": [{"path": f"/dev/nvidia{i}", "hostPath": "/dev/zero"}],
                "mounts": [{"hostPath": self.place(i, "memory.bin"), "containerPath": f"/gpu/{i}", "options": ["rw", "bind"]}],
                "env": [f"GPU_{i}=yes"]}})
        with open(os.path.join(self.cdi, "gpus.json"), "w", encoding="ascii") as f:
            json.dump({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices}, f)

    def place(self, number, file=""):
        return os.path.join(self.root, f"gpu{number}", file)

    def write(self, number, file, text=""):
        with open(self.place(number, file), "w", encoding="ascii") as f:
            f.write(text)

    def memory(self, number):
        with open(self.place(number, "memory.bin"), "rb") as f:
            return f.read()

    @property
    def args(self):
        nvml, cuda = (os.path.join(self.root, library) for library in LIBRARIES)
        return ["--gpu-library", nvml, "--cuda-library", cuda, "--cdi-folders", self.cdi]

    @property
    def seat(self):
        """The path of the lock of the server that has this machine's GPUs."""
        digest = hashlib.sha256(self.args[1].encode()).hexdigest()
        return f"/run/hearth/gpus-{digest[:12]}.lock"

    @property
    def env(self):
        return {"HEARTH_GPU_STANDIN": self.root}

    def server(self, pools, **fields):
        return Server(pools=pools, args=self.args, env=self.env, **fields)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)
        if os.path.exists(self.seat):
            os.remove(self.seat)
