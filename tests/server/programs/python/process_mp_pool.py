# multiprocessing.Pool: map, starmap, imap and an error with the worker's traceback.
import multiprocessing


def add(a, b=10):
    return a + b


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(pool.map(add, [1, 2, 3]), pool.starmap(add, [(1, 1), (2, 2)]), list(pool.imap(add, [5, 6])))
        try:
            pool.apply(add, ("a",))
        except TypeError as error:
            print(error, "RemoteTraceback" in type(error.__cause__).__name__)
