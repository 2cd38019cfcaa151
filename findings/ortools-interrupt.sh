#!/bin/bash
# ortools 9.15.6755: a solve leaves SIGINT at the system's default, while Python still believes in its handler.
# A good guess: the old handler is back after solve(), or signal.getsignal() tells; seen: "True True OPTIMAL True False".
# An interrupt after a solve ends the process without KeyboardInterrupt, so an interpreter that lives on sets the handler before each cell.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install ortools==9.15.6755
cat >solve.py <<'PYTHON'
import signal
from ortools.sat.python import cp_model
def believed():
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
def caught():
    with open("/proc/self/status", encoding="ascii") as status:
        return any(int(line.split()[1], 16) >> (signal.SIGINT - 1) & 1 for line in status if line.startswith("SigCgt"))
model = cp_model.CpModel()
model.maximize(model.new_int_var(0, 9, "x"))
print(believed(), caught(), end=" ")
solver = cp_model.CpSolver()
print(solver.status_name(solver.solve(model)), believed(), caught())
PYTHON
expect "True True OPTIMAL True False" "$(python3 solve.py)"
