import signal


def late(*_):
    raise TimeoutError("late")


signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    while True:
        pass
except TimeoutError as error:
    print(error)
signal.setitimer(signal.ITIMER_REAL, 5)
