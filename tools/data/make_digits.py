#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts the UCI optical-recognition digits, as shipped with scikit-learn, to jobs/digits/digits.h5, or with
--test to jobs/digits-pbt/digits.h5, which keeps a part that no study sees.

Needs python3-sklearn and python3-h5py.   usage: tools/data/make_digits.py [--test] [OUTPUT]
"""

import pathlib
import sys

import numpy as np
from sklearn.datasets import load_digits

import convert


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    test = "--test" in sys.argv
    names = [word for word in sys.argv[1:] if word != "--test"]
    output = names[0] if names else here / ("jobs/digits-pbt/digits.h5" if test else "jobs/digits/digits.h5")
    digits = load_digits()
    x = digits.data.astype(np.uint8)
    assert (x == digits.data).all() and x.shape == (1797, 64)
    convert.write(output, x, digits.target.astype(np.uint8), val_share=0.5 if test else 0.2, seed=1, test_share=test / 3, attributes={
        "title": "Optical Recognition of Handwritten Digits (the test part of the UCI data set)",
        "source": "E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998, doi:10.24432/C50P49; "
                  "as shipped with scikit-learn (sklearn.datasets.load_digits)",
        "licence": "CC BY 4.0",
        "changes": "stored as 8-bit integers; split into train and val" + (" and test" if test else ""),
        "classes": np.int64(10),
        "x": "8 x 8 image, row by row: number of black pixels in each block of 4 x 4 of the 32 x 32 bitmap, 0 to 16",
        "y": "the digit, 0 to 9",
    })


if __name__ == "__main__":
    main()
