import sys

sys.stderr = None
sys.exit("goes to the descriptor")
