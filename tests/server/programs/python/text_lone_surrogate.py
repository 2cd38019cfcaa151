# A lone surrogate cannot be written to standard output as UTF-8.
print("before")
print("\ud83d")
