# sys.path, sys.modules and the builtins are a program's own to change.
import builtins
import pathlib
import sys

pathlib.Path("lib").mkdir()
pathlib.Path("lib/extra.py").write_text("value = twice(21)\n")
builtins.twice = lambda x: 2 * x
sys.path.insert(0, "lib")
import extra

print(extra.value, "extra" in sys.modules)
sys.modules["extra"] = None
import extra
