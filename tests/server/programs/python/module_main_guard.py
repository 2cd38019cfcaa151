# Running a package with -m, and a module as a script.
import os
import pathlib
import subprocess
import sys

pathlib.Path("tool").mkdir()
pathlib.Path("tool/__main__.py").write_text("import sys\nprint(__name__, __package__, sys.argv[1:])\n")
pathlib.Path("script.py").write_text("if __name__ == '__main__':\n    print('as a script')\n")
print(subprocess.run([sys.executable, "-m", "tool", "a", "b"], capture_output=True, text=True).stdout, end="")
print(subprocess.run([sys.executable, "script.py"], capture_output=True, text=True).stdout, end="")
import script
