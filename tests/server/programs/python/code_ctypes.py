# ctypes calls the C library, with a callback and errno.
# Also as a cell of a context.
import ctypes
import ctypes.util
import os

libc = ctypes.CDLL(None, use_errno=True)
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
numbers = (ctypes.c_int * 4)(3, 1, 4, 1)
libc.qsort(numbers, 4, ctypes.sizeof(ctypes.c_int), compare)
print(list(numbers), libc.strlen(b"four"), libc.close(-1), os.strerror(ctypes.get_errno()))
