# shelve keeps objects in a file of dbm.
import shelve

with shelve.open("store") as store:
    store["list"] = [1, 2]
    store["list"].append(3)
    store["nested"] = {"é": (1, None)}
with shelve.open("store", writeback=True) as store:
    store["list"].append(3)
with shelve.open("store") as store:
    print(sorted(store), store["list"], store["nested"])
import os

for name in os.listdir("."):
    if name.startswith("store"):
        os.unlink(name)
