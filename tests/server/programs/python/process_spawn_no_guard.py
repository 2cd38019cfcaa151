# Without the guard of __main__, spawn explains itself in the child, and the parent sees its status.
import multiprocessing

context = multiprocessing.get_context("spawn")
process = context.Process(target=print, args=("never",))
process.start()
process.join()
print(process.exitcode)
