# Lazy imports in functions, and a module that is missing until it is written.
import importlib.util
import pathlib

print(importlib.util.find_spec("later"), importlib.util.find_spec("json").name)
pathlib.Path("later.py").write_text("ready = True\n")
importlib.invalidate_caches()
import later

print(later.ready, importlib.util.find_spec("os.path").name, "later" in dir())
