# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of this folder with the standard library alone (PEP 517, PEP 427).

So pip needs no network, which compute clusters do not have, and writes nothing beside these files, which may be another
user's.
"""
import base64
import hashlib
import pathlib
import re
import zipfile
from typing import Any, Optional

HERE = pathlib.Path(__file__).resolve().parent


def _project(name: str) -> str:
    found = re.search(rf'^{name} = "([^"]*)"$', (HERE / "pyproject.toml").read_text(encoding="utf-8"), re.M)
    assert found is not None, name
    return found[1]


def build_wheel(wheel_directory: str, config_settings: Optional[Any] = None, metadata_directory: Optional[str] = None) -> str:
    """Writes the wheel into `wheel_directory`; returns its name."""
    name, version = _project("name"), _project("version")
    info = f"{name}-{version}.dist-info"
    files = {name: (HERE / name).read_bytes() for name in ("ranktune.py", "ranktune_data.py", "ranktune_files.py", "ranktune_order.py",
                                                             "ranktune_tasks.py", "ranktune_torch.py")}
    for path in sorted((HERE / "ranktune_studies").glob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            files[f"ranktune_studies/{path.name}"] = path.read_bytes()
    files[f"{info}/METADATA"] = (f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {_project('description')}\n"
                                 f"Requires-Python: {_project('requires-python')}\nLicense: Apache-2.0\n").encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: ranktune\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return wheel
