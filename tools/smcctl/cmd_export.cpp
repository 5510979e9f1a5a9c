// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// export, unexport: memory of this node that others may attach.
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli.hpp"
#include "core/merge_unit.hpp"
#include "core/region_params.hpp"
#include "units.hpp"

namespace smc::ctl {
namespace {

// Allocating and registering memory takes about 0.3 s per GiB, and there may be many.
constexpr std::chrono::minutes kRegisterTime{10};
// Revoking waits for every session's keys to be dead.
constexpr std::chrono::minutes kRevokeTime{2};

struct ExportArgs {
    std::string name;
    uint64_t host_bytes = 0;
    bool hugepages = false;
    std::string file;
    uint64_t offset = 0;
    uint64_t length = 0;
    uint32_t mode = 0600;
    std::string writers = "merge";
    uint32_t merge_unit = SMCFS_MERGE_UNIT;
    bool readonly = false;
    Json hints = Json::object();
};

Result<int> do_export(const Context& context, const ExportArgs& args)
{
    Json request = {{"name", args.name},         {"mode", args.mode},
                    {"writers", args.writers},   {"merge_unit", args.merge_unit},
                    {"readonly", args.readonly}, {"hints", args.hints}};
    if (args.file.empty()) {
        request["host"] = args.host_bytes;
        request["hugepages"] = args.hugepages;
    } else {
        // The daemon has another working directory.
        std::error_code ec;
        auto path = std::filesystem::absolute(args.file, ec);
        if (ec)
            return fail(ec.value(), "cannot find the current directory: " + ec.message());
        request["file"] = path.string();
        if (args.offset != 0)
            request["offset"] = args.offset;
        if (args.length != 0)
            request["length"] = args.length;
    }
    Json answer = SMC_TRY(context.ask("export", std::move(request), kRegisterTime));
    Json model = {{"name", args.name},
                  {"generation", answer.value("generation", Json())},
                  {"size", answer.value("size", Json())}};
    Output out = context.output();
    out.model(model);
    out.line("exported " + args.name + ", " + cell(model, {"size", "", As::size}) + " bytes (" +
             cell(model, {"size", "", As::text}) + "), generation " +
             cell(model, {"generation", "", As::text}));
    return 0;
}

Result<int> do_unexport(const Context& context, const std::string& name)
{
    SMC_TRY(context.ask("unexport", {{"name", name}}, kRevokeTime));
    Output out = context.output();
    out.model({{"name", name}, {"unexported", true}});
    out.line("unexported " + name + ": its keys are dead");
    return 0;
}

std::string valid_name(const std::string& name)
{
    auto valid = client::check_region_name(name);
    return valid ? std::string() : valid.error().what;
}

void take_mode(CLI::App& verb, uint32_t& mode)
{
    CLI::callback_t take = [&mode](const CLI::results_t& words) {
        auto parsed = parse_mode(words.at(0));
        if (!parsed)
            throw CLI::ValidationError("--mode", parsed.error().what);
        mode = *parsed;
        return true;
    };
    verb.add_option("--mode", take, "Permission bits of the file on other nodes [0600]")
        ->type_name("MODE");
}

std::string merge_unit_check(const std::string& text)
{
    auto unit = parse_count(text, SMCFS_MERGE_UNIT_MAX);
    return unit && merge_unit_valid(*unit) ? std::string()
                                           : "must be a power of two from 4 to 4096";
}

std::string granule_check(const std::string& text)
{
    auto granule = parse_size(text);
    return granule && granule_valid(*granule) ? std::string()
                                              : "must be a power of two from 4K to 1M";
}

// Parameters that nodes which attach the region start with.
void add_hints(CLI::App& verb, Json& hints)
{
    verb.add_option_function<std::string>(
            "--sync-mode", [&hints](const std::string& mode) { hints["mode"] = mode; },
            "Hint: when changes are sent without being asked")
        ->check(CLI::IsMember({"lazy", "push", "eager"}));
    const auto number = [&](const char* option, const char* key, uint32_t min, uint32_t max,
                            const char* help) {
        verb.add_option_function<uint32_t>(
                option, [&hints, key](const uint32_t& value) { hints[key] = value; }, help)
            ->check(CLI::Range(min, max))
            ->type_name("N");
    };
    number("--flush-after-ms", "flush_after_ms", 1, kFlushAfterMsMax,
           "Hint: changes are sent after so long");
    number("--push-delay-us", "push_delay_us", 0, SMCFS_PUSH_DELAY_US_MAX,
           "Hint: the same, for --sync-mode push");
    number("--max-stale-us", "max_stale_us", 0, SMCFS_MAX_STALE_US_MAX,
           "Hint: unchanged pages are dropped so often; 0: never");
    verb.add_option_function<std::string>(
            "--granule",
            [&hints](const std::string& size) { hints["granule"] = *parse_size(size); },
            "Hint: absent pages are fetched by so much: a power of two, 4K to 1M")
        ->check(granule_check)
        ->type_name("SIZE");
}

} // namespace

void add_exports(CLI::App& app, Context& context)
{
    auto args = std::make_shared<ExportArgs>();
    CLI::App* verb = add_verb(app, context, "export", "Offer memory of this node under a name",
                              [&context, args] { return do_export(context, *args); });
    verb->add_option("name", args->name, "Name of the region; may contain '/'")
        ->required()
        ->check(valid_name)
        ->type_name("NAME");
    CLI::Option* host = add_size(*verb, "--host", args->host_bytes, "New memory of the daemon");
    CLI::Option* file =
        verb->add_option("--file", args->file, "An existing file or shared memory object")
            ->type_name("PATH");
    host->excludes(file);
    verb->add_flag("--hugepages", args->hugepages, "Back --host by huge pages")->needs(host);
    add_size(*verb, "--offset", args->offset, "Where the region begins in --file [0]")->needs(file);
    add_size(*verb, "--length", args->length, "Its size [to the end of --file]")->needs(file);
    take_mode(*verb, args->mode);
    verb->add_flag("--readonly", args->readonly, "Nobody may write, root included");
    verb->add_option(
            "--writers", args->writers,
            "merge: any number of nodes, what each changed is sent; exclusive: one at a time")
        ->check(CLI::IsMember({"merge", "exclusive"}))
        ->capture_default_str();
    verb->add_option("--merge-unit", args->merge_unit,
                     "Bytes that merge sends together: a power of two, 4 to 4096")
        ->check(merge_unit_check)
        ->capture_default_str();
    add_hints(*verb, args->hints);
    verb->parse_complete_callback([host, file, args] {
        if (host->count() + file->count() == 0)
            throw CLI::RequiredError("one of --host and --file");
        if (host->count() > 0 && args->host_bytes == 0)
            throw CLI::ValidationError("--host", "a region has at least 1 byte");
    });

    auto name = std::make_shared<std::string>();
    CLI::App* un = add_verb(app, context, "unexport",
                            "Withdraw a region: it is revoked on every node before this returns",
                            [&context, name] { return do_unexport(context, *name); });
    un->add_option("name", *name, "Name of the region")
        ->required()
        ->check(valid_name)
        ->type_name("NAME");
}

} // namespace smc::ctl
