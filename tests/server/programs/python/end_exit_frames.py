import atexit
import logging
import sys
import traceback


class Ends:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print(self.name, sys._getframe().f_back)
        traceback.print_stack()


atexit.register(traceback.print_stack)
atexit.register(logging.warning, "over", stack_info=True)
kept = Ends("kept")
cycle = Ends("cycle")
cycle.itself = cycle
garbage = Ends("garbage")
garbage.itself = garbage
del garbage
