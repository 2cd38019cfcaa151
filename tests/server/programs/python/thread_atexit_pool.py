# threading's own exit functions run before those of atexit; the last registered first.
import atexit
import threading

atexit.register(print, "atexit 1")
atexit.register(print, "atexit 2")
threading._register_atexit(print, "threading 1")
threading._register_atexit(print, "threading 2")
print("body")
