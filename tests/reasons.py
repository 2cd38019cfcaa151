"""The reasons of failed tests, each in one line, for the end of ./test.

Whoever reads a run of CI often sees only the end of its output. So each failure adds a line
"why STAGE NAME: REASON" to the file HEARTH_TEST_RESULTS, and ./test prints these lines with its results.
"""

import os
import re
import traceback

LONGEST = 700
# The lines of a sanitizer's report that say which fault it found and where; the rest is addresses.
FAULT = re.compile(r"(?:ERROR|WARNING): \w+Sanitizer|SUMMARY: |runtime error: |^\s+#\d+ .* /\S*/(?:tests|api|pool|controller|base|metrics)/")
MOST_FAULT_LINES = 8


def of_exception(error):
    """Returns where in the tests the exception came from, and its text."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f"{os.sep}tests{os.sep}" in f.filename]
    where = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno} {f.line}" for f in reversed(frames[-2:]))
    return f"{where}: {type(error).__name__} {error}"


def of_output(text):
    """Returns what matters of a program's output: a sanitizer's fault, or the beginning and the end."""
    fault = [line.strip() for line in text.splitlines() if FAULT.search(line)]
    return " ".join(fault[:MOST_FAULT_LINES]) or text


def tell(stage, name, reason):
    """Writes the line of one failure. The middle of a long reason is left out."""
    reason = " ".join("".join(c if c.isprintable() else " " for c in reason).split())
    if len(reason) > LONGEST:
        reason = reason[:LONGEST // 2] + " [...] " + reason[-LONGEST // 2:]
    if path := os.environ.get("HEARTH_TEST_RESULTS"):
        with open(path, "a", encoding="utf-8", errors="replace") as file:
            file.write(f"why {stage} {name}: {reason}\n")
