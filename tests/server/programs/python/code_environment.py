# User, home, directory and flags of the program.
import getpass
import os
import platform
import sys

print(os.getuid(), os.getgid(), getpass.getuser(), os.path.expanduser("~"), os.getcwd(), sys.flags.interactive, sys.flags.dont_write_bytecode)
print(platform.system(), platform.python_implementation(), os.path.basename(sys.executable), sys.prefix, sys.getswitchinterval(), sys.dont_write_bytecode)
print(sys.stdout.encoding, sys.stdout.errors, sys.stderr.errors, sys.stdin.errors, sys.stdout.name, sys.hash_info.width, sys.float_info.dig)
print(sorted(name for name in os.environ if not name.startswith(("HEARTH", "OMP", "OPENBLAS", "MKL", "NUMEXPR"))))
