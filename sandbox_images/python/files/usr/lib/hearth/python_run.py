"""Runs one file as a program, as `python3 FILE` would, with four differences:

- tracebacks show the program's own lines only, under the file's bare name;
- the first entry of sys.path is the working directory, not the file's folder;
- text is UTF-8 whatever the locale says, and output leaves line by line;
- an uncaught exception is also written as JSON to the path in HEARTH_REPORT, which the
  program itself never sees.

Everything that costs time to import is imported only when something has gone wrong.
"""

import os
import sys

REPORT_LIMITS = {"name": 200, "message": 2000, "traceback": 8000}  # as JSON, below 64 KiB


class SourceLoader:
    """Lets tracebacks, which ask a module's loader, find the program's lines."""

    def __init__(self, source):
        self.source = source

    def get_source(self, module_name):
        return self.source.decode("utf-8", "replace")


def clip(text, limit):
    """Head and tail of a text that is too long."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def describe(file_name, source, error):
    """The traceback as text, from the program's first frame on."""
    import linecache
    import traceback

    lines = source.decode("utf-8", "replace").splitlines(keepends=True)
    linecache.cache[file_name] = (len(source), None, lines, file_name)
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def leave_report(path, error, text):
    import json

    try:
        message = str(error)
    except Exception as failure:  # a program's own __str__ may do anything
        message = f"<no message: __str__ raised {type(failure).__name__}>"
    parts = {"name": type(error).__name__, "message": message, "traceback": text}
    parts = {key: clip(value, REPORT_LIMITS[key]) for key, value in parts.items()}
    with open(path, "w", encoding="ascii") as report:
        json.dump(parts, report)


def main(path):
    report_path = os.environ.pop("HEARTH_REPORT", None)
    sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")

    file_name = os.path.basename(path)
    with open(path, "rb") as file:
        source = file.read()

    program = type(sys)("__main__")
    program.__file__ = path
    program.__loader__ = SourceLoader(source)
    program.__builtins__ = __builtins__
    sys.modules["__main__"] = program
    sys.argv = [file_name]
    sys.path[0] = ""

    def print_uncaught(kind, error, frames):
        sys.stderr.write(describe(file_name, source, error.with_traceback(frames)))

    sys.excepthook = print_uncaught  # the interpreter then exits as it always does
    try:
        exec(compile(source, file_name, "exec", dont_inherit=True), program.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        if report_path:
            leave_report(report_path, error, describe(file_name, source, error))
        raise


if __name__ == "__main__":
    main(sys.argv[1])
