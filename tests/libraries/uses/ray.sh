# Tasks and an actor in processes of their own.
cat >tasks.py <<'PY'
import logging, ray
ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False, object_store_memory=80 << 20, configure_logging=False)
@ray.remote
def square(i):
    return i * i
@ray.remote
class Counter:
    def __init__(self):
        self.n = 0
    def add(self, n):
        self.n += n
        return self.n
print(ray.get([square.remote(i) for i in range(8)]))
counter = Counter.remote()
print(ray.get([counter.add.remote(2) for _ in range(3)]))
print(len(ray.get(ray.put(b"x" * (1 << 20)))))
ray.shutdown()
PY
python3 -W ignore tasks.py 2>err || { tail -n 5 err >&2; exit 1; }
