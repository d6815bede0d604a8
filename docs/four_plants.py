"""Four plants out of the one table of AI4I 2020; every fifth row of each is for the test."""

import csv
import sys
from pathlib import Path

with Path(sys.argv[1]).open(encoding="utf-8-sig", newline="") as file:
    written = csv.Sniffer().sniff(file.readline(), delimiters="\t,")
    file.seek(0)
    head, *rows = csv.reader(file, written)
for k, name in enumerate(["north", "east", "south", "west"]):
    own = rows[2500 * k : 2500 * (k + 1)]
    parts = {"test": own[::5], "train": [row for n, row in enumerate(own) if n % 5]}
    for part, chosen in parts.items():
        lines = [head, *chosen]
        if name == "west":  # as another country's spreadsheet writes it
            lines = [[cell.replace(".", ",") for cell in line] for line in lines]
        path = Path(part) / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=";" if name == "west" else ",").writerows(lines)
