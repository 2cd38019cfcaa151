"""Runs one file in an interpreter of its own: `python3 run.py FILE`, with the channel at the
descriptor that HEARTH_CHANNEL names, if any. The program sees neither."""

import os
import sys

import hearth_program as program


def main(path):
    fd = int(os.environ.pop("HEARTH_CHANNEL", "0"))
    if fd > 0:
        program.channel.open(fd)
    program.set_up()
    with open(path, "rb") as file:
        source = program.Source(os.path.basename(path), file.read())
    module = program.main_module(source, path)
    sys.argv = [source.name]
    sys.path[0] = ""

    def print_uncaught(kind, error, frames):
        sys.stderr.write(program.describe(source, error.with_traceback(frames)))

    sys.excepthook = print_uncaught  # the interpreter then exits as it always does
    error = program.run(source, module)
    if error is None:
        return
    if not isinstance(error, SystemExit):
        program.report(error, program.describe(source, error))
    raise error


if __name__ == "__main__":
    main(sys.argv[1])
