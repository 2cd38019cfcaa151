"""A tenant of a GPU, through CUDA's driver library alone: leaves a pattern all over its memory, or looks for one there.

    tenant.py leave LIBRARY UUID PATTERN    prints the bytes filled, then holds them until it is killed
    tenant.py scan LIBRARY UUID PATTERN     prints the bytes read and how many patterns were in them

PATTERN is 64 bytes in hex. What is read was allocated and not written."""

import ctypes
import json
import os
import sys
import time

MIB = 1 << 20
BLOCK = 64 * MIB
OUT_OF_MEMORY = 2
NOT_PINNED = range(1, 1000)  # a copy from memory that is not pinned is slower, nothing else


class Device:
    def __init__(self, library, uuid):
        os.environ["CUDA_VISIBLE_DEVICES"] = uuid
        self.cuda = ctypes.CDLL(library)
        self.call("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuCtxCreate_v2", ctypes.byref(self.context), 0, device)

    def call(self, name, *arguments, fine=()):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0 and result not in fine:
            sys.exit(f"{name}: {result}")
        return result

    def free(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def take(self):
        """All that can be allocated, as addresses and sizes."""
        chunks, size = [], self.free() // (2 * MIB) * 2 * MIB
        while size >= MIB:
            at = ctypes.c_uint64()
            if self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size), fine=[OUT_OF_MEMORY]) == 0:
                chunks.append((at.value, size))
            else:
                size = size // 2 // MIB * MIB
        return chunks

    def blocks(self):
        for at, size in self.take():
            for done in range(0, size, BLOCK):
                yield ctypes.c_uint64(at + done), min(BLOCK, size - done)


def main():
    what, library, uuid, pattern = sys.argv[1:]
    pattern = bytes.fromhex(pattern)
    device = Device(library, uuid)
    filled = hits = 0
    buffer = ctypes.create_string_buffer(pattern * (BLOCK // len(pattern)), BLOCK)
    if hasattr(device.cuda, "cuMemHostRegister_v2"):
        device.call("cuMemHostRegister_v2", buffer, ctypes.c_size_t(BLOCK), 0, fine=NOT_PINNED)
    for at, size in device.blocks():
        if what == "leave":
            device.call("cuMemcpyHtoD_v2", at, buffer, ctypes.c_size_t(size))
        else:
            device.call("cuMemcpyDtoH_v2", buffer, at, ctypes.c_size_t(size))
            hits += buffer.raw[:size].count(pattern)
        filled += size
    print(json.dumps({"bytes": filled, "hits": hits}), flush=True)
    while what == "leave":
        time.sleep(60)


main()
