#!/usr/bin/env python3
# suite: seconds=60 sanitizers=no
"""Programs that come in packages do in a sandbox what tests/libraries/programs.json says that they do: six quick ones in ./test, all by
tests/libraries/programs."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "libraries")]
import program_rows  # noqa: E402
from harness import Shared, main, record  # noqa: E402

QUICK = ["ffmpeg", "java", "postgresql", "redis", "shellcheck", "supervisor"]


def as_before(name):
    row = program_rows.read()[name]

    def test():
        stored = row["measured"]["default"]
        assert stored == "yes", f"the table has another answer for the pool of ./run, so this row is no test: {stored}"
        with shared as s:
            here = program_rows.Row(s, name, row, "default")
            assert here.install() is None
            here.put_use()
            done = here.execute("bash use.sh")
            assert program_rows.shown(done, row["prints"]) == "yes", done
    test.__name__ = name
    test.__doc__ = f"{name}, {row['what']}, does in the pool of ./run what it did when it was measured"
    return test


def ends():
    """the server of these programs leaves nothing behind"""
    shared.end()


if __name__ == "__main__":
    tests = [*(as_before(name) for name in QUICK), ends]
    for each in tests:
        each.only = "oci"  # it tests programs, not runtimes
    try:
        mirrors = program_rows.mirrors()
    except OSError as e:
        mirrors = ()
        for each in tests[:-1]:
            record("skip", "server", f"{each.__doc__} (the index cannot be reached: {e})")
        tests = tests[-1:]
    shared = Shared(pools=program_rows.pools(), args=mirrors)
    try:
        main("server", tests)
    finally:
        shared.clean_up()
