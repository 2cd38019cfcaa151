# Descriptor 0 can be opened as a file, as contests do.
values = list(map(int, open(0).read().split()))
print(max(values), min(values), sum(values))
