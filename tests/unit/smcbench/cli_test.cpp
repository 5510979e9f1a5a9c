// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The whole program, from its arguments to its output.
#include "cli.hpp"

#include <fstream>
#include <sstream>

#include <catch2/catch.hpp>

#include "figures.hpp"
#include "scratch_file.hpp"
#include "workload.hpp"

using smc::bench::Json;
using smc::test::ScratchFile;

namespace {

struct Ran {
    int exit = -1;
    std::string out;
    std::string err;
};

Ran run(const std::vector<std::string>& args)
{
    std::ostringstream out;
    std::ostringstream err;
    const int exit = smc::bench::run(args, out, err);
    return {exit, out.str(), err.str()};
}

} // namespace

TEST_CASE("usage errors exit with 2", "[cli]")
{
    const std::vector<std::vector<std::string>> wrong = {
        {},
        {"run"},
        {"bogus"},
        {"run", "/dev/null", "bogus"},
        {"run", "/dev/null", "--reps", "4"},
        {"run", "/dev/null", "--raw", "x", "--figures", "y"},
        {"serve", "--port", "0"},
        {"serve", "--silence", "0"},
        {"run", "/dev/null", "--silence", "3"},
    };
    for (const auto& args : wrong)
        CHECK(run(args).exit == 2);
}

TEST_CASE("nothing is overwritten that was not said to be", "[cli]")
{
    ScratchFile file(std::size_t{16} << 20);
    const Ran refused = run({"run", file.path(), "bulk_4m"});
    CHECK(refused.exit == 2);
    CHECK(refused.err.find("--write") != std::string::npos);
    CHECK(run({"run", file.path()}).exit == 0);
    for (const unsigned char byte : file.bytes(std::size_t{16} << 20)) {
        if (byte != 0)
            FAIL("the file was stored to");
    }
}

TEST_CASE("what cannot be opened is named, exit 1", "[cli]")
{
    const Ran ran = run({"run", "/nowhere/at/all", "seq_read"});
    CHECK(ran.exit == 1);
    CHECK(ran.err.find("/nowhere/at/all") != std::string::npos);
}

TEST_CASE("JSON is one object a line, in the order asked for", "[cli]")
{
    ScratchFile file(std::size_t{16} << 20);
    const Ran ran = run({"-j", "run", "--write", file.path(), "seq_read", "one_store"});
    REQUIRE(ran.exit == 0);
    std::istringstream lines(ran.out);
    std::vector<std::string> names;
    for (std::string line; std::getline(lines, line);)
        names.push_back(Json::parse(line)["workload"]);
    CHECK(names == std::vector<std::string>{"seq_read", "one_store"});
}

TEST_CASE("the list has every workload", "[cli]")
{
    const Ran ran = run({"list"});
    REQUIRE(ran.exit == 0);
    for (const auto& workload : smc::bench::workloads())
        CHECK(ran.out.find(workload.name) != std::string::npos);
}

TEST_CASE("figures are read, and a wrong line is named", "[figures]")
{
    ScratchFile file(0);
    std::ofstream(file.path()) << "write 64 13.5\nread_lat 4096 24000\n";
    auto figures = smc::bench::Figures::load(file.path());
    REQUIRE(figures);
    CHECK(figures->get("write", 64) == 13.5);
    CHECK(figures->get("read_lat", 4096) == 24000);
    CHECK_FALSE(figures->get("write", 4096));
    std::ofstream(file.path()) << "write 64 13.5\nwrite 64\n";
    figures = smc::bench::Figures::load(file.path());
    REQUIRE_FALSE(figures);
    CHECK(figures.error().what.find(":2:") != std::string::npos);
}
