# sys.settrace and sys.setprofile see the program's lines and calls, and nothing before.
# Also as a cell of a context.
import sys


def work(n):
    for i in range(n):
        n += i
    return n


events = []


def tracer(frame, event, arg):
    events.append((frame.f_code.co_name, event, frame.f_lineno))
    return tracer


print(sys.gettrace(), sys.getprofile())
sys.settrace(tracer)
work(2)
sys.settrace(None)
print(events)
