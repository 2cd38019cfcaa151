# logging with stack_info prints the stack down to the call.
# Also as a cell of a context.
import logging
import sys

logging.basicConfig(format="%(levelname)s %(funcName)s:%(lineno)d %(message)s", stream=sys.stdout, force=True)


def step():
    logging.warning("here", stack_info=True)


step()
