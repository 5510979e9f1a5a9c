// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// get, set: what holds for an attached region, and what of it can be changed while it lives.
#include <memory>

#include <CLI/CLI.hpp>

#include "cli.hpp"
#include "core/merge_unit.hpp"
#include "core/region_params.hpp"
#include "model.hpp"
#include "units.hpp"

namespace smc::ctl {
namespace {

struct Param {
    const char* key;   // on the command line
    const char* field; // in the region's model
    // Of what can be set, where the kernel says the value is from; null: it comes with the export.
    uint32_t client::RegionInfo::*origin;

    [[nodiscard]] bool settable() const { return origin != nullptr; }
};

const std::vector<Param>& params()
{
    using client::RegionInfo;
    static const std::vector<Param> list = {
        {"cto", "cto", &RegionInfo::cto_origin},
        {"flush_after_ms", "flush_after_ms", &RegionInfo::flush_after_origin},
        {"generation", "generation", nullptr},
        {"gid", "gid", nullptr},
        {"granule", "granule", &RegionInfo::granule_origin},
        {"hot", "hot", &RegionInfo::hot_origin},
        {"max_stale_us", "max_stale_us", &RegionInfo::max_stale_origin},
        {"merge_unit", "merge_unit", &RegionInfo::merge_unit_origin},
        {"mode", "sync_mode", &RegionInfo::sync_mode_origin},
        {"permissions", "mode", nullptr},
        {"push_delay_us", "push_delay_us", &RegionInfo::push_delay_origin},
        {"readonly", "readonly", nullptr},
        {"size", "size", nullptr},
        {"uid", "uid", nullptr},
        {"writers", "writers", &RegionInfo::writers_origin},
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
        if (!model[param.field].is_null() && (args.key.empty() || args.key == param.key))
            rows.push_back(row_of(param, model[param.field], region));
    }
    if (rows.empty())
        return fail(ENOENT, "this version of the module does not report " + args.key);
    Output out = context.output();
    out.model({{"node", region.node}, {"name", region.name}, {"params", rows}});
    if (args.key == "permissions") // octal, as it is written
        out.line(cell(rows[0], {"value", "", As::octal}));
    else if (!args.key.empty())
        out.line(cell(rows[0], {"value", ""}));
    else {
        for (Json& row : rows) {
            if (row["key"] == "permissions")
                row["value"] = cell(row, {"value", "", As::octal});
        }
        out.table(
            rows,
            {{"key", "KEY"}, {"value", "VALUE"}, {"origin", "ORIGIN"}, {"settable", "CAN BE SET"}});
    }
    return 0;
}

// A number as the kernel takes it.
Result<uint32_t> parse_number(const std::string& key, const std::string& value, uint32_t min,
                              uint32_t max)
{
    const auto number = parse_count(value, max);
    if (!number || *number < min)
        return fail(EINVAL,
                    key + " must be from " + std::to_string(min) + " to " + std::to_string(max));
    return static_cast<uint32_t>(*number);
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
    } else if (key == "hot") {
        settings.hot = SMC_TRY(parse_switch(value));
    } else if (key == "flush_after_ms") {
        settings.flush_after_ms = SMC_TRY(parse_number(key, value, 1, kFlushAfterMsMax));
    } else if (key == "mode") {
        settings.sync_mode = parse_sync_mode(value);
        if (!settings.sync_mode)
            return fail(EINVAL, "mode must be lazy, push or eager");
    } else if (key == "push_delay_us") {
        settings.push_delay_us = SMC_TRY(parse_number(key, value, 0, SMCFS_PUSH_DELAY_US_MAX));
    } else if (key == "max_stale_us") {
        settings.max_stale_us =
            SMC_TRY(parse_number(key, value == "off" ? "0" : value, 0, SMCFS_MAX_STALE_US_MAX));
    } else if (key == "merge_unit") {
        uint64_t unit = SMC_TRY(parse_count(value, SMCFS_MERGE_UNIT_MAX));
        if (!merge_unit_valid(unit))
            return fail(EINVAL, "merge_unit must be a power of two from 4 to 4096");
        settings.merge_unit = static_cast<uint32_t>(unit);
    } else if (key == "granule") {
        uint64_t granule = SMC_TRY(parse_size(value));
        if (!granule_valid(granule))
            return fail(EINVAL, "granule must be a power of two from 4K to 1M");
        settings.granule = static_cast<uint32_t>(granule);
    } else if (key == "writers") {
        if (value != "merge" && value != "exclusive")
            return fail(EINVAL, "writers must be merge or exclusive");
        settings.writers = value == "merge" ? SMCFS_WRITERS_MERGE : SMCFS_WRITERS_EXCLUSIVE;
    } else {
        return fail(EINVAL, "\"" + key + "\" cannot be set: the keys are " + known_keys(true));
    }
    return {};
}

// As smcctl get shows them.
Json changes(const client::RegionSettings& settings)
{
    Json changed = Json::object();
    if (settings.cto)
        changed["cto"] = *settings.cto;
    if (settings.flush_after_ms)
        changed["flush_after_ms"] = *settings.flush_after_ms;
    if (settings.merge_unit)
        changed["merge_unit"] = *settings.merge_unit;
    if (settings.writers)
        changed["writers"] = client::writers_name(*settings.writers);
    if (settings.sync_mode)
        changed["mode"] = sync_mode_name(*settings.sync_mode);
    if (settings.push_delay_us)
        changed["push_delay_us"] = *settings.push_delay_us;
    if (settings.max_stale_us)
        changed["max_stale_us"] = *settings.max_stale_us;
    if (settings.hot)
        changed["hot"] = *settings.hot;
    if (settings.granule)
        changed["granule"] = *settings.granule;
    return changed;
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
    const Json changed = changes(settings);
    Output out = context.output();
    out.model({{"node", region.node}, {"name", region.name}, {"set", changed}});
    out.record(changed, {{"cto", "cto"},
                         {"flush_after_ms", "flush_after_ms"},
                         {"merge_unit", "merge_unit"},
                         {"writers", "writers"},
                         {"mode", "mode"},
                         {"push_delay_us", "push_delay_us"},
                         {"max_stale_us", "max_stale_us"},
                         {"hot", "hot"},
                         {"granule", "granule"}});
    if (settings.sync_mode == SMCFS_SYNC_EAGER)
        out.line("stores through mappings are sent as soon as can be, but not waited for: "
                 "msync(2) is what waits");
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
