// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "verbs/device.hpp"

#include <fcntl.h>

#include <string_view>

#include "core/log.hpp"

namespace smc::verbs {
namespace {

// Events taken per wake-up, so that a storm on one device does not starve the loop.
constexpr int kEventsPerWakeup = 64;

using DeviceList = std::unique_ptr<ibv_device*[], decltype(&ibv_free_device_list)>;

DeviceList list_devices(int& count)
{
    count = 0;
    return {ibv_get_device_list(&count), &ibv_free_device_list};
}

Result<void> set_nonblocking(int fd)
{
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return fail_errno(errno, "fcntl O_NONBLOCK");
    return {};
}

} // namespace

bool has_windows(const ibv_device_attr& attributes)
{
    return attributes.max_mw > 0 &&
           (attributes.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0;
}

std::vector<std::string> device_names()
{
    int count = 0;
    const auto devices = list_devices(count);
    std::vector<std::string> names;
    names.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; i++)
        names.emplace_back(ibv_get_device_name(devices[i]));
    return names;
}

Result<std::unique_ptr<Device>> Device::open(EventLoop& loop, const std::string& name,
                                             bool use_windows, DeviceEvents events)
{
    std::unique_ptr<Device> device(new Device(name, std::move(events)));
    SMC_TRY(device->init(loop, use_windows));
    return device;
}

Result<void> Device::init(EventLoop& loop, bool use_windows)
{
    int count = 0;
    const auto devices = list_devices(count);
    for (int i = 0; i < count && !context_; i++) {
        if (name_ != ibv_get_device_name(devices[i]))
            continue;
        context_.reset(ibv_open_device(devices[i]));
        if (!context_)
            return fail_errno(errno, "cannot open RDMA device " + name_);
    }
    if (!context_)
        return fail(ENODEV, "no RDMA device is called " + name_ + ", see: rdma link");

    if (const int error = ibv_query_device(context_.get(), &attributes_); error != 0)
        return fail_errno(error, "cannot query RDMA device " + name_);
    windows_ = use_windows && has_windows(attributes_);

    pd_.reset(ibv_alloc_pd(context_.get()));
    if (!pd_)
        return fail_errno(errno, "ibv_alloc_pd on " + name_);
    channel_.reset(ibv_create_comp_channel(context_.get()));
    if (!channel_)
        return fail_errno(errno, "ibv_create_comp_channel on " + name_);

    SMC_TRY(set_nonblocking(channel_->fd));
    SMC_TRY(set_nonblocking(context_->async_fd));
    completion_source_ =
        SMC_TRY(loop.add_fd(channel_->fd, EPOLLIN, [this](std::uint32_t) { drain_completions(); }));
    async_source_ =
        SMC_TRY(loop.add_fd(context_->async_fd, EPOLLIN, [this](std::uint32_t) { drain_async(); }));
    return {};
}

Result<Pd> Device::make_pd() const
{
    Pd pd(ibv_alloc_pd(context_.get()));
    if (!pd)
        return fail_errno(errno, "ibv_alloc_pd on " + name_);
    return pd;
}

void Device::drain_completions()
{
    for (int i = 0; i < kEventsPerWakeup; i++) {
        ibv_cq* cq = nullptr;
        void* context = nullptr;
        if (ibv_get_cq_event(channel_.get(), &cq, &context) != 0)
            return; // drained, or the device is gone, which the other descriptor says
        // First, since the CQ may be destroyed below, which waits for this.
        ibv_ack_cq_events(cq, 1);
        static_cast<Completions*>(context)->completed();
    }
}

void Device::drain_async()
{
    for (int i = 0; i < kEventsPerWakeup && !removed_; i++) {
        ibv_async_event event{};
        if (ibv_get_async_event(context_.get(), &event) != 0) {
            if (errno != EAGAIN && errno != EINTR) {
                log::warn("rdma device {}: no more events: {}", name_, std::strerror(errno));
                event.event_type = IBV_EVENT_DEVICE_FATAL;
                handle_async(event);
            }
            return;
        }
        // Destroying a QP waits until its events are acknowledged: take what is needed, then do so.
        const ibv_async_event copy = event;
        ibv_ack_async_event(&event);
        event = copy;
        handle_async(event);
    }
}

void Device::handle_async(ibv_async_event& event)
{
    const char* what = ibv_event_type_str(event.event_type);
    switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        if (event.element.qp->qp_context != nullptr)
            static_cast<Completions*>(event.element.qp->qp_context)->failed(what);
        break;
    case IBV_EVENT_CQ_ERR:
        static_cast<Completions*>(event.element.cq->cq_context)->failed(what);
        break;
    case IBV_EVENT_DEVICE_FATAL:
        removed_ = true;
        async_source_.reset(); // the descriptor stays readable
        completion_source_.reset();
        if (events_.removed)
            events_.removed(name_);
        break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
        log::info("rdma device {} port {}: {}", name_, event.element.port_num, what);
        break;
    default:
        log::debug("rdma device {}: {}", name_, what);
        break;
    }
}

} // namespace smc::verbs
