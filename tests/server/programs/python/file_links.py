# Symbolic links: relative, dangling, to a folder, in a circle; hard links share one file.
import os
import pathlib

os.mkdir("d")
pathlib.Path("d/f").write_text("x")
for target, name in (("d/f", "link"), ("none", "dangling"), ("d", "folder"), ("circle", "circle")):
    os.symlink(target, name)
os.link("d/f", "hard")
for name in ("link", "dangling", "folder/f", "hard"):
    print(name, os.path.islink(name), os.path.exists(name), os.path.lexists(name))
print(os.stat("hard").st_nlink, os.path.realpath("folder/f") == os.path.abspath("d/f"))
try:
    open("circle")
except OSError as error:
    print(error.strerror)
