__import__("traceback").print_stack()
