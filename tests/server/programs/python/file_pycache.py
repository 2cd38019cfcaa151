# A module of the workspace leaves what an interpreter leaves of it.
import importlib
import os
import pathlib

pathlib.Path("pack/sub").mkdir(parents=True)
pathlib.Path("pack/__init__.py").write_text("from .sub import deep\n")
pathlib.Path("pack/sub/deep.py").write_text("value = 7\nwhere = __file__\n")
pathlib.Path("single.py").write_text("import pack\nvalue = pack.deep.value\n")
import single

print(single.value, os.path.relpath(single.pack.deep.where), single.__name__, importlib.reload(single) is single)
