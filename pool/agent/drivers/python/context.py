"""One interpreter that stays, where none was forked ahead: `python3 context.py`, its channel the
descriptor 3."""

import sys

KNOWN = frozenset(sys.modules)

import hearth_interpreter as interpreter  # noqa: E402
import hearth_program as program  # noqa: E402

if __name__ == "__main__":
    sys.path[0] = ""
    program.channel.open(3)
    program.set_up()
    program.forget(KNOWN)
    interpreter.last_known_module = list(sys.modules)[-1]
    interpreter.hold_interrupts()
    program.channel.send(b"ready", b"")
    work = interpreter.receive()
    if work is not None:
        interpreter.take_up(work)
