# Producer and consumer over a Condition, a Barrier and an Event.
# Also as a cell of a context.
import threading

items, ready, barrier, closed = [], threading.Condition(), threading.Barrier(3), threading.Event()
taken = []


def consume():
    barrier.wait()
    with ready:
        ready.wait_for(lambda: len(items) >= 3)
        taken.append(sum(items))
    closed.set()


threads = [threading.Thread(target=consume) for _ in range(2)]
for thread in threads:
    thread.start()
barrier.wait()
for n in (1, 2, 3):
    with ready:
        items.append(n)
        ready.notify_all()
for thread in threads:
    thread.join()
print(taken, closed.is_set(), barrier.n_waiting)
