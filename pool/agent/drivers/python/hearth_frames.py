"""Runs code as the lowest frame of its thread, as an interpreter runs its program: no frame of the driver is in a
stack that the program looks at, and none counts in its recursion. greenlet switches stacks in the same way.

Only where the interpreter is known and its memory is found as expected; elsewhere the driver's frames are seen.
"""

import builtins
import sys
from _functools import partial
from _weakref import ref
from itertools import chain, cycle, repeat, starmap
from sys import getprofile, gettrace, setprofile, settrace

try:
    from _operator import call
except ImportError:  # before Python 3.11
    call = None
SET = settrace, setprofile
CLEAR = partial(settrace, None), partial(setprofile, None)
NONE = None, None
NOTHING = (None,)

__builtins__ = dict(vars(builtins))  # of its own: a program may replace any of them

# By version: where a thread state leads to its lowest frame's place (through a pointer, or not), its recursion left and
# its limit; where a frame has its code; how many calls lie below a program that an interpreter runs itself.
LAYOUTS = {
    (3, 11): ((56, 8), 32, 36, 32, -1),
    (3, 12): ((56, 0), 28, 32, 0, 0),
    (3, 13): ((72,), 44, 48, 0, 0),
}


class Stack:
    """The frames of the main thread. Without a layout it leaves them as they are."""

    def __init__(self):
        self.layout = None
        self.traced = []  # the tracer and the profiler that the call before has left on
        layout = LAYOUTS.get(sys.version_info[:2])
        usual = sys.implementation.name == "cpython" and sys.maxsize > 1 << 32 and not getattr(sys, "abiflags", "")
        if layout is None or not usual:
            return
        try:
            import _ctypes
        except ImportError:
            return
        # `ctypes` makes the same, but its import takes longer than the rest of a cold run's start.
        kinds = (type("Memory", (_ctypes._SimpleCData,), {"_type_": letter}) for letter in "iPB")
        self.number, self.pointer, self.flag = kinds
        flags = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_PYTHONAPI
        calls = type("Call", (_ctypes.CFuncPtr,), {"_flags_": flags, "_restype_": self.pointer})
        self.thread = calls(_ctypes.dlsym(_ctypes.dlopen(None, 0), "PyThreadState_Get"))()
        place, left, limit, self.code, self.below = layout
        first = self.pointer.from_address(self.thread + place[0])
        self.holder, self.offset, self.place = (first, place[1], None) if len(place) > 1 else (None, 0, first)
        self.address = None
        self.left = self.number.from_address(self.thread + left)
        self.limit = self.number.from_address(self.thread + limit)
        if self.limit.value == sys.getrecursionlimit() and 0 < self.left.value <= self.limit.value and self.is_found():
            self.layout = layout
            self.prepare()

    def prepare(self):
        """Makes what shows a frame again, from endless iterators: so a call has little to make."""
        self.hidden = []
        put_back = partial(next, starmap(setattr, iter(self.hidden.pop, None)))
        note = map(self.traced.append, zip(map(call, repeat(gettrace)), map(call, repeat(getprofile))))
        # `next` ends at the first that gives a value.
        self.untrace = partial(next, filter(None, map(call, cycle((partial(next, note), *CLEAR, partial(bool, 1))))))
        steps = cycle((put_back, self.untrace))
        # A holder with the frame behind other fields begins with whether there is a tracer.
        self.show = put_back if self.offset else partial(next, filter(None, map(call, steps)))

    def lowest(self):
        """The place with the address of the frame that runs."""
        if self.holder is not None:
            address = self.holder.value + self.offset
            if address != self.address:
                self.address, self.place = address, self.pointer.from_address(address)
                self.traces = self.flag.from_address(address - self.offset)
        return self.place

    def is_found(self):
        """Whether the frame there runs this very function."""
        return self.pointer.from_address(self.lowest().value + self.code).value == id(Stack.is_found.__code__)

    def each(self, steps):
        """Calls each with nothing below and no tracer; none may raise."""
        if self.layout is None:
            for step in steps:
                step()
            return
        traced = [*self.traced]
        self.traced.clear()
        self.call(list, map(call, steps))
        self.traced[:] = traced

    def call(self, function, *arguments):
        """Calls it with nothing below. Tracers and profilers that a program leaves on go on with the next call."""
        if self.layout is None:
            return function(*arguments)
        # All that is done while the frame is away is done in C, which no tracer of the program sees: what `before` has,
        # the call, and, as soon as it has returned or raised and lets go of what was called, what `show` does.
        calls = [partial(function, *arguments)]
        end = ref(calls[0], self.show)
        frame = self.lowest()
        self.hidden.append((frame, "value", frame.value))
        before = map(setattr, (frame,), ("value",), NOTHING)
        traced = self.traced.pop() if self.traced else NONE
        if traced != NONE:
            before = chain(map(call, [*map(partial, SET, traced)]), before)
        before = filter(None, before)
        limit = self.limit.value
        depth = limit - self.left.value
        self.left.value = limit - self.below
        try:
            return calls.pop()(*before)
        finally:
            if self.offset and self.traces.value:
                self.untrace()
            # However low the program has set the limit, what comes after it has room.
            self.left.value = max(self.limit.value, 1000) - depth
            del end
