"""Gives matplotlib its font list before it asks for it.

Matplotlib keeps the list under MPLCONFIGDIR, which is empty in a new sandbox, and would read every
font to make it again. hearth_fontcache.pth runs this at the start of each interpreter; it costs one
system call where there is nothing to do.
"""

import os

SEED = "/usr/share/hearth/matplotlib"


def place(folder):
    try:
        os.mkdir(folder, 0o700)
    except OSError:  # it is there already, or cannot be made: matplotlib copes with both
        return
    for name in os.listdir(SEED):
        try:
            with open(f"{SEED}/{name}", "rb") as source, open(f"{folder}/{name}", "wb") as target:
                target.write(source.read())
        except OSError:  # /tmp is full: half a list would be worse than none
            if os.path.exists(f"{folder}/{name}"):
                os.unlink(f"{folder}/{name}")


if "MPLCONFIGDIR" in os.environ and os.path.isdir(SEED):
    place(os.environ["MPLCONFIGDIR"])
