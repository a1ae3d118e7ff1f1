// SPDX-License-Identifier: Apache-2.0
#pragma once
// tanh, the same for cores and GPUs, so that both forms of a network agree to the last bits. For nvcc and for compilers
// of the host.

#ifdef __CUDACC__
#define RANKTUNE_BOTH_SIDES __host__ __device__
#else
#define RANKTUNE_BOTH_SIDES
#endif

namespace ranktune::device {

/// tanh as a rational function of degree 13 over 6 (the coefficients of Eigen's ptanh_float, minimax on [-9, 9]),
/// within 4e-7 of the exact value; never -0. Comparisons are written so that NaN passes through.
RANKTUNE_BOTH_SIDES inline float rational_tanh(float value) {
    const float x = value < -7.9F ? -7.9F : (value > 7.9F ? 7.9F : value);
    const float s = x * x;
    float p = -2.76076847742355e-16F;
    p = p * s + 2.00018790482477e-13F;
    p = p * s - 8.60467152213735e-11F;
    p = p * s + 5.12229709037114e-08F;
    p = p * s + 1.48572235717979e-05F;
    p = p * s + 6.37261928875436e-04F;
    p = p * s + 4.89352455891786e-03F;
    float q = 1.19825839466702e-06F;
    q = q * s + 1.18534705686654e-04F;
    q = q * s + 2.26843463243900e-03F;
    q = q * s + 4.89352518554385e-03F;
    return x * p / q + 0.0F; // -0 + 0 = +0: only dropped units are -0
}

} // namespace ranktune::device

#undef RANKTUNE_BOTH_SIDES
