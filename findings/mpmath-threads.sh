#!/bin/bash
# mpmath 1.4.1: `with workdps(50)` in one thread changes the precision in all others, and with it their results.
# A good guess: the precision is each thread's own, as that of decimal is; seen: another thread computes with 50 digits meanwhile, and with
# other threads' `with` statements interleaved a result has fewer right digits than it shows.
# Threads give each its own mpmath.MPContext().
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install mpmath==1.4.1
expect "50 15
28" "$(python3 -c '
import decimal, mpmath, threading
def other(read):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(read()))
    thread.start(), thread.join()
    return seen[0]
with mpmath.workdps(50):
    print(other(lambda: mpmath.mp.dps), mpmath.MPContext().dps)
with decimal.localcontext(prec=50):
    print(other(lambda: decimal.getcontext().prec))')"
