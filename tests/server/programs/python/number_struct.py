# Bytes in and out: struct, array, memoryview.
# Also as a cell of a context.
import array
import struct

data = struct.pack("<Hi?d4s", 65535, -2, True, 1.5, b"ab")
print(data, struct.unpack("<Hi?d4s", data), struct.calcsize("@ci"))
numbers = array.array("h", [1, -2, 300])
view = memoryview(numbers).cast("B")
print(view.nbytes, bytes(view[:4]), numbers.tobytes(), view.tolist()[:2])
struct.pack("B", 256)
