// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// get, set: what holds for an attached region, and what of it can be changed while it lives.
#include <memory>

#include <CLI/CLI.hpp>

#include "cli.hpp"
#include "core/merge_unit.hpp"
#include "model.hpp"
#include "units.hpp"

namespace smc::ctl {
namespace {

constexpr uint64_t kFlushAfterMsMax = 3600000;

struct Param {
    const char* key; // in the region's model, and on the command line
    // Of what can be set, where the kernel says the value is from; null: it comes with the export.
    uint32_t client::RegionInfo::*origin;

    [[nodiscard]] bool settable() const { return origin != nullptr; }
};

const std::vector<Param>& params()
{
    using client::RegionInfo;
    static const std::vector<Param> list = {
        {"cto", &RegionInfo::cto_origin},
        {"flush_after_ms", &RegionInfo::flush_after_origin},
        {"generation", nullptr},
        {"gid", nullptr},
        {"merge_unit", &RegionInfo::merge_unit_origin},
        {"mode", nullptr},
        {"readonly", nullptr},
        {"size", nullptr},
        {"uid", nullptr},
        {"writers", &RegionInfo::writers_origin},
    };
    return list;
}

std::string known_keys(bool settable_only)
{
    std::string keys;
    for (const Param& param : params()) {
        if (param.settable() || !settable_only)
            keys += (keys.empty() ? "" : ", ") + std::string(param.key);
    }
    return keys;
}

// Where a value comes from.
const char* origin(const Param& param, const client::RegionInfo& region)
{
    switch (param.settable() ? region.*param.origin : uint32_t{SMCFS_ORIGIN_EXPORT}) {
    case SMCFS_ORIGIN_DEFAULT:
        return "default";
    case SMCFS_ORIGIN_EXPORT:
        return "export";
    case SMCFS_ORIGIN_CONFIG:
        return "configuration";
    case SMCFS_ORIGIN_SET:
        return "set";
    default: // of another version
        return "unknown";
    }
}

struct GetArgs {
    RegionName region;
    std::string key;
};

struct SetArgs {
    RegionName region;
    std::vector<std::string> assignments;
};

Json row_of(const Param& param, const Json& value, const client::RegionInfo& region)
{
    return {{"key", param.key},
            {"value", value},
            {"origin", origin(param, region)},
            {"settable", param.settable()}};
}

Result<int> get(const Context& context, const GetArgs& args)
{
    auto kernel = SMC_TRY(client::Kernel::open());
    auto region = SMC_TRY(Context::attached(kernel, args.region));
    Json model = to_json(region);
    Json rows = Json::array();
    for (const Param& param : params()) {
        if (!model[param.key].is_null() && (args.key.empty() || args.key == param.key))
            rows.push_back(row_of(param, model[param.key], region));
    }
    if (rows.empty())
        return fail(ENOENT, "this version of the module does not report " + args.key);
    Output out = context.output();
    out.model({{"node", region.node}, {"name", region.name}, {"params", rows}});
    if (args.key == "mode") // octal, as it is written
        out.line(cell(rows[0], {"value", "", As::octal}));
    else if (!args.key.empty())
        out.line(cell(rows[0], {"value", ""}));
    else {
        for (Json& row : rows) {
            if (row["key"] == "mode")
                row["value"] = cell(row, {"value", "", As::octal});
        }
        out.table(
            rows,
            {{"key", "KEY"}, {"value", "VALUE"}, {"origin", "ORIGIN"}, {"settable", "CAN BE SET"}});
    }
    return 0;
}

Result<void> apply(client::RegionSettings& settings, const std::string& assignment)
{
    size_t equals = assignment.find('=');
    if (equals == std::string::npos)
        return fail(EINVAL, "\"" + assignment + "\" is no assignment: write KEY=VALUE");
    std::string key = assignment.substr(0, equals);
    std::string value = assignment.substr(equals + 1);
    if (key == "cto") {
        settings.cto = SMC_TRY(parse_switch(value));
    } else if (key == "flush_after_ms") {
        uint64_t ms = SMC_TRY(parse_count(value, kFlushAfterMsMax));
        if (ms == 0)
            return fail(EINVAL,
                        "flush_after_ms must be from 1 to " + std::to_string(kFlushAfterMsMax));
        settings.flush_after_ms = static_cast<uint32_t>(ms);
    } else if (key == "merge_unit") {
        uint64_t unit = SMC_TRY(parse_count(value, SMCFS_MERGE_UNIT_MAX));
        if (!merge_unit_valid(unit))
            return fail(EINVAL, "merge_unit must be a power of two from 4 to 4096");
        settings.merge_unit = static_cast<uint32_t>(unit);
    } else if (key == "writers") {
        if (value != "merge" && value != "exclusive")
            return fail(EINVAL, "writers must be merge or exclusive");
        settings.writers = value == "merge" ? SMCFS_WRITERS_MERGE : SMCFS_WRITERS_EXCLUSIVE;
    } else {
        return fail(EINVAL, "\"" + key + "\" cannot be set: the keys are " + known_keys(true));
    }
    return {};
}

// Usage errors, all found before anything is changed.
std::string assignment_valid(const std::string& text)
{
    client::RegionSettings scratch;
    auto applied = apply(scratch, text);
    return applied ? std::string() : applied.error().what;
}

std::string key_valid(const std::string& key)
{
    for (const Param& param : params()) {
        if (key == param.key)
            return {};
    }
    return "\"" + key + "\" is no parameter: the keys are " + known_keys(false);
}

Result<int> set(const Context& context, const SetArgs& args)
{
    client::RegionSettings settings;
    for (const std::string& assignment : args.assignments)
        SMC_TRY(apply(settings, assignment));
    auto kernel = SMC_TRY(client::Kernel::open());
    auto region = SMC_TRY(Context::attached(kernel, args.region));
    SMC_TRY(kernel.set(region.id, settings));
    Json changed = Json::object();
    if (settings.cto)
        changed["cto"] = *settings.cto;
    if (settings.flush_after_ms)
        changed["flush_after_ms"] = *settings.flush_after_ms;
    if (settings.merge_unit)
        changed["merge_unit"] = *settings.merge_unit;
    if (settings.writers)
        changed["writers"] = client::writers_name(*settings.writers);
    Output out = context.output();
    out.model({{"node", region.node}, {"name", region.name}, {"set", changed}});
    out.record(changed, {{"cto", "cto"},
                         {"flush_after_ms", "flush_after_ms"},
                         {"merge_unit", "merge_unit"},
                         {"writers", "writers"}});
    return 0;
}

} // namespace

void add_params(CLI::App& app, Context& context)
{
    auto get_args = std::make_shared<GetArgs>();
    CLI::App* get_verb =
        add_verb(app, context, "get", "Parameters of an attached region, and their origin",
                 [&context, get_args] { return get(context, *get_args); });
    add_region(*get_verb, get_args->region)->required();
    get_verb->add_option("key", get_args->key, "Only this: " + known_keys(false))
        ->check(key_valid)
        ->type_name("KEY");

    auto set_args = std::make_shared<SetArgs>();
    CLI::App* set_verb =
        add_verb(app, context, "set", "Change parameters of an attached region (root)",
                 [&context, set_args] { return set(context, *set_args); });
    add_region(*set_verb, set_args->region)->required();
    set_verb->add_option("assignment", set_args->assignments, "Of " + known_keys(true))
        ->required()
        ->check(assignment_valid)
        ->type_name("KEY=VALUE");
}

} // namespace smc::ctl
