#!/bin/sh
# Runs inside the new root, as root, after python's (see `base`).
set -eu
export LC_ALL=C.UTF-8

libraries=$(echo /usr/local/lib/python3.*/dist-packages)

# NVIDIA's second copy of the compiler, for programs that take another memory allocator, and libraries to link with.
rm -f "$libraries"/nvidia/cuda_nvrtc/lib/libnvrtc*.alt.so.* "$libraries"/nvidia/*/lib/*.a

# The driver's own library belongs to the machine's kernel module: one in the image could not work.
if find / -xdev -name 'libcuda.so*' -o -xdev -name 'libnvidia-ml.so*' | grep .; then exit 1; fi

# Without a GPU: everything can be loaded, and a kernel compiled.
HOME=/tmp CUPY_CACHE_DIR=/tmp/.cupy python3 - <<'PYTHON'
import cupy
from cupy.cuda import nvrtc

source = 'extern "C" __global__ void add(const float* a, const float* b, float* c) { int i = threadIdx.x; c[i] = a[i] + b[i]; }'
program = nvrtc.createProgram(source, "add.cu", (), ())
nvrtc.compileProgram(program, ("-arch=compute_70",))
print("cupy", cupy.__version__, "nvrtc", nvrtc.getVersion())
ptx = nvrtc.getPTX(program)
assert b".entry add" in (ptx if isinstance(ptx, bytes) else ptx.encode()), ptx[:200]
PYTHON
rm -rf /tmp/.cupy /tmp/.nv
chmod -R go+rX "$libraries"
