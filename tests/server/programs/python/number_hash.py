# Digests, HMACs, checksums, and the order of sets of numbers.
# Also as a cell of a context.
import hashlib
import hmac
import zlib

for name in ("md5", "sha1", "sha256", "sha3_256", "blake2b"):
    print(name, hashlib.new(name, "é".encode()).hexdigest()[:32])
print(hmac.new(b"key", b"message", "sha256").hexdigest()[:32], hashlib.scrypt(b"p", salt=b"s", n=16, r=1, p=1).hex()[:16])
print(hashlib.pbkdf2_hmac("sha256", b"p", b"s", 1000).hex()[:16], zlib.crc32(b"x"), hash(10**20), hash(0.5), {3, 1, 2}, hash((1, 2)))
