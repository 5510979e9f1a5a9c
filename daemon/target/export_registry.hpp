// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What this node exports: memory with a name.
//
// Owns: the memory and its registrations, one per device.
// Contexts: the event loop's thread. Callbacks run from it, or at once when there is nothing to wait
// for.
// Lifetime: an entry stays until every key made on it is dead and no registration of its memory is
// under way; while it is `removing` its name is taken and nobody finds it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "memory/memory.hpp"
#include "target/registrar.hpp"
#include "target/types.hpp"
#include "verbs/device.hpp"
#include "verbs/registration.hpp"

namespace smc {

// Of a source that is not opened yet this may wait for its file system.
Result<memory::Memory> make_memory(ExportSpec& spec);

class ExportEntry {
public:
    ExportEntry(const ExportSpec& spec, memory::Memory memory, Registrar& registrar);

    using Device = std::shared_ptr<verbs::Device>; // shared with registrations under way

    // Registered without any remote right, so that windows can be bound. Once per device, whoever
    // asks; pins the memory. It stays until forget_device() or the entry's end.
    void registration(const Device& device, std::uint64_t extent_max, Done<const Registered*> done);
    // Whether keys for it can be made on the device: registers it, or, where that is done for each
    // session, tries with a page.
    void prepare(const Device& device, std::uint64_t extent_max, const Done<void>& done);
    // For one session, with remote rights, in a protection domain of its own.
    void register_for_session(const Device& device, std::shared_ptr<ibv_pd> pd,
                              std::uint64_t extent_max, Done<Registered> done);
    void forget_device(const verbs::Device& device);
    // Registrations under way end soon, with ECANCELED; there will be no other.
    void cancel() { *cancelled_ = true; }
    // Once no registration is under way.
    void when_idle(std::function<void()> then);
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
    RegionParams hints; // of later grants
    const Generation generation;
    std::optional<SessionId> writer; // holds the writing right
    bool removing = false;

    [[nodiscard]] const memory::Memory& memory() const { return *memory_; }

private:
    struct OnDevice {
        std::optional<Registered> extents; // none: under way
        std::vector<Done<const Registered*>> waiters;
    };

    [[nodiscard]] int session_access(const verbs::Device& device) const;
    void submit(RegistrationJob job, Done<Registered> done);
    void registered(const std::weak_ptr<OnDevice>& where, const std::string& device,
                    Result<Registered> result);

    Registrar& registrar_;
    std::shared_ptr<memory::Memory> memory_; // shared with registrations under way
    std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
    std::size_t jobs_ = 0; // under way
    std::vector<std::function<void()>> idle_waiters_;
    // By device; watched by registrations under way, since the device may go, and come again.
    std::map<std::string, std::shared_ptr<OnDevice>> registrations_;
};

class ExportRegistry {
public:
    using Map = std::map<std::string, std::unique_ptr<ExportEntry>, std::less<>>;

    // Whether it could be added, but for its memory.
    Result<void> check(const ExportSpec& spec, std::uint32_t exports_max) const;
    Result<ExportEntry*> add(const ExportSpec& spec, memory::Memory memory, Registrar& registrar,
                             std::uint32_t exports_max);
    void erase(const std::string& name) { entries_.erase(name); }
    // Null when there is none, or it is being removed.
    [[nodiscard]] ExportEntry* find(std::string_view name) const;
    // As find(). ENOENT, or EISDIR for a name that exports lie below.
    Result<ExportEntry*> require(const std::string& name) const;
    [[nodiscard]] const Map& entries() const { return entries_; }

private:
    Map entries_;
};

} // namespace smc
