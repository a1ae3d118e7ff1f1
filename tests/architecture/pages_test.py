#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documentation: index, links, job scripts, and pages named in the sources.

usage: pages_test.py SOURCE_ROOT [TEST...]
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
# Where a page of the documentation may be named: what users read, and what developers read in the sources.
NAMING = ("src", "include", "slurm", "jobs", "tools", "tests")


def pages():
    """Every Markdown file of the project."""
    return [ROOT / "README.md", ROOT / "README.zh.md", ROOT / "CONTRIBUTING.md", *sorted(path for room in ("docs", "jobs", "slurm") for path in (ROOT / room).rglob("*.md"))]


def prose(text):
    """The text without code blocks, which contain no links or headings."""
    return FENCE.sub("", text)


def anchors(text):
    """The anchors of a page's headings: lower case, no punctuation, dashes for blanks."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", prose(text), re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        found.add(re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-"))
    return found


def links(text):
    """[(target, anchor)] of the links to files and headings."""
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(text)))
    return [(link.partition("#")[0], link.partition("#")[2]) for link in found if "://" not in link]


# The reference that is made from tables in the sources.
GENERATED = "docs/reference/generated"


def words(text):
    """What stands between blanks in prose and tables, without blocks of code and the bars of tables."""
    return prose(text).replace("|", " ").split()


class Pages(unittest.TestCase):
    def test_the_documents_are_short(self):
        """README, CONTRIBUTING and docs: 32,000 words in all, 2,500 on a page, 150 lines of README, 25 words in a cell."""
        count = 0
        for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            if str(page.relative_to(ROOT)).startswith(GENERATED):
                continue
            text = page.read_text()
            count += len(words(text))
            with self.subTest(page=page.name):
                self.assertLessEqual(len(text.split()), 2500)
                for line in prose(text).splitlines():
                    for cell in line.strip("|").split(" | ") if line.startswith("|") else []:
                        self.assertLessEqual(len(words(cell)), 25, cell)
        self.assertLessEqual(count, 32000)
        self.assertLessEqual(len((ROOT / "README.md").read_text().splitlines()), 150)

    def test_the_readme_has_an_index_of_every_page(self):
        readme = (ROOT / "README.md").read_text()
        index = readme.split("\n## Documentation\n", 1)[1]
        named = {target for target, _ in links(index)}
        for page in sorted((ROOT / "docs").rglob("*.md")):
            with self.subTest(page=page.name):
                self.assertIn(str(page.relative_to(ROOT)), named)

    def test_the_chinese_readme_has_the_code_of_the_english_one(self):
        def code(name):
            text = (ROOT / name).read_text()
            return [re.sub(r" *#.*", "", line) for _, _, block in FENCE.findall(text) for line in block.splitlines()]

        self.assertEqual(code("README.zh.md"), code("README.md"))

    def test_every_link_leads_to_a_file_and_a_heading(self):
        for page in pages():
            text = page.read_text()
            for target, anchor in links(text):
                with self.subTest(page=str(page.relative_to(ROOT)), link=f"{target}#{anchor}"):
                    aim = (page.parent / target).resolve() if target else page
                    self.assertTrue(aim.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(aim.read_text()))

    def test_every_page_that_is_named_in_the_sources_exists(self):
        found = 0
        for room in NAMING:
            for path in (ROOT / room).rglob("*"):
                if not path.is_file() or path.suffix in (".h5", ".pyc", ".safetensors") or "golden" in path.parts:
                    continue
                for name in re.findall(r"\bdocs/[\w./-]+\.md\b", path.read_text(errors="replace")):
                    found += 1
                    with self.subTest(file=str(path.relative_to(ROOT)), page=name):
                        self.assertTrue((ROOT / name).exists())
        self.assertGreater(found, 20)

    def test_messages_name_pages_where_they_are_installed(self):
        """By documentation_page(), which finds them, or with the installed path beside the path in the clone."""
        found = 0
        for path in (ROOT / "src").rglob("*.cpp"):
            code = re.sub(r"^ *//.*$", "", path.read_text(), flags=re.M)
            for page in re.findall(r'documentation_page\("([^"]+)"\)', code):
                found += 1
                with self.subTest(file=str(path.relative_to(ROOT)), page=page):
                    self.assertTrue((ROOT / "docs" / page).is_file())
            for line in code.splitlines():
                if re.search(r"\bdocs/[\w/-]+\.md", line):
                    found += 1
                    with self.subTest(file=str(path.relative_to(ROOT)), line=line):
                        self.assertIn("share/doc/ranktune/docs/", line)
        self.assertGreaterEqual(found, 2)

    def test_the_study_of_the_readme_is_the_one_that_init_writes(self):
        study = re.sub(r"\A(#.*\n)+\n", "", (ROOT / "jobs/digits/digits.toml").read_text())
        shown = [code for _, kind, code in FENCE.findall((ROOT / "README.md").read_text()) if kind == "toml"]
        self.assertEqual([code for code in shown if code.startswith("[study]")], [study])

    def test_the_examples_of_the_page_about_groups_are_compiled(self):
        compiled = (ROOT / "docs/examples/group.cpp").read_text()
        compiled = compiled.partition("// ---- examples ----\n")[2].partition("// ---- end of the examples ----")[0]
        shown = [code for _, kind, code in FENCE.findall((ROOT / "docs/reference/group.md").read_text()) if kind == "cpp"]
        self.assertEqual("\n".join(shown).strip(), compiled.strip())

    def test_job_scripts_are_those_of_the_templates(self):
        """A page names a template, or quotes its text, but has no job script of its own."""
        templates = {path.name: path.read_text() for path in (ROOT / "slurm").glob("*.sbatch")}
        used = set()
        for page in pages():
            for _, _, code in FENCE.findall(page.read_text()):
                with self.subTest(page=str(page.relative_to(ROOT)), code=code):
                    if re.search(r"^#SBATCH ", code, re.M):
                        self.assertTrue(any(code in text for text in templates.values()))
                    for line in re.findall(r"^(?:\w+=\S+ )*sbatch .*$", code, re.M):
                        (name,) = re.findall(r"(\w+\.sbatch)\b", line.partition("#")[0])
                        self.assertIn(name, templates)
                        used.add((page.name, name))
        self.assertLessEqual({("pytorch.md", "cpu.sbatch"), ("README.md", "gpu.sbatch"), ("slurm.md", "cpu.sbatch")}, used)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
