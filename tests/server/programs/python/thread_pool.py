# A pool of threads maps in order and gives back errors.
# Also as a cell of a context.
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(2) as pool:
    print(list(pool.map(abs, [-3, -2, 1])))
    failed = pool.submit(int, "x")
    print(type(failed.exception()).__name__, pool.submit(sum, [1, 2]).result())
