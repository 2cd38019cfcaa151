class E(Exception):
    def __str__(self):
        raise SystemExit(7)


print("out")
raise E()
