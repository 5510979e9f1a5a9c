// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "output.hpp"

#include <sstream>

#include <catch2/catch.hpp>

using namespace smc::ctl;

TEST_CASE("a table is aligned: text to the left, numbers to the right", "[output]")
{
    std::ostringstream text;
    Output out(text, false);
    out.table({{{"name", "a"}, {"size", 4096U}}, {{"name", "longer"}, {"size", 1048576U}}},
              {{"name", "NAME"}, {"size", "SIZE", As::size}});
    CHECK(text.str() == "NAME    SIZE\n"
                        "a         4K\n"
                        "longer    1M\n");
}

TEST_CASE("what is absent is a dash, an empty table says so", "[output]")
{
    CHECK(cell({{"a", nullptr}}, {"a", ""}) == "-");
    CHECK(cell({{"a", ""}}, {"a", ""}) == "-");
    CHECK(cell(Json::object(), {"a.b.c", ""}) == "-");
    CHECK(cell({{"a", Json::array()}}, {"a", "", As::list}) == "-");
    std::ostringstream text;
    Output(text, false).table(Json::array(), {{"a", "A"}});
    CHECK(text.str() == "(none)\n");
}

TEST_CASE("cells take their form from the column", "[output]")
{
    Json row = {{"n", 384U}, {"t", 65000U},       {"l", {"x", "y"}},
                {"b", true}, {"o", {{"in", 7U}}}, {"f", 1.25}};
    CHECK(cell(row, {"n", "", As::octal}) == "0600");
    CHECK(cell(row, {"t", "", As::ms}) == "1 min 5 s");
    CHECK(cell(row, {"t", "", As::s}) == "18 h 3 min");
    CHECK(cell(row, {"l", "", As::list}) == "x,y");
    CHECK(cell(row, {"b", ""}) == "yes");
    CHECK(cell(row, {"o.in", ""}) == "7");
    CHECK(cell(row, {"f", ""}) == "1.25");
    CHECK(cell({{"f", 114600.4}}, {"f", ""}) == "114600");
    CHECK(cell({{"f", 0.51077}}, {"f", ""}) == "0.511");
}

TEST_CASE("names from other machines do not command the terminal", "[output]")
{
    CHECK(cell({{"a", "x\x1b[2Jy\n"}}, {"a", ""}) == "x?[2Jy?");
}

TEST_CASE("columns stay aligned under names in UTF-8", "[output]")
{
    std::ostringstream text;
    Output(text, false)
        .table({{{"a", "\u00fc"}, {"b", "1"}}, {{"a", "xx"}, {"b", "2"}}},
               {{"a", "A"}, {"b", "B"}});
    CHECK(text.str() == "A   B\n\u00fc   1\nxx  2\n");
}

TEST_CASE("a record leaves out what is absent", "[output]")
{
    std::ostringstream text;
    Output(text, false).record({{"a", 1U}}, {{"a", "Alpha"}, {"b", "B"}});
    CHECK(text.str() == "Alpha:  1\n");
}

TEST_CASE("JSON is the model and nothing else, whatever bytes are in it", "[output]")
{
    std::ostringstream text;
    Output out(text, true);
    out.line("not this");
    out.table(Json::array({1}), {{"a", "A"}});
    out.record({{"a", 1}}, {{"a", "A"}});
    out.model({{"size", 1073741824U}, {"bytes", "\xff"}});
    Json back = Json::parse(text.str());
    CHECK(back["size"] == 1073741824U);
    CHECK(back.size() == 2);
}
