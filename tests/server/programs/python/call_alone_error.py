print(len("ab"), int("x"))
