# A file named json.py shadows the standard module for the program.
import pathlib

pathlib.Path("json.py").write_text("def dumps(value):\n    return 'my json'\n")
import json

print(json.dumps({}))
raise ValueError("and the traceback is whole")
