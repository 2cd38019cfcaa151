# Processes with a Queue, a Pipe, a Value under its lock, and a Manager.
import multiprocessing as mp


def work(queue, pipe, value, shared):
    with value.get_lock():
        value.value += 5
    shared["child"] = mp.current_process().name
    pipe.send(["by", "pipe"])
    queue.put("by queue")


if __name__ == "__main__":
    with mp.Manager() as manager:
        queue, (here, there), value, shared = mp.Queue(), mp.Pipe(), mp.Value("i", 1), manager.dict()
        process = mp.Process(target=work, args=(queue, there, value, shared), name="worker")
        process.start()
        print(queue.get(), here.recv())
        process.join()
        print(value.value, dict(shared), process.exitcode)
