# A temporary directory that is not closed is removed at the end, with a warning.
import atexit
import os
import tempfile
import warnings

warnings.simplefilter("ignore", ResourceWarning)
folder = tempfile.TemporaryDirectory(dir=".")
open(os.path.join(folder.name, "x"), "w").close()
print(len(os.listdir(folder.name)), os.path.isdir(folder.name))
