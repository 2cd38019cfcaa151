# openpyxl: a book with formulas, formats and two sheets.
import openpyxl
from openpyxl.styles import Font

book = openpyxl.Workbook()
sheet = book.active
sheet.append(["item", "price"])
sheet.append(["ink", 2.5])
sheet["B3"] = "=SUM(B2:B2)"
sheet["A1"].font = Font(bold=True)
book.create_sheet("Zwei")["A1"] = "é"
book.save("/tmp/book.xlsx")
again = openpyxl.load_workbook("/tmp/book.xlsx")
print(again.sheetnames, [[cell.value for cell in row] for row in again.active], again.active["A1"].font.bold)
import os

os.unlink("/tmp/book.xlsx")
