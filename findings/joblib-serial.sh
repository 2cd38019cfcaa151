#!/bin/bash
# joblib 1.6.0: where /dev/shm cannot be written, it decides at import, for the process's life, to run n_jobs=2 one after the other.
# A good guess: an error, or processes all the same, as they need no semaphores in /dev/shm; seen: one worker, and only a warning:
#   UserWarning: [Errno 30] Read-only file system.  joblib will operate in serial mode
# Needs root, for a mount namespace of its own.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install joblib==1.6.0
cat >jobs.py <<'PYTHON'
import os, warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import joblib
print(*(each.message for each in seen))
workers = set(joblib.Parallel(n_jobs=2)(joblib.delayed(os.getpid)() for _ in range(4)))
print(workers == {os.getpid()})
PYTHON
expect "[Errno 30] Read-only file system.  joblib will operate in serial mode
True" "$(unshare --mount sh -c 'mount -t tmpfs -o ro none /dev/shm && python3 jobs.py')"
