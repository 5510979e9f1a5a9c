// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
//   add_export -> [a thread opens the file] -> entry, found from now on -> registered on all devices
//       remove_export:  forgotten                removing -> keys dead, registrations ended -> gone
#include <fcntl.h>

#include <fmt/format.h>

#include "core/names.hpp"
#include "core/random.hpp"
#include "target/target_impl.hpp"

namespace smc {

// Shared by the registrations under way; the last one ends it.
struct Target::Impl::Preparation {
    std::string name;
    Generation generation = 0;
    std::size_t outstanding = 1; // of who starts them
    Result<void> outcome;
    Done<ExportInfo> done;
};

void Target::Impl::add_export(ExportSpec spec, Done<ExportInfo> done)
{
    const auto start = [&]() -> Result<void> {
        SMC_TRY(exports_.check(spec, options_.exports_max));
        for (const auto& [name, opening] : openings_)
            if (name == spec.name || names_clash(name, spec.name))
                return fail(EEXIST, fmt::format("\"{}\" is being exported already", name));
        if (std::holds_alternative<FilePath>(spec.source))
            return open_file(std::move(spec), done);
        auto memory = make_memory(spec);
        return add_memory(spec, std::move(memory), done);
    };
    if (auto started = start(); !started)
        answer<ExportInfo>(std::move(done), tl::unexpected(std::move(started).error()));
}

Result<void> Target::Impl::open_file(ExportSpec spec, const Done<ExportInfo>& done)
{
    const auto others = openings_of_.find(spec.caller.uid);
    if (spec.caller.uid != 0 && others != openings_of_.end() && others->second >= kOpeningsPerUid)
        return fail(EBUSY, fmt::format("{} files of uid {} are being opened already: does their "
                                       "file system answer?",
                                       others->second, spec.caller.uid));
    const auto id = random_identity();
    const auto name = spec.name;
    const auto uid = spec.caller.uid;
    // Shared with the thread, which may outlive this.
    auto shared = std::make_shared<ExportSpec>(std::move(spec));
    const bool taken =
        openers_.submit([this, remote = loop_.remote(), alive = std::weak_ptr(alive_), id, shared] {
            auto memory = std::make_shared<Result<memory::Memory>>(make_memory(*shared));
            remote->post([this, alive, id, shared, memory = std::move(memory)] {
                if (!alive.expired())
                    opened(id, *shared, std::move(*memory));
            });
        });
    if (!taken)
        return fail(EBUSY, "too many files are being opened: try again later");
    ++openings_of_[uid];
    openings_[name] = {id, done, {}};
    return {};
}

Done<ExportInfo> Target::Impl::end_opening(const std::string& name)
{
    auto opening = openings_.extract(name);
    for (auto& grant : opening.mapped().grants)
        defer(std::move(grant));
    return std::move(opening.mapped().done);
}

void Target::Impl::opened(std::uint64_t id, const ExportSpec& spec, Result<memory::Memory> memory)
{
    if (--openings_of_[spec.caller.uid] == 0)
        openings_of_.erase(spec.caller.uid);
    const auto found = openings_.find(spec.name);
    if (found == openings_.end() || found->second.id != id)
        return; // it was removed meanwhile
    const auto done = end_opening(spec.name);
    if (auto added = add_memory(spec, std::move(memory), done); !added)
        done(tl::unexpected(std::move(added).error()));
}

Result<void> Target::Impl::add_memory(const ExportSpec& spec, Result<memory::Memory> memory,
                                      const Done<ExportInfo>& done)
{
    if (!memory)
        return tl::unexpected(std::move(memory).error());
    auto* entry = SMC_TRY(exports_.add(spec, std::move(*memory), registrar_, options_.exports_max));
    // Now rather than at the first use, which would then wait for pages to be pinned, and find out
    // that they cannot be.
    auto preparation = std::make_shared<Preparation>();
    preparation->name = entry->name;
    preparation->generation = entry->generation;
    preparation->done = done;
    const auto one_done = [this, preparation](const Result<void>& result) {
        if (!result && preparation->outcome)
            preparation->outcome = result;
        if (--preparation->outstanding == 0)
            defer([this, preparation] { prepared(*preparation); });
    };
    for (const auto& [name, device] : devices_) {
        preparation->outstanding++;
        entry->prepare(device, options_.extent_bytes_max, one_done);
    }
    one_done({});
    return {};
}

void Target::Impl::prepared(const Preparation& preparation)
{
    const auto& name = preparation.name;
    auto* entry = exports_.find(name);
    if (entry == nullptr || entry->generation != preparation.generation) {
        preparation.done(
            fail(ECANCELED, fmt::format("\"{}\" was removed before it was ready", name)));
        return;
    }
    if (preparation.outcome) {
        log::info("exporting \"{}\", {} bytes, generation {:016x}", name, entry->memory().size(),
                  entry->generation);
        preparation.done(info(*entry));
        return;
    }
    const auto& why = preparation.outcome.error();
    start_removal(*entry, [done = preparation.done, code = why.code,
                           what = fmt::format("cannot export \"{}\": {}", name, why.what)](
                              const Result<void>&) { done(fail(code, what)); });
}

void Target::Impl::remove_export(const std::string& name, Done<void> done)
{
    if (openings_.contains(name)) {
        answer<ExportInfo>(
            end_opening(name),
            fail(ECANCELED, fmt::format("\"{}\" was removed before it was ready", name)));
        answer<void>(std::move(done), {});
        return;
    }
    auto* entry = exports_.find(name);
    if (entry == nullptr)
        answer<void>(std::move(done),
                     fail(ENOENT, fmt::format("no region \"{}\" is exported here", name)));
    else
        start_removal(*entry, std::move(done));
}

void Target::Impl::start_removal(ExportEntry& entry, Done<void> done)
{
    entry.removing = true;
    entry.cancel();
    struct Removal {
        std::size_t outstanding = 2; // this function's own, and registrations under way
        Done<void> done;
    };
    // Shared by the releases under way; the last one finishes the removal.
    auto removal = std::make_shared<Removal>();
    removal->done = std::move(done);
    const auto& name = entry.name;
    const auto release_one = [this, name, removal] {
        if (--removal->outstanding == 0)
            defer([this, name, removal] { finish_removal(name, removal->done); });
    };
    entry.when_idle(release_one);
    for (auto& [id, session] : sessions_) {
        if (!session->has_grant(name))
            continue;
        removal->outstanding++;
        const auto generation = entry.generation;
        session->release(name, [this, id = id, name, generation, release_one](const Result<void>&) {
            defer([this, id, name, generation] {
                if (const auto found = sessions_.find(id); found != sessions_.end())
                    found->second->drop_released(name);
                events_.revoked(id, name, generation);
            });
            release_one();
        });
    }
    release_one();
}

void Target::Impl::finish_removal(const std::string& name, const Done<void>& done)
{
    exports_.erase(name);
    log::info("\"{}\" is no longer exported", name);
    done({});
}

ExportInfo Target::Impl::info(const ExportEntry& entry) const
{
    auto info = entry.info();
    for (const auto& [id, session] : sessions_) {
        if (entry.writer == id)
            info.writer = session->node();
        if (session->has_grant(entry.name)) {
            info.sessions.push_back(session->node());
            info.keys = entry.keys_on(*devices_.at(session->device()));
        }
    }
    return info;
}

// --- the class itself ----------------------------------------------------------------------------

void Target::add_export(ExportSpec spec, Done<ExportInfo> done)
{
    impl_->add_export(std::move(spec), std::move(done));
}

void Target::remove_export(const std::string& name, Done<void> done)
{
    impl_->remove_export(name, std::move(done));
}

void Target::set_hints(const std::string& name, const RegionParams& hints)
{
    if (auto* entry = impl_->exports_.find(name); entry != nullptr)
        entry->hints = hints;
}

std::vector<ExportInfo> Target::exports() const
{
    std::vector<ExportInfo> infos;
    for (const auto& [name, entry] : impl_->exports_.entries())
        if (!entry->removing)
            infos.push_back(impl_->info(*entry));
    return infos;
}

std::optional<ExportInfo> Target::find_export(std::string_view name) const
{
    const auto* entry = impl_->exports_.find(name);
    if (entry == nullptr)
        return std::nullopt;
    return impl_->info(*entry);
}

Result<Fd> Target::export_fd(const std::string& name) const
{
    const auto* entry = SMC_TRY(impl_->exports_.require(name));
    Fd fd(::fcntl(entry->memory().fd(), F_DUPFD_CLOEXEC, 0));
    if (!fd)
        return fail_errno(errno, "cannot duplicate the descriptor of \"" + name + "\"");
    return fd;
}

std::vector<std::string> Target::names() const
{
    std::vector<std::string> names;
    for (const auto& [name, entry] : impl_->exports_.entries())
        if (!entry->removing)
            names.push_back(name);
    return names;
}

} // namespace smc
