"""pip unpacks what it downloads in TMPDIR. /tmp is memory, and smaller than many a wheel, so pip gets a folder of the workspace."""

import os
import sys


def is_pip(words):
    """True for `python -m pip …`, and for a program pip, pip3 or pip3.11, also of a virtual environment."""
    for at, word in enumerate(words):
        if word.startswith("-m"):
            return (word[2:] or "".join(words[at + 1 : at + 2])) == "pip"
        if word.startswith("-c"):
            return False
        if not word.startswith("-"):
            return os.path.basename(word).rstrip("0123456789.") == "pip"
    return False


def give_room():
    import atexit

    folder = os.path.join(os.environ.get("HOME", "/workspace"), ".cache", "pip-tmp")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:  # there it would not install anything either
        return
    os.environ["TMPDIR"] = folder
    atexit.register(remove, folder)


def remove(folder):
    try:
        os.rmdir(folder)
    except OSError:  # another pip still works there
        pass


if os.environ.get("TMPDIR") == "/tmp" and is_pip(sys.orig_argv[1:]):
    give_room()
