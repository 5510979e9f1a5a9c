// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "trace_events.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace smc::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "smcctl-"; // of instances; the process follows
constexpr const char* kBufferKb = "4096";       // of each processor: some 50,000 events
constexpr std::array<std::string_view, 2> kEvents{"smcfs_store", "smcfs_fetch"};

// The number behind key and a blank; the text goes on behind it.
bool take_number(std::string_view& text, std::string_view key, uint64_t& out)
{
    const size_t at = text.find(key);
    if (at == std::string_view::npos)
        return false;
    text.remove_prefix(at + key.size());
    const bool hex = text.starts_with("0x");
    if (hex)
        text.remove_prefix(2);
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), out, hex ? 16 : 10);
    if (error != std::errc())
        return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
}

// "        command-123     [000] ...". A command may hold blanks, dashes and brackets.
bool take_thread(std::string_view before, TraceEvent& event)
{
    const size_t bracket = before.rfind(" [");
    if (bracket == std::string_view::npos)
        return false;
    before = before.substr(0, bracket);
    before = before.substr(0, before.find_last_not_of(' ') + 1);
    const size_t dash = before.rfind('-');
    if (dash == std::string_view::npos)
        return false;
    const std::string_view number = before.substr(dash + 1);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), event.tid);
    if (error != std::errc() || end != number.data() + number.size())
        return false;
    const std::string_view command = before.substr(0, dash);
    const size_t begin = command.find_first_not_of(' ');
    event.command = begin == std::string_view::npos ? "" : std::string(command.substr(begin));
    return true;
}

Result<void> write_file(const std::string& path, std::string_view text)
{
    const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file)
        return fail_errno(errno, path);
    if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return fail_errno(errno, path);
    return {};
}

// Whose process is gone.
void remove_left_over(const std::string& instances)
{
    std::error_code ec;
    for (fs::directory_iterator it(instances, ec), end; !ec && it != end; it.increment(ec)) {
        const std::string name = it->path().filename();
        pid_t pid = 0;
        if (!name.starts_with(kPrefix))
            continue;
        const char* last = name.data() + name.size();
        const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), last, pid);
        if (error == std::errc() && stop == last && ::kill(pid, 0) < 0 && errno == ESRCH)
            ::rmdir(it->path().c_str());
    }
}

} // namespace

std::optional<TraceEvent> parse_trace_line(std::string_view line)
{
    TraceEvent event;
    uint64_t number = 0;
    for (const std::string_view name : kEvents) {
        const std::string mark = ": " + std::string(name) + ": region ";
        const size_t at = line.rfind(mark);
        if (at == std::string_view::npos)
            continue;
        event.kind = name == kEvents[0] ? TraceEvent::Kind::store : TraceEvent::Kind::fetch;
        const std::string_view before = line.substr(0, at);
        std::string_view rest = line.substr(at);
        if (!take_thread(before, event) || !take_number(rest, "region ", event.region_id) ||
            !take_number(rest, "pos ", event.pos) || !take_number(rest, "bytes ", event.bytes))
            return std::nullopt;
        event.pid = event.tid;
        if (event.kind == TraceEvent::Kind::fetch)
            return event;
        if (!take_number(rest, "tgid ", number))
            return std::nullopt;
        event.pid = static_cast<pid_t>(number);
        if (!take_number(rest, "mapped ", number))
            return std::nullopt;
        event.mapped = number != 0;
        if (!take_number(rest, "first ", number))
            return std::nullopt;
        event.first = number != 0;
        return event;
    }
    return std::nullopt;
}

std::optional<uint64_t> parse_lost_line(std::string_view line)
{
    uint64_t lost = 0;
    if (line.starts_with("CPU:") && line.find(" EVENTS]") != std::string_view::npos &&
        take_number(line, "[LOST ", lost))
        return lost;
    return std::nullopt;
}

Result<std::unique_ptr<TraceInstance>> TraceInstance::create(uint64_t region_id,
                                                             const std::string& root)
{
    const std::string instances = root + "/instances/";
    if (::access(instances.c_str(), W_OK) < 0) {
        if (errno == ENOENT)
            return fail(ENOENT, root + " is empty: run mount -t tracefs tracefs " + root);
        return fail(errno, "cannot use the kernel's trace events in " + root + ": this needs root");
    }
    remove_left_over(instances);
    std::unique_ptr<TraceInstance> instance(
        new TraceInstance(instances + std::string(kPrefix) + std::to_string(::getpid())));
    if (::mkdir(instance->path_.c_str(), 0700) < 0) {
        const int error = errno;
        instance->path_.clear();
        return fail_errno(error, "cannot make a buffer for trace events in " + instances);
    }
    SMC_TRY(instance->start(region_id));
    return instance;
}

Result<void> TraceInstance::start(uint64_t region_id)
{
    SMC_TRY(write_file(path_ + "/buffer_size_kb", kBufferKb));
    for (const std::string_view name : kEvents) {
        const std::string event = path_ + "/events/smcfs/" + std::string(name);
        if (::access(event.c_str(), F_OK) < 0)
            return fail(ENOENT, "the module smcfs has no trace event " + std::string(name) +
                                    ": module and tools are of different versions");
        if (region_id != 0)
            SMC_TRY(write_file(event + "/filter", "region_id == " + std::to_string(region_id)));
        SMC_TRY(write_file(event + "/enable", "1"));
    }
    pipe_ = Fd(::open((path_ + "/trace_pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!pipe_)
        return fail_errno(errno, path_ + "/trace_pipe");
    return {};
}

void TraceInstance::stop()
{
    // What cannot be stopped ends with the instance.
    if (!write_file(path_ + "/events/smcfs/enable", "0"))
        return;
}

TraceInstance::~TraceInstance()
{
    if (path_.empty())
        return;
    stop();
    pipe_.reset();
    ::rmdir(path_.c_str());
}

Result<void> TraceInstance::read(const std::function<void(std::string_view line)>& take)
{
    std::array<char, 65536> buffer{};
    while (true) {
        const ssize_t got = ::read(pipe_.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno != EAGAIN)
            return fail_errno(errno, "cannot read trace events");
        if (got <= 0)
            return {};
        rest_.append(buffer.data(), static_cast<size_t>(got));
        size_t begin = 0;
        for (size_t end = rest_.find('\n'); end != std::string::npos;
             end = rest_.find('\n', begin)) {
            take(std::string_view(rest_).substr(begin, end - begin));
            begin = end + 1;
        }
        rest_.erase(0, begin);
    }
}

} // namespace smc::ctl
