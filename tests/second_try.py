"""Tests that fail once and pass when they are run again.

Hundreds of tests start real sandboxes on a machine that others may use, so in some runs a test meets
conditions that it does not expect. If HEARTH_SECOND_TRY is set, as in CI, such a test runs again at once,
alone. If it passes then, it counts as passed, and is reported as "unsteady STAGE NAME" at the end of
./test: somebody should find out why. More than MOST of them in one run are failures. So is every failure
under a sanitizer, whose findings come and go by nature.
"""

import os

MOST = 3


def allowed(stage):
    return bool(os.environ.get("HEARTH_SECOND_TRY")) and not stage.endswith(("-asan", "-tsan")) and len(unsteady()) < MOST


def report(stage, name):
    if path := os.environ.get("HEARTH_TEST_RESULTS"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"unsteady {stage} {name}\n")


def unsteady():
    try:
        with open(os.environ.get("HEARTH_TEST_RESULTS", ""), encoding="utf-8") as file:
            return [line for line in file if line.startswith("unsteady ")]
    except OSError:
        return []
