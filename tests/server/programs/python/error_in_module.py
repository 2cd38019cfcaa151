# An error inside a module of the workspace shows the lines of that module.
import pathlib

pathlib.Path("shapes.py").write_text("import math\n\n\ndef area(r):\n    return math.pi * r ** 2 / r.count\n")
import shapes

print(shapes.area(2))
