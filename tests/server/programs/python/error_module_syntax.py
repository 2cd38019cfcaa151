# A syntax error in an imported module names the module's file and line.
import pathlib

pathlib.Path("broken.py").write_text("def f(:\n    pass\n")
import broken
