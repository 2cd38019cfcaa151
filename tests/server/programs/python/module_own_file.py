# __file__ exists and holds the program's text.
import runpy
import tokenize

with open(__file__, encoding="utf-8") as file:
    print(file.readline(), len(file.readlines()))
with tokenize.open(__file__) as file:
    print(sum(1 for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.NAME))
if __name__ == "__main__":
    print(sorted(name for name in runpy.run_path(__file__, run_name="other") if not name.startswith("_")))
