// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
