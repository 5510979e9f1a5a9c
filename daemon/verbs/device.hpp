// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// An RDMA device of this node, opened.
//
// Owns: context, the protection domain that memory is registered in once, the completion channel,
// and the two descriptors' places in the event loop.
// Contexts: the event loop's thread.
// Lifetime: outlives all that was made on it. When the device goes away on_removed runs, once, from
// the loop; the owner then destroys everything on the device, and at last the Device: until then the
// kernel may wait with the removal.
// Failure: errors of a QP are handed to it as Completions::failed().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "event_loop.hpp"
#include "verbs/handles.hpp"

namespace smc::verbs {

// What the contexts of QPs and CQs on a Device point to. It may be destroyed in its own callback.
class Completions {
public:
    virtual ~Completions() = default;
    virtual void completed() = 0;                // there may be something in the CQ
    virtual void failed(const char* reason) = 0; // the QP is in error
};

struct DeviceEvents {
    std::function<void(const std::string& device)> removed;
};

class Device {
public:
    static Result<std::unique_ptr<Device>> open(EventLoop& loop, const std::string& name,
                                                bool use_windows, DeviceEvents events);

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] ibv_context* context() const { return context_.get(); }
    [[nodiscard]] ibv_pd* pd() const { return pd_.get(); }
    [[nodiscard]] ibv_comp_channel* channel() const { return channel_.get(); }
    [[nodiscard]] const ibv_device_attr& attributes() const { return attributes_; }
    // Keys are type 2B memory windows; else registrations of their own.
    [[nodiscard]] bool windows() const { return windows_; }
    // RDMA atomics on 8 bytes, as one step for all atomics that this device does.
    [[nodiscard]] bool atomics() const { return attributes_.atomic_cap != IBV_ATOMIC_NONE; }
    // A protection domain of its own, for one session.
    Result<Pd> make_pd() const;

private:
    Device(std::string name, DeviceEvents events)
        : name_(std::move(name)), events_(std::move(events))
    {}
    Result<void> init(EventLoop& loop, bool use_windows);
    void drain_completions();
    void drain_async();
    void handle_async(ibv_async_event& event);

    std::string name_;
    DeviceEvents events_;
    Context context_;
    ibv_device_attr attributes_{};
    bool windows_ = false;
    bool removed_ = false;
    Pd pd_;
    CompChannel channel_;
    EventLoop::Source completion_source_;
    EventLoop::Source async_source_;
};

// Names of all devices of this node.
std::vector<std::string> device_names();
// Whether it can do type 2B memory windows.
bool has_windows(const ibv_device_attr& attributes);

} // namespace smc::verbs
