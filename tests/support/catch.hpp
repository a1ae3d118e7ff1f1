// SPDX-License-Identifier: Apache-2.0
#pragma once
// Catch2, version 2 (Debian 12) or 3: tests include this header and nothing of Catch2 itself.

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
