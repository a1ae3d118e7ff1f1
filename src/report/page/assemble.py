#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the page of the report together from its parts: assemble.py OUTPUT D3 PART...

The result has the places @TITLE@, @STATIC@ and @DATA@, which the program fills. Scripts and styles are named by their digests in the
page's Content-Security-Policy, so that nothing else runs in it. D3 is the file d3.min.js; "none": the page has no scripts, and shows
its static part alone. Scripts among the parts follow each other as given: later ones use earlier ones.
"""
import base64
import hashlib
import pathlib
import sys


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def checked(name, text):
    """Text that may stand in an element whose end is marked by a tag."""
    if "</script" in text.lower() or "</style" in text.lower() or "<!--" in text:
        sys.exit(f"assemble.py: {name} must not contain the end of its element")
    return text


def main():
    output, library, *paths = sys.argv[1:]
    parts = {pathlib.Path(path).name: pathlib.Path(path).read_text() for path in paths}
    style = checked("page.css", parts["page.css"])
    scripts = []
    if library != "none":
        scripts.append(f"/*\n{parts['d3-licence.txt']}*/\n{checked(library, pathlib.Path(library).read_text())}")
        own = [f"// ---- {name}\n" + checked(name, text) for name, text in parts.items() if name.endswith(".js")]
        scripts.append('(function () {\n"use strict";\n' + "\n".join(own) + "})();\n")
    page = parts["page.html"].replace("@SCRIPT_HASHES@", " ".join(map(digest, scripts)) or "'none'").replace("@STYLE_HASH@", digest(style))
    page = page.replace("@STYLE@", style).replace("@SCRIPTS@", "\n".join(f"<script>{script}</script>" for script in scripts))
    pathlib.Path(output).write_text(page)


if __name__ == "__main__":
    main()
