# A library keeps the class, and with it the program's names: the file is closed all the same.
import csv
import dataclasses
import typing


@dataclasses.dataclass
class Row:
    name: str
    value: int

    def cells(self):
        return [self.name, self.value]


def total(rows: typing.List[Row]) -> typing.Optional[int]:
    return sum(row.value for row in rows)


rows = [Row("a", 1), Row("b", 2)]
out = open("rows.csv", "w")
writer = csv.writer(out)
for row in rows:
    writer.writerow(row.cells())
print("done", total(rows))
