# traceback.print_exc, print_stack and format_list, with the program's frames alone.
# Also as a cell of a context.
import sys
import traceback


def inner():
    traceback.print_stack(file=sys.stdout)
    raise ValueError("shown by hand")


try:
    inner()
except ValueError:
    traceback.print_exc(file=sys.stdout)
    print([frame.name for frame in traceback.extract_tb(sys.exc_info()[2])])
