# An error in a class body names the class as its frame.
# Also as a cell of a context.
class Settings:
    port = 8080
    url = f"http://{host}:{port}"
