#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program that knows nothing of ranktune: arguments in, lines out. Put your own in its place, in any language.
#
# By hand: sh train.sh --lr=0.01
epochs=27 lr=0.01 momentum=0
for word in "$@"; do
  case $word in
    --epochs=*) epochs=${word#*=} ;;
    --lr=*) lr=${word#*=} ;;
    --momentum=*) momentum=${word#*=} ;;
    *) echo "unknown argument $word" >&2; exit 2 ;;
  esac
done

# Gradient descent along a bent valley (Rosenbrock's function). fflush: a line is seen when it leaves the program.
exec awk -v epochs="$epochs" -v lr="$lr" -v momentum="$momentum" 'BEGIN {
  x = -1; y = 1
  for (epoch = 1; epoch <= epochs; epoch++) {
    for (step = 0; step < 20; step++) {
      dx = momentum * dx - lr * (-2 * (1 - x) - 40 * x * (y - x * x))
      dy = momentum * dy - lr * 20 * (y - x * x)
      x += dx; y += dy
    }
    printf "epoch %d: loss %.6g at (%.3g, %.3g)\n", epoch, (1 - x) ^ 2 + 10 * (y - x * x) ^ 2, x, y
    fflush()
  }
}'
