# A pool of spawned processes imports the program again, as __mp_main__.
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

print("imported as", __name__, flush=True)


def cube(n):
    return n ** 3, __name__


if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        print(list(pool.map(cube, [2, 3])))
