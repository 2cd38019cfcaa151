# A module that is written anew is read anew by reload.
import importlib.util
import os
import pathlib

path = pathlib.Path("settings.py")
path.write_text("level = 1\n")
import settings

print(settings.level)
path.write_text("level = 22\n")
importlib.reload(settings)
print(settings.level)
spec = importlib.util.spec_from_file_location("other", path)
other = importlib.util.module_from_spec(spec)
spec.loader.exec_module(other)
print(other.level, other is settings, os.path.basename(other.__file__))
