# SPDX-License-Identifier: Apache-2.0
"""Installs a file that the build made: install_file.py FILE FOLDER, the folder below the prefix."""
import os
import pathlib
import shutil
import sys

file, folder = sys.argv[1:]
target = pathlib.Path(os.environ["MESON_INSTALL_DESTDIR_PREFIX"]) / folder
target.mkdir(parents=True, exist_ok=True)
shutil.copyfile(file, target / pathlib.Path(file).name)
