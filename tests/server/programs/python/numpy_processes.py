# NumPy in a pool of processes and in threads.
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np


def norm(seed):
    return float(np.linalg.norm(np.random.default_rng(seed).normal(size=(50, 50)) @ np.eye(50)))


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as processes, ThreadPoolExecutor(2) as threads:
        a, b = list(processes.map(norm, range(4))), list(threads.map(norm, range(4)))
    print(np.allclose(a, b), np.round(a, 6))
