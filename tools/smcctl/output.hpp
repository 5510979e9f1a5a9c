// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: how a command's result is written. A command builds one JSON model; -j prints it, text is made
// of the same model, so that the two cannot disagree.
#pragma once

#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace smc::ctl {

using Json = nlohmann::json;

enum class As {
    text,  // strings as they are, numbers in decimal, true as "yes"
    size,  // bytes: 64M
    ms,    // milliseconds: 2 min 5 s
    s,     // seconds: 2 min 5 s
    ns,    // nanoseconds: 840ns, 1.2ms
    octal, // 0640
    list,  // array: its members joined by ','
};

struct Column {
    std::string key; // of the row; a.b is a member of a member
    std::string title;
    As as = As::text;
};

using Columns = std::vector<Column>;

// An array of objects as lines: a header, then one line each; numbers to the right.
std::vector<std::string> table_lines(const Json& rows, const Columns& columns);

// One cell: "-" for what is absent, null or empty. Control characters come out as '?'.
std::string cell(const Json& row, const Column& column);

class Output {
public:
    Output(std::ostream& out, bool json) : out_(out), json_(json) {}

    [[nodiscard]] bool json() const { return json_; }

    // JSON: the model, once. Text: nothing; text is what the calls below write.
    void model(const Json& model);
    // JSON for a stream of results: one object per line.
    void model_line(const Json& model);

    // Text only. An array of objects with a header; "(none)" when it is empty.
    void table(const Json& rows, const Columns& columns);
    // Text only. "Title:  value", one per line; what is absent is left out.
    void record(const Json& object, const Columns& columns);
    // Text only.
    void line(const std::string& text);

private:
    std::ostream& out_;
    bool json_;
};

} // namespace smc::ctl
