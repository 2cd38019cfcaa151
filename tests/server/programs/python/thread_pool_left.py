# A pool of threads that nobody shuts down finishes its work at the end.
import time
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(2)
for number in range(3):
    pool.submit(lambda n: (time.sleep(0.05 * (n + 1)), print("task", n)), number)
print("main has ended")
