# unittest.main() runs the tests of the program itself and ends with 1 if one fails.
import io
import re
import sys
import unittest


class Sums(unittest.TestCase):
    def test_right(self):
        self.assertEqual(1 + 1, 2)

    def test_wrong(self):
        self.assertEqual([1, 2], [1, 3], "they differ")


if __name__ == "__main__":
    out = io.StringIO()
    try:
        unittest.main(testRunner=unittest.TextTestRunner(out, verbosity=2))
    finally:
        print(re.sub(r"in [\d.]+s", "in N s", out.getvalue()), file=sys.stderr)
