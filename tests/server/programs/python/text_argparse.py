# argparse names the program, prints its help and ends with 2 on an error.
import argparse

parser = argparse.ArgumentParser(description="Adds numbers.", epilog="The end.")
parser.add_argument("numbers", nargs="*", type=int, help="what is added")
parser.add_argument("-v", "--verbose", action="count", default=0)
print(parser.parse_args([]), parser.parse_args(["1", "2", "-vv"]))
parser.print_help()
parser.parse_args(["x"])
