# A worker that dies breaks its pool with an error.
import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool:
        try:
            pool.submit(os._exit, 3).result()
        except BrokenProcessPool as error:
            print(str(error).split(".")[0])
