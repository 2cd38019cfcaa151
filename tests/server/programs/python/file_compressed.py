# gzip, bz2 and lzma: whole, in pieces, and broken.
# Also as a cell of a context.
import bz2
import gzip
import lzma
import zlib

data = b"the same again and again. " * 1000
for module in (gzip, bz2, lzma):
    packed = module.compress(data)
    print(module.__name__, len(packed) < 300, module.decompress(packed) == data)
    try:
        module.decompress(packed[:-20])
    except (EOFError, lzma.LZMAError, ValueError) as error:
        print(type(error).__name__, error)
print(zlib.crc32(data), zlib.adler32(data))
