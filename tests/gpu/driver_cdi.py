"""A CDI file of this machine's NVIDIA driver: by nvidia-ctk where it is, else of the driver's files themselves."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

# What CUDA's driver library loads by itself, and NVML. Each is mounted under the name that programs ask for.
LIBRARIES = ["libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4", "libnvidia-gpucomp.so.*"]
IN_SANDBOX = f"/usr/lib/{os.uname().machine}-linux-gnu"


def library_folder(cuda):
    """Where the loader finds CUDA's driver library."""
    said = subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(open('/proc/self/maps').read())", cuda],
                          capture_output=True, text=True, check=True).stdout
    return os.path.dirname(re.search(r"(/\S*libcuda\.so\S*)", said).group(1))


def minors():
    """The number of each GPU's node, by its uuid."""
    found = {}
    for path in glob.glob("/proc/driver/nvidia/gpus/*/information"):
        with open(path, encoding="ascii") as file:
            text = file.read()
        found[re.search(r"GPU UUID:\s*(\S+)", text).group(1)] = int(re.search(r"Device Minor:\s*(\d+)", text).group(1))
    return found


def mounts(cuda):
    folder = library_folder(cuda)
    paths = [path for name in LIBRARIES for path in sorted(glob.glob(os.path.join(folder, name)))]
    return [{"hostPath": os.path.realpath(path), "containerPath": os.path.join(IN_SANDBOX, os.path.basename(path)),
             "options": ["ro", "nosuid", "nodev", "bind"]} for path in paths]


def write(path, cuda):
    """Writes the file `path`."""
    if shutil.which("nvidia-ctk"):
        subprocess.run(["nvidia-ctk", "cdi", "generate", "--device-name-strategy=uuid", f"--output={path}"], check=True, capture_output=True)
    else:
        common = [{"path": node} for node in ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools") if os.path.exists(node)]
        devices = [{"name": uuid, "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{minor}"}]}} for uuid, minor in minors().items()]
        with open(path, "w", encoding="ascii") as file:
            json.dump({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices,
                       "containerEdits": {"deviceNodes": common, "mounts": mounts(cuda)}}, file)
    os.chmod(path, 0o644)
