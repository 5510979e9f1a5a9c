// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target/export_registry.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/names.hpp"
#include "core/random.hpp"

namespace smc {
namespace {

constexpr std::uint32_t kModeMask = 0777;
constexpr std::uint64_t kTrialBytes = 4096;

} // namespace

Result<memory::Memory> make_memory(ExportSpec& spec)
{
    const auto make = [&]() -> Result<memory::Memory> {
        if (const auto* host = std::get_if<HostMemory>(&spec.source))
            return memory::Memory::host(*host);
        if (const auto* file = std::get_if<FilePath>(&spec.source))
            return memory::Memory::file(*file, spec.caller, spec.readonly);
        return memory::Memory::descriptor(std::move(std::get<FdMemory>(spec.source)),
                                          spec.readonly);
    };
    auto memory = make();
    if (!memory)
        return fail(memory.error().code,
                    fmt::format("cannot export \"{}\": {}", spec.name, memory.error().what));
    return memory;
}

ExportEntry::ExportEntry(const ExportSpec& spec, memory::Memory memory, Registrar& registrar)
    : name(spec.name), uid(spec.uid), gid(spec.gid), mode(spec.mode), writers(spec.writers),
      merge_unit(spec.merge_unit), readonly(spec.readonly), hints(spec.hints),
      generation(random_identity()), registrar_(registrar),
      memory_(std::make_shared<memory::Memory>(std::move(memory)))
{}

void ExportEntry::submit(RegistrationJob job, Done<Registered> done)
{
    job.memory = memory_;
    job.cancelled = cancelled_;
    jobs_++;
    // The entry outlives the job: see when_idle().
    registrar_.submit(std::move(job), [this, done = std::move(done)](Result<Registered> result) {
        done(std::move(result));
        if (--jobs_ != 0)
            return;
        for (const auto& then : std::exchange(idle_waiters_, {}))
            then();
    });
}

void ExportEntry::when_idle(std::function<void()> then)
{
    if (jobs_ == 0)
        then();
    else
        idle_waiters_.push_back(std::move(then));
}

void ExportEntry::registration(const Device& device, std::uint64_t extent_max,
                               Done<const Registered*> done)
{
    auto& slot = registrations_[device->name()];
    if (slot && slot->extents) {
        done(&*slot->extents);
        return;
    }
    if (slot) {
        slot->waiters.push_back(std::move(done));
        return;
    }
    slot = std::make_shared<OnDevice>();
    slot->waiters.push_back(std::move(done));
    RegistrationJob job;
    job.device = device;
    job.extent_max = extent_max;
    // A window that may be written to needs a registration that the local side may write to.
    job.access = IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE;
    submit(std::move(job),
           [this, where = std::weak_ptr(slot), name = device->name()](Result<Registered> result) {
               registered(where, name, std::move(result));
           });
}

void ExportEntry::registered(const std::weak_ptr<OnDevice>& where, const std::string& device,
                             Result<Registered> result)
{
    const auto slot = where.lock();
    if (!slot)
        return; // the device has gone, and those who waited know
    const auto waiters = std::exchange(slot->waiters, {});
    if (result)
        slot->extents = std::move(*result);
    else
        registrations_.erase(device); // the next who asks tries again
    for (const auto& done : waiters) {
        if (slot->extents)
            done(&*slot->extents);
        else
            done(tl::unexpected(result.error()));
    }
}

void ExportEntry::forget_device(const verbs::Device& device)
{
    auto slot = registrations_.extract(device.name());
    if (slot.empty())
        return;
    for (const auto& done : std::exchange(slot.mapped()->waiters, {}))
        done(fail(ENODEV, fmt::format("RDMA device {} was removed", device.name())));
}

int ExportEntry::session_access(const verbs::Device& device) const
{
    if (readonly)
        return IBV_ACCESS_REMOTE_READ;
    return IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
           (device.atomics() ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

void ExportEntry::register_for_session(const Device& device, std::shared_ptr<ibv_pd> pd,
                                       std::uint64_t extent_max, Done<Registered> done)
{
    RegistrationJob job;
    job.device = device;
    job.pd = std::move(pd);
    job.extent_max = extent_max;
    job.access = session_access(*device);
    submit(std::move(job), std::move(done));
}

void ExportEntry::prepare(const Device& device, std::uint64_t extent_max, const Done<void>& done)
{
    if (keys_on(*device) == Keys::window) {
        registration(device, extent_max, [done](const Result<const Registered*>& result) {
            done(result ? Result<void>() : Result<void>(tl::unexpected(result.error())));
        });
        return;
    }
    verbs::RegistrationParams params;
    params.pd = device->pd();
    params.data = memory_->data();
    params.length_bytes = std::min(memory_->size(), kTrialBytes);
    params.access = session_access(*device);
    const auto tried = verbs::register_memory(params);
    done(tried ? Result<void>() : Result<void>(tl::unexpected(tried.error())));
}

Keys ExportEntry::keys_on(const verbs::Device& device) const
{
    return device.windows() && memory_->writable() ? Keys::window : Keys::mr;
}

ExportInfo ExportEntry::info() const
{
    ExportInfo info;
    info.name = name;
    info.uid = uid;
    info.gid = gid;
    info.mode = mode;
    info.writers = writers;
    info.merge_unit = merge_unit;
    info.readonly = readonly;
    info.size = memory_->size();
    info.generation = generation;
    info.provider = memory_->provider();
    info.path = memory_->path();
    return info;
}

Result<void> ExportRegistry::check(const ExportSpec& spec, std::uint32_t exports_max) const
{
    SMC_TRY(check_region_name(spec.name));
    if ((spec.mode & ~kModeMask) != 0)
        return fail(EINVAL, fmt::format("mode {:o} of \"{}\" has more than permission bits (0777)",
                                        spec.mode, spec.name));
    for (const auto& [other, entry] : entries_) {
        if (other == spec.name)
            return fail(EEXIST, fmt::format("\"{}\" is exported already{}", other,
                                            entry->removing ? " and being removed" : ""));
        if (names_clash(other, spec.name))
            return fail(EEXIST, fmt::format("\"{}\" cannot be exported beside \"{}\": one would be "
                                            "a directory of the other",
                                            spec.name, other));
    }
    if (entries_.size() >= exports_max)
        return fail(EUSERS,
                    fmt::format("{} regions are exported, which is the limit", exports_max));
    return {};
}

Result<ExportEntry*> ExportRegistry::add(const ExportSpec& spec, memory::Memory memory,
                                         Registrar& registrar, std::uint32_t exports_max)
{
    SMC_TRY(check(spec, exports_max));
    auto entry = std::make_unique<ExportEntry>(spec, std::move(memory), registrar);
    auto* raw = entry.get();
    entries_.emplace(raw->name, std::move(entry));
    return raw;
}

ExportEntry* ExportRegistry::find(std::string_view name) const
{
    const auto found = entries_.find(name);
    return found != entries_.end() && !found->second->removing ? found->second.get() : nullptr;
}

Result<ExportEntry*> ExportRegistry::require(const std::string& name) const
{
    if (auto* entry = find(name); entry != nullptr)
        return entry;
    const auto below = name + "/";
    const auto next = entries_.lower_bound(below);
    if (next != entries_.end() && next->first.starts_with(below))
        return fail(EISDIR, fmt::format("\"{}\" is a directory of exported regions", name));
    return fail(ENOENT,
                fmt::format("no region \"{}\" is exported here, see: smcctl exports", name));
}

} // namespace smc
