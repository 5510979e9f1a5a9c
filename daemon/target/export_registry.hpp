// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What this node exports: memory with a name.
//
// Owns: the memory and its registrations, one per device.
// Contexts: the event loop's thread.
// Lifetime: an entry stays until every key made on it is dead; while it is `removing` its name is
// taken and nobody finds it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "memory/memory.hpp"
#include "target/types.hpp"
#include "verbs/device.hpp"
#include "verbs/registration.hpp"

namespace smc {

class ExportEntry {
public:
    ExportEntry(const ExportSpec& spec, memory::Memory memory);

    // Registered without any remote right, so that windows can be bound. Once per device; pins the
    // memory.
    Result<const std::vector<verbs::RegisteredExtent>*> registration(verbs::Device& device,
                                                                     std::uint64_t extent_max);
    // Whether keys for it can be made on the device: registers it, or, where that is done for each
    // session, tries with a page.
    Result<void> prepare(verbs::Device& device, std::uint64_t extent_max);
    // What a registration for one session has to allow.
    [[nodiscard]] int session_access() const;
    void forget_device(const verbs::Device& device) { registrations_.erase(device.name()); }
    // What keys for this memory are made of on the device. Memory that is mapped for reading only
    // cannot have windows.
    [[nodiscard]] Keys keys_on(const verbs::Device& device) const;
    [[nodiscard]] ExportInfo info() const; // but for keys, sessions, writer

    const std::string name;
    const uid_t uid;
    const gid_t gid;
    const std::uint32_t mode;
    const Writers writers;
    const std::uint32_t merge_unit;
    const bool readonly;
    const Generation generation;
    std::optional<SessionId> writer; // holds the writing right
    bool removing = false;

    [[nodiscard]] const memory::Memory& memory() const { return memory_; }

private:
    memory::Memory memory_;
    std::map<std::string, std::vector<verbs::RegisteredExtent>> registrations_; // by device
};

class ExportRegistry {
public:
    using Map = std::map<std::string, std::unique_ptr<ExportEntry>, std::less<>>;

    // Checks everything but the memory, which is made last.
    Result<ExportEntry*> add(ExportSpec spec, std::uint32_t exports_max);
    void erase(const std::string& name) { entries_.erase(name); }
    // Null when there is none, or it is being removed.
    [[nodiscard]] ExportEntry* find(std::string_view name) const;
    // As find(). ENOENT, or EISDIR for a name that exports lie below.
    Result<ExportEntry*> require(const std::string& name) const;
    [[nodiscard]] const Map& entries() const { return entries_; }

private:
    Result<void> check(const ExportSpec& spec, std::uint32_t exports_max) const;

    Map entries_;
};

} // namespace smc
