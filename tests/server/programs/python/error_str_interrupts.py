class E(Exception):
    def __str__(self):
        raise KeyboardInterrupt


raise E()
