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

Result<memory::Memory> make_memory(ExportSpec& spec)
{
    if (const auto* host = std::get_if<HostMemory>(&spec.source))
        return memory::Memory::host(*host);
    if (const auto* file = std::get_if<FilePath>(&spec.source))
        return memory::Memory::file(*file, spec.caller, spec.readonly);
    return memory::Memory::descriptor(std::move(std::get<FdMemory>(spec.source)), spec.readonly);
}

} // namespace

ExportEntry::ExportEntry(const ExportSpec& spec, memory::Memory memory)
    : name(spec.name), uid(spec.uid), gid(spec.gid), mode(spec.mode), writers(spec.writers),
      merge_unit(spec.merge_unit), readonly(spec.readonly), generation(random_identity()), memory_(std::move(memory))
{}

Result<const std::vector<verbs::RegisteredExtent>*>
ExportEntry::registration(verbs::Device& device, std::uint64_t extent_max)
{
    const auto known = registrations_.find(device.name());
    if (known != registrations_.end())
        return &known->second;
    verbs::RegistrationParams params;
    params.pd = device.pd();
    params.data = memory_.data();
    params.length_bytes = memory_.size();
    params.extent_max = extent_max;
    // A window that may be written to needs a registration that the local side may write to.
    params.access = IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE;
    auto extents = SMC_TRY(verbs::register_memory(params));
    return &registrations_.emplace(device.name(), std::move(extents)).first->second;
}

int ExportEntry::session_access() const
{
    return readonly ? IBV_ACCESS_REMOTE_READ
                    : IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
}

Result<void> ExportEntry::prepare(verbs::Device& device, std::uint64_t extent_max)
{
    if (keys_on(device) == Keys::window) {
        SMC_TRY(registration(device, extent_max));
        return {};
    }
    verbs::RegistrationParams params;
    params.pd = device.pd();
    params.data = memory_.data();
    params.length_bytes = std::min(memory_.size(), kTrialBytes);
    params.access = session_access();
    SMC_TRY(verbs::register_memory(params));
    return {};
}

Keys ExportEntry::keys_on(const verbs::Device& device) const
{
    return device.windows() && memory_.writable() ? Keys::window : Keys::mr;
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
    info.size = memory_.size();
    info.generation = generation;
    info.provider = memory_.provider();
    info.path = memory_.path();
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

Result<ExportEntry*> ExportRegistry::add(ExportSpec spec, std::uint32_t exports_max)
{
    SMC_TRY(check(spec, exports_max));
    auto memory = make_memory(spec);
    if (!memory)
        return fail(memory.error().code,
                    fmt::format("cannot export \"{}\": {}", spec.name, memory.error().what));
    auto entry = std::make_unique<ExportEntry>(spec, std::move(*memory));
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
