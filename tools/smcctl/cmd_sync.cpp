// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// flush, acquire: a barrier and an acquire from outside the programs that use the region.
#include <memory>

#include <CLI/CLI.hpp>
#include <smc/smc.h>

#include "cli.hpp"

namespace smc::ctl {
namespace {

struct Detacher {
    void operator()(smc_region* region) const { smc_detach(region); }
};
using Attached = std::unique_ptr<smc_region, Detacher>;

struct RangeArgs {
    RegionName region;
    uint64_t offset = 0;
    uint64_t length = 0; // 0: to the end
};

tl::unexpected<Error> failed(int err, const RangeArgs& args, const char* operation)
{
    return fail(-err, std::string("cannot ") + operation + " " + args.region.text() + ": " +
                          smc_strerror(err));
}

// Read-only: neither operation writes, and the writing right stays where it is.
Result<Attached> attach(const RangeArgs& args, const char* operation)
{
    smc_attach_opts opts{};
    opts.size = sizeof(opts);
    opts.flags = SMC_ATTACH_READONLY;
    smc_region* region = nullptr;
    if (int err = smc_attach(args.region.path().c_str(), &opts, &region))
        return failed(err, args, operation);
    return Attached(region);
}

void write(const Context& context, const RangeArgs& args, const char* done)
{
    Output out = context.output();
    out.model({{"node", args.region.node}, {"name", args.region.name}, {done, true}});
    out.line(std::string(done) + " " + args.region.text());
}

Result<int> flush(const Context& context, const RangeArgs& args)
{
    Attached region = SMC_TRY(attach(args, "flush"));
    if (args.offset > smc_size(region.get()))
        return failed(-ERANGE, args, "flush");
    uint64_t length = args.length != 0 ? args.length : smc_size(region.get()) - args.offset;
    if (int err = smc_barrier_range(region.get(), args.offset, length))
        return failed(err, args, "flush");
    write(context, args, "flushed");
    return 0;
}

Result<int> acquire(const Context& context, const RangeArgs& args)
{
    Attached region = SMC_TRY(attach(args, "acquire"));
    if (int err = smc_acquire(region.get(), args.offset, args.length))
        return failed(err, args, "acquire");
    write(context, args, "acquired");
    return 0;
}

void add(CLI::App& app, Context& context, const std::string& verb, const std::string& description,
         Result<int> (*action)(const Context&, const RangeArgs&))
{
    auto args = std::make_shared<RangeArgs>();
    CLI::App* sub = add_verb(app, context, verb, description,
                             [&context, args, action] { return action(context, *args); });
    add_region(*sub, args->region)->required();
    add_size(*sub, "--offset", args->offset, "First byte [0]");
    add_size(*sub, "--length", args->length, "Bytes [to the end]");
}

} // namespace

void add_sync(CLI::App& app, Context& context)
{
    add(app, context, "flush", "Send a region's changes and wait until they have arrived", flush);
    add(app, context, "acquire", "Drop cached pages, so that the peer's changes are seen", acquire);
}

} // namespace smc::ctl
