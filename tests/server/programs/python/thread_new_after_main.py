# An exit function may not start a pool's work any more.
import atexit
from concurrent.futures import ThreadPoolExecutor


@atexit.register
def late():
    try:
        ThreadPoolExecutor(1).submit(print, "never")
    except RuntimeError as error:
        print(error)


print("body")
