"""Runs one file in an interpreter of its own: `python3 run.py FILE`, with the channel at the
descriptor that HEARTH_CHANNEL names, if any. The program sees neither."""

import sys

KNOWN = frozenset(sys.modules)
PLACE = __file__.rpartition("/")[0]
if sys.path[0] != PLACE:  # with PYTHONSAFEPATH
    sys.path.insert(0, PLACE)

import os  # noqa: E402

import hearth_program as program  # noqa: E402

__builtins__ = program.__builtins__


def main(path):
    fd = int(os.environ.pop("HEARTH_CHANNEL", "0"))
    if fd > 0:
        program.channel.open(fd)
    program.set_up()
    with open(path, "rb") as file:
        source = program.Source(os.path.basename(path), file.read(), path)
    module = program.main_module(source)
    program.forget(KNOWN)
    if getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    program.place_itself(path)
    error = program.run(source, module)
    if error is None:
        return
    if not isinstance(error, SystemExit):
        program.tell_uncaught(source, error)
        sys.excepthook = lambda *_: None  # the interpreter then exits as it always does
    raise error


if __name__ == "__main__":
    main(sys.argv[1])
