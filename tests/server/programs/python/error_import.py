# Modules and names that do not exist; the message of a circular import.
import pathlib

pathlib.Path("first.py").write_text("import second\nvalue = 1\n")
pathlib.Path("second.py").write_text("from first import value\n")
for line in ("import no_such_module", "from math import no_such_name", "import first", "import json.nothing"):
    try:
        exec(line)
    except ImportError as error:
        print(type(error).__name__, error.name, str(error).split(" (/")[0])
from os import missing_name
