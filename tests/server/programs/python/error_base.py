# A BaseException of one's own is printed as any other.
# Also as a cell of a context.
class Stop(BaseException):
    pass


try:
    try:
        raise Stop("no Exception")
    except Exception:
        print("never")
finally:
    print("finally")
