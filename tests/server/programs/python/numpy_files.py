# NumPy's files: npy, npz, text and a memory map.
import numpy as np

a = np.arange(6, dtype="<i4").reshape(2, 3)
np.save("a.npy", a)
np.savetxt("a.txt", a, fmt="%d", header="x y z")
m = np.memmap("m.bin", dtype="uint8", mode="w+", shape=(4,))
m[:] = [1, 2, 3, 255]
m.flush()
print(np.load("a.npy", mmap_mode="r")[1], np.loadtxt("a.txt"), np.fromfile("m.bin", "uint8"))
print(np.genfromtxt(["1,2", "3,"], delimiter=","), np.frombuffer(b"\1\0\2\0", "<u2"))
