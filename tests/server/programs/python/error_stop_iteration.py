numbers = iter([1])
print(next(numbers))
print(next(numbers))
