# A pool of forked processes runs functions of the program.
from concurrent.futures import ProcessPoolExecutor


def square(n):
    return n * n


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        print(list(pool.map(square, range(5))))
        print(repr(pool.submit(int, "x").exception()))
