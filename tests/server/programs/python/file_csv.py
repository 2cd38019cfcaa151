# CSV with quotes, new lines inside a field, a dialect and a sniffer.
import csv
import sys

rows = [["name", "note"], ["Ann", 'says "hi", twice'], ["Bob", "two\nlines"], ["é", ""]]
with open("t.csv", "w", newline="") as file:
    csv.writer(file).writerows(rows)
print(open("t.csv", newline="").read() == "".join(open("t.csv", newline="")), list(csv.reader(open("t.csv", newline=""))) == rows)
csv.DictWriter(sys.stdout, ["a", "b"], delimiter=";", quoting=csv.QUOTE_ALL).writerow({"a": 1, "b": None})
print(csv.Sniffer().sniff("a|b|c\n1|2|3\n").delimiter)
