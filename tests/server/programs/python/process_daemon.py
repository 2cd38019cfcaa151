# A process that is a daemon is ended with its parent; another is waited for.
import multiprocessing
import time


def work(seconds, text):
    time.sleep(seconds)
    print(text, flush=True)


multiprocessing.Process(target=work, args=(30, "never"), daemon=True).start()
multiprocessing.Process(target=work, args=(0.2, "waited for")).start()
print("main has ended", flush=True)
