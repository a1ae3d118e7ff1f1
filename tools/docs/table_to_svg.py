#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the text of a terminal as an SVG picture: table_to_svg.py [--title TITLE] < text > picture.svg

For example, the live table of a running study:

    tmux new-session -d -s picture -x 80 -y 24 'ranktune run digits.toml --local 4'
    sleep 5; tmux capture-pane -p -e -t picture | table_to_svg.py --title 'ranktune run digits.toml' > table.svg

Green and red (SGR 32 and 31) are drawn; other escape sequences are left out. Needs nothing but Python.
"""
import argparse
import html
import re
import sys
import unicodedata

WIDTH, HEIGHT = 8.4, 18.0  # of a character cell, in pixels
MARGIN, BAR = 16.0, 32.0
COLOURS = {"32": "#7ee787", "31": "#ff7b72"}


def columns(text):
    """Width of the text in terminal columns."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def spans(lines):
    """(row, column, text, colour) of every stretch of one colour without long gaps. Each is placed separately, because
    viewers differ in the width of their monospace font. A colour applies until it is reset."""
    colour = None
    for row, line in enumerate(lines):
        column = 0
        for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z])", line):
            if part.startswith("\x1b"):
                if part.endswith("m"):
                    codes = re.findall(r"\d+", part) or ["0"]
                    colour = next((COLOURS[c] for c in codes if c in COLOURS), None)
                continue
            for word in re.finditer(r"\S+", part):
                yield row, column + columns(part[: word.start()]), word.group(), colour
            column += columns(part)


def picture(text, title):
    lines = text.rstrip("\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    plain = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in lines]
    top = BAR + 10 if title else MARGIN
    width = 2 * MARGIN + WIDTH * max([80, *map(columns, map(str.rstrip, plain))])
    height = top + HEIGHT * len(lines) + MARGIN
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
           f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">')
    yield f"<title>{html.escape(title or 'terminal')}</title>"
    yield f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>'
    yield ('<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13.95" fill="#e6edf3" '
           'xml:space="preserve">')
    if title:
        yield f'<text x="{MARGIN}" y="{BAR - 11:.1f}" fill="#8b949e">$ {html.escape(title)}</text>'
    for row, column, word, colour in spans(lines):
        fill = f' fill="{colour}"' if colour else ""
        length = WIDTH * columns(word)
        yield (f'<text x="{MARGIN + WIDTH * column:.1f}" y="{top + HEIGHT * row + 13:.1f}" textLength="{length:.1f}" '
               f'lengthAdjust="spacingAndGlyphs"{fill}>{html.escape(word)}</text>')
    yield "</g>\n</svg>"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--title", default="", help="the command, shown above the text")
    arguments = parser.parse_args()
    sys.stdin.reconfigure(encoding="utf-8")
    sys.stdout.reconfigure(encoding="utf-8")
    print("\n".join(picture(sys.stdin.read(), arguments.title)))
