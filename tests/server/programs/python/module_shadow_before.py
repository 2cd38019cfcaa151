# Files named json.py, traceback.py and linecache.py are there before the program begins: it alone imports them.
import json

print(hasattr(json, "dumps"))
import traceback

raise ValueError("and this has its traceback")
