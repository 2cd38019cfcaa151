# Modules beside the program are found after it has changed its directory.
import os
import pathlib

pathlib.Path("helper.py").write_text("print('helper of', __name__)\n")
os.mkdir("elsewhere")
os.chdir("elsewhere")
import helper
