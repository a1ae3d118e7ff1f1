#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts the diabetes data of Efron et al., as shipped with scikit-learn, to jobs/diabetes/diabetes.h5.

Needs python3-sklearn and python3-h5py.   usage: tools/data/make_diabetes.py [OUTPUT]
"""

import pathlib
import sys

import numpy as np
from sklearn.datasets import load_diabetes

import convert


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    output = sys.argv[1] if len(sys.argv) > 1 else here / "jobs/diabetes/diabetes.h5"
    diabetes = load_diabetes(scaled=False)
    x = diabetes.data.astype(np.float32)
    assert x.shape == (442, 10)
    convert.write(output, x, diabetes.target.astype(np.float32), val_share=0.25, seed=1, attributes={
        "title": "Diabetes progression one year after baseline",
        "source": "B. Efron, T. Hastie, I. Johnstone, R. Tibshirani, Least Angle Regression, Annals of Statistics 32 "
                  "(2004), 407-499; as shipped with scikit-learn (sklearn.datasets.load_diabetes, scaled=False)",
        "licence": "published with the paper by its authors without a stated licence; distributed with scikit-learn "
                   "(BSD-3-Clause)",
        "changes": "stored as 32-bit floating point; split into train and val",
        "x": "age, sex (1, 2), body mass index, mean blood pressure, and six blood serum measurements (tc, ldl, hdl, "
             "tch, ltg, glu)",
        "y": "measure of disease progression, 25 to 346",
    })


if __name__ == "__main__":
    main()
