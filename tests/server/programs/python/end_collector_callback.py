# A callback of the collector that is left registered hears of no collection after the program's names have gone.
import gc

heard = []


def callback(phase, info):
    heard.append((phase, info["generation"]))


gc.callbacks.append(callback)
gc.collect()
print(heard[-2:])
