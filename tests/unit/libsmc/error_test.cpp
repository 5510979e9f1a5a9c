// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include <cerrno>
#include <climits>
#include <cstring>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "smc/smc.h"

TEST_CASE("every error that a region gives has a sentence of its own with a remedy", "[error]")
{
    std::set<std::string> sentences;
    const int errors[] = {ENOTCONN,  EHOSTUNREACH, ETIMEDOUT, EBUSY,  EROFS,  ENOSPC, EPERM,
                          EIO,       ESTALE,       ENOENT,    EISDIR, ENODEV, EACCES, ERANGE,
                          EREMOTEIO, ENOBUFS,      EINTR,     EBADF,  EINVAL, E2BIG};
    for (int err : errors) {
        CAPTURE(err);
        std::string text = smc_strerror(-err);
        CHECK(text != strerrordesc_np(err));
        CHECK(text.find(": ") != std::string::npos); // what it means: what to do
        sentences.insert(text);
    }
    CHECK(sentences.size() == std::size(errors));
}

TEST_CASE("the sentences name what the user has to look at", "[error]")
{
    CHECK(std::string(smc_strerror(ENOTCONN)).find("systemctl start smcfsd") != std::string::npos);
    CHECK(std::string(smc_strerror(EBUSY)).find("smcctl sessions") != std::string::npos);
    CHECK(std::string(smc_strerror(EIO)).find("kept") != std::string::npos);
    CHECK(std::string(smc_strerror(ENODEV)).find("mount -t smcfs") != std::string::npos);
}

TEST_CASE("positive and negative errors are the same, and every number has a sentence", "[error]")
{
    for (int err = -5000; err <= 5000; err++) {
        const char* text = smc_strerror(err);
        REQUIRE(text != nullptr);
        REQUIRE(std::strlen(text) > 0);
        REQUIRE(text == smc_strerror(-err));
    }
    CHECK(std::string(smc_strerror(0)) == "success");
    CHECK(std::string(smc_strerror(ELOOP)) == strerrordesc_np(ELOOP));
    CHECK(std::string(smc_strerror(INT_MIN)) == "unknown error");
    CHECK(std::string(smc_strerror(INT_MAX)) == "unknown error");
    CHECK(std::string(smc_strerror(4000)) == "unknown error");
}
