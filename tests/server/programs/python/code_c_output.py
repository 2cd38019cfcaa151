# Output that C code writes by printf appears at the program's end.
import ctypes

libc = ctypes.CDLL(None)
print("from Python", flush=True)
libc.printf(b"from C %d\n", 5)
