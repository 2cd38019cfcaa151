"""Adds two vectors on the GPU, through CUDA's driver library alone, and says how long each step took in milliseconds.

    vector_add.py LIBRARY [LOOP]    with LOOP: again each LOOP seconds, a line each time, until it is ended"""

import array
import ctypes
import json
import sys
import time

COUNT = 1 << 20
BLOCK = 256
PTX = b"""
.version 6.4
.target sm_70
.address_size 64
.visible .entry add(.param .u64 first, .param .u64 second, .param .u64 sum, .param .u32 count)
{
    .reg .pred %stop;
    .reg .b32 %index, %limit, %group, %size;
    .reg .b64 %a, %b, %c, %offset;
    .reg .f32 %x, %y;
    mov.u32 %group, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %index, %tid.x;
    mad.lo.s32 %index, %group, %size, %index;
    ld.param.u32 %limit, [count];
    setp.ge.u32 %stop, %index, %limit;
    @%stop ret;
    ld.param.u64 %a, [first];
    ld.param.u64 %b, [second];
    ld.param.u64 %c, [sum];
    cvta.to.global.u64 %a, %a;
    cvta.to.global.u64 %b, %b;
    cvta.to.global.u64 %c, %c;
    mul.wide.u32 %offset, %index, 4;
    add.s64 %a, %a, %offset;
    add.s64 %b, %b, %offset;
    add.s64 %c, %c, %offset;
    ld.global.f32 %x, [%a];
    ld.global.f32 %y, [%b];
    add.f32 %x, %x, %y;
    st.global.f32 [%c], %x;
    ret;
}
"""


class Steps:
    def __init__(self):
        self.at, self.ms = time.monotonic(), {}

    def done(self, name):
        now = time.monotonic()
        self.ms[name], self.at = round((now - self.at) * 1000, 2), now


def call(cuda, name, *arguments):
    result = getattr(cuda, name)(*arguments)
    if result != 0:
        sys.exit(f"{name}: {result}")


def add(cuda, function, first, second):
    size, places = ctypes.c_size_t(4 * COUNT), [ctypes.c_uint64() for _ in range(3)]
    for place in places:
        call(cuda, "cuMemAlloc_v2", ctypes.byref(place), size)
    for place, vector in zip(places, (first, second)):
        call(cuda, "cuMemcpyHtoD_v2", place, (ctypes.c_float * COUNT).from_buffer(vector), size)
    call(cuda, "cuMemsetD32_v2", places[2], ctypes.c_uint(0x7FC00000), ctypes.c_size_t(COUNT))  # no number: an old sum is no new one
    count = ctypes.c_uint32(COUNT)
    arguments = (ctypes.c_void_p * 4)(*(ctypes.addressof(each) for each in (*places, count)))
    call(cuda, "cuLaunchKernel", function, COUNT // BLOCK, 1, 1, BLOCK, 1, 1, 0, None, arguments, None)
    total = array.array("f", bytes(4 * COUNT))
    call(cuda, "cuMemcpyDtoH_v2", (ctypes.c_float * COUNT).from_buffer(total), places[2], size)
    for place in places:
        call(cuda, "cuMemFree_v2", place)
    return total


def main():
    steps = Steps()
    cuda = ctypes.CDLL(sys.argv[1])
    call(cuda, "cuInit", 0)
    steps.done("init")
    device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call(cuda, "cuDeviceGet", ctypes.byref(device), 0)
    call(cuda, "cuCtxCreate_v2", ctypes.byref(context), 0, device)
    steps.done("context")
    call(cuda, "cuModuleLoadData", ctypes.byref(module), PTX)
    call(cuda, "cuModuleGetFunction", ctypes.byref(function), module, b"add")
    steps.done("compile")
    first, second = array.array("f", range(COUNT)), array.array("f", range(COUNT, 0, -1))
    steps.done("vectors")
    while True:
        total = add(cuda, function, first, second)
        steps.done("kernel")
        print(json.dumps({"right": total.count(float(COUNT)) == COUNT, "ms": steps.ms}), flush=True)
        if len(sys.argv) < 3:
            return
        time.sleep(float(sys.argv[2]))
        steps.done("pause")


main()
