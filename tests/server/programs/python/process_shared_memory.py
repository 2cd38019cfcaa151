# Two processes share one block of memory.
from multiprocessing import Process, shared_memory


def write(name):
    block = shared_memory.SharedMemory(name)
    block.buf[:5] = b"hello"
    block.close()


if __name__ == "__main__":
    block = shared_memory.SharedMemory(create=True, size=64)
    process = Process(target=write, args=(block.name,))
    process.start()
    process.join()
    print(bytes(block.buf[:5]), block.size >= 64)
    block.close()
    block.unlink()
