# An allocation beyond all memory is a MemoryError at once.
# Also as a cell of a context.
try:
    bytearray(1 << 60)
except MemoryError as error:
    print("caught", type(error).__name__)
" " * (1 << 62)
