# A read of address 0 ends by SIGSEGV.
import ctypes

print("before", flush=True)
ctypes.string_at(0)
