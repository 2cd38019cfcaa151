# A process of the forkserver has the program's functions.
import multiprocessing


def hello(queue):
    queue.put(("hello", multiprocessing.current_process().name))


if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    queue = context.Queue()
    process = context.Process(target=hello, args=(queue,), name="server-child")
    process.start()
    print(queue.get())
    process.join()
    print(process.exitcode)
