# A file that nobody closes has its content at the end.
out = open("notes.txt", "w")
out.write("not flushed by hand")
binary = open("data.bin", "wb", buffering=1 << 16)
binary.write(bytes(range(10)))
print("body")
