// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target/target.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "target/target_impl.hpp"
#include "verbs/address.hpp"

namespace smc {
namespace {

constexpr std::uint64_t kProbeMemoryLength = 1 << 20;
// Lines about refused connections: anybody on the network can cause them.
constexpr unsigned kRejectLogBurst = 10;
constexpr Milliseconds kRejectLogInterval{10000};

} // namespace

Target::Impl::Impl(EventLoop& loop, TargetOptions options, TargetEvents& events)
    : loop_(loop), options_(std::move(options)), events_(events), registrar_(loop),
      reject_log_(kRejectLogBurst, kRejectLogInterval)
{}

Target::Impl::~Impl()
{
    alive_.reset();
    sessions_.clear();
    for (const auto& [name, entry] : exports_.entries())
        entry->cancel();
}

Result<void> Target::Impl::start()
{
    for (const auto& text : options_.addresses)
        SMC_TRY(verbs::parse_address(text, options_.port));
    HostMemory probe;
    probe.length_bytes = kProbeMemoryLength;
    probe_memory_.emplace(SMC_TRY(memory::Memory::host(probe)));
    if (auto listening = listen(); !listening)
        log::warn("no RDMA: {}", listening.error().what);
    for (const auto& name : verbs::device_names()) {
        if (!serves(name))
            continue;
        if (auto opened = device(name); !opened)
            log::warn("{}", opened.error().what);
    }
    return {};
}

Result<void> Target::Impl::listen()
{
    if (!listener_)
        listener_ =
            SMC_TRY(Listener::create(loop_, options_.port, [this](IncomingConnection incoming) {
                on_connect(std::move(incoming));
            }));
    return {};
}

bool Target::Impl::serves(const std::string& device) const
{
    const auto& wanted = options_.devices;
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), device) != wanted.end();
}

Result<ExportEntry::Device> Target::Impl::device(const std::string& name)
{
    auto& slot = devices_[name];
    if (!slot) {
        verbs::DeviceEvents events;
        events.removed = [this](const std::string& gone) {
            defer([this, gone] { device_removed(gone); });
        };
        auto opened = verbs::Device::open(loop_, name, options_.windows, std::move(events));
        if (!opened) {
            devices_.erase(name);
            return tl::unexpected(std::move(opened).error());
        }
        slot = std::move(*opened);
        log::info("serving on rdma device {}, keys are {}", name,
                  slot->windows() ? "memory windows" : "registrations");
    }
    return slot;
}

void Target::Impl::device_removed(const std::string& name)
{
    const auto found = devices_.find(name);
    if (found == devices_.end())
        return;
    log::warn("rdma device {} is gone", name);
    std::vector<Session*> on_device; // losing a probe session erases it
    for (auto& [id, session] : sessions_)
        if (session->device() == name)
            on_device.push_back(session.get());
    for (auto* session : on_device)
        lose(*session, "RDMA device " + name + " was removed");
    for (const auto& [export_name, entry] : exports_.entries())
        entry->forget_device(*found->second);
    devices_.erase(found);
}

Result<std::vector<std::string>> Target::Impl::offered_addresses()
{
    SMC_TRY(listen());
    if (!options_.addresses.empty())
        return options_.addresses;
    const auto addresses = SMC_TRY(verbs::local_addresses());
    std::vector<std::string> texts;
    for (const auto& address : addresses)
        if (serves(address.device))
            texts.push_back(address.text);
    if (texts.empty())
        return fail(ENODEV, "no RDMA device of this node has an IP address, see: rdma link; ip "
                            "address; smcctl doctor");
    return texts;
}

std::vector<RdmaPortInfo> Target::Impl::rdma_ports() const
{
    auto addresses = verbs::local_addresses();
    if (!addresses)
        log::debug("{}", addresses.error().what);
    return verbs::port_infos(addresses.value_or(std::vector<verbs::RdmaAddress>{}));
}

void Target::Impl::defer(std::function<void()> callback)
{
    loop_.defer([alive = std::weak_ptr<int>(alive_), callback = std::move(callback)] {
        if (!alive.expired())
            callback();
    });
}

// --- the class itself ----------------------------------------------------------------------------

Target::Target(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Target::~Target() = default;

Result<std::unique_ptr<Target>> Target::create(EventLoop& loop, TargetOptions options,
                                               TargetEvents& events)
{
    auto impl = std::make_unique<Impl>(loop, std::move(options), events);
    SMC_TRY(impl->start());
    return std::unique_ptr<Target>(new Target(std::move(impl)));
}

std::vector<RdmaPortInfo> Target::rdma_ports() const
{
    return impl_->rdma_ports();
}

} // namespace smc
