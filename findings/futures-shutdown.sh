#!/bin/bash
# CPython 3.11: threading._shutdown() in a forked child ends thread pools there for ever, if concurrent.futures.thread was imported
# before the fork: a hook of the module sets a flag that nothing takes back.
# A good guess: without pools the call only waits for threads, and a new pool works; seen:
#   RuntimeError cannot schedule new futures after interpreter shutdown
# A zygote that rehearses an interpreter's end breaks every pool after it; pandas, scikit-learn and asyncio.to_thread import the module.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
cat >child.py <<'PYTHON'
import os, threading
import concurrent.futures.thread
if os.fork() == 0:
    threading._shutdown()
    try:
        print(*concurrent.futures.thread.ThreadPoolExecutor(1).map(abs, [-1]), flush=True)
    except RuntimeError as e:
        print(type(e).__name__, e, flush=True)
    os._exit(0)
os.wait()
PYTHON
expect "RuntimeError cannot schedule new futures after interpreter shutdown" "$(python3 child.py)"
