#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the page of the report together from its parts: assemble.py OUTPUT FOLDER [D3]

The result has the places @TITLE@, @STATIC@ and @DATA@, which the program fills. Scripts and styles are named by their digests in the
page's Content-Security-Policy, so that nothing else runs in it. Without D3 (the file d3.min.js) the page has no scripts: it shows its
static part alone.
"""
import base64
import hashlib
import pathlib
import sys

# In this order: later ones use earlier ones.
SCRIPTS = ["data", "words", "dom", "store", "chart", "panel", "summary", "curves", "parallel", "importance", "front", "rungs", "lineage", "timeline",
           "table", "about", "steer", "live", "main"]


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def checked(name, text):
    """Text that may stand in an element whose end is marked by a tag."""
    if "</script" in text.lower() or "</style" in text.lower() or "<!--" in text:
        sys.exit(f"assemble.py: {name} must not contain the end of its element")
    return text


def main():
    output, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    style = checked("page.css", (folder / "page.css").read_text())
    scripts = []
    if len(sys.argv) > 3:
        licence = (folder / "d3-licence.txt").read_text()
        library = checked(sys.argv[3], pathlib.Path(sys.argv[3]).read_text())
        scripts.append(f"/*\n{licence}*/\n{library}")
        parts = [f"// ---- {name}.js\n" + checked(name, (folder / f"{name}.js").read_text()) for name in SCRIPTS]
        scripts.append('(function () {\n"use strict";\n' + "\n".join(parts) + "})();\n")
    page = (folder / "page.html").read_text()
    page = page.replace("@SCRIPT_HASHES@", " ".join(map(digest, scripts)) or "'none'").replace("@STYLE_HASH@", digest(style))
    page = page.replace("@STYLE@", style).replace("@SCRIPTS@", "\n".join(f"<script>{script}</script>" for script in scripts))
    pathlib.Path(output).write_text(page)


if __name__ == "__main__":
    main()
