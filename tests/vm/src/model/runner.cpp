// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "runner.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

namespace smc::test {

namespace {

// A command that should have been done so often, and never was, means that the test has a hole.
constexpr std::uint64_t kMissedAt = 10;
constexpr std::uint64_t kFullCompareEvery = 400; // barriers
constexpr std::uint64_t kProgressEvery = 5000;   // commands
constexpr std::size_t kHistoryMax = 1 << 16;
constexpr std::size_t kReportMax = 24;
constexpr std::uint64_t kScratchBytesMax = 16 << 20;
// Of one question to the target and one read of the whole region: what the model needs by itself is no more
// in a large region than in a small one.
constexpr std::uint64_t kPieceBytesMax = 256 << 10;

std::uint64_t size_of(const std::string& path)
{
    Fd fd{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    struct stat st {};
    if (!fd || fstat(fd.get(), &st) < 0)
        die(path, errno);
    if (!S_ISBLK(st.st_mode))
        return static_cast<std::uint64_t>(st.st_size);
    std::uint64_t size = 0;
    if (ioctl(fd.get(), BLKGETSIZE64, &size) < 0)
        die("size of " + path, errno);
    return size;
}

// Empty, or what went wrong.
std::string write_knob(const char* path, std::string_view value)
{
    Fd fd{open(path, O_WRONLY | O_CLOEXEC)};
    if (fd && write(fd.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size()))
        return {};
    return std::string(path) + ": " + std::strerror(errno);
}

// Which bytes of the region a command makes dirty; length 0: none.
Range written_range(const Command& c, std::uint64_t size)
{
    switch (c.op) {
    case Op::kStore:
    case Op::kPwrite:
    case Op::kForkStore:
    case Op::kMprotect:
    case Op::kPopulateWrite:
    case Op::kSelfCopy:
    case Op::kVmWrite:
    case Op::kKill:
    case Op::kDirectIn:
    case Op::kDirectWrite:
        return c.range;
    case Op::kPastEnd:
        return {size - 1, 1};
    default:
        return {0, 0};
    }
}

} // namespace

Runner::Runner(const Options& options) : options_(options)
{
    target_ = open_target(options_.target);
    std::uint64_t size = size_of(options_.paths.region);
    if (size < 16 * kPageBytes)
        die(options_.paths.region + " is smaller than 64 KiB");
    if (target_->size() != size)
        die("the region has " + std::to_string(size) + " bytes, the target's memory " +
            std::to_string(target_->size()));
    std::uint64_t scratch = 0;
    if (options_.abilities.scratch)
        scratch = page_down(std::min(size_of(options_.paths.scratch), kScratchBytesMax));
    if (options_.abilities.scratch && scratch < kPageBytes)
        die(options_.paths.scratch + " is too small");
    shadow_ = std::make_unique<Shadow>(size, scratch);
    plan_ = std::make_unique<Plan>(options_.seed, options_.abilities, size, scratch);
    read_initial_content();
    history_.resize(kHistoryMax);
    history_.clear();
    companion_ = std::make_unique<Companion>(*shadow_, options_.paths);
    companion_->start(nullptr);
    agent_ = std::make_unique<Agent>(*shadow_, options_.paths);
}

// The target's memory is given new content, so that a region which shows nothing cannot pass.
void Runner::read_initial_content()
{
    Range whole{0, shadow_->size()};
    fill(shadow_->remote(), mix(options_.seed), whole);
    target_->write(0, {shadow_->remote(), whole.length});
    std::memcpy(shadow_->expected(), shadow_->remote(), whole.length);
    if (!options_.abilities.scratch)
        return;
    Fd fd{open(options_.paths.scratch.c_str(), O_RDWR | O_CLOEXEC)};
    fill(shadow_->scratch(), mix(options_.seed + 1), {0, shadow_->scratch_size()});
    if (!fd ||
        pwrite(fd.get(), shadow_->scratch(), shadow_->scratch_size(), 0) !=
            static_cast<ssize_t>(shadow_->scratch_size()) ||
        fsync(fd.get()) < 0)
        die("cannot fill " + options_.paths.scratch, errno);
}

std::string Runner::execute(const Command& c)
{
    // Only the main process moves mappings of others about.
    bool main_only = c.op == Op::kVmRead || c.op == Op::kVmWrite;
    if (c.op == Op::kKill) {
        std::string wrong = companion_->execute(c);
        return wrong.empty() ? companion_->kill_and_restart(agent_.get()) : wrong;
    }
    if (c.actor == 1 && !main_only)
        return companion_->execute(c);
    agent_->set_peer(companion_->peer());
    return agent_->execute(c);
}

// A page that the target changed is acquired before this node writes to it.
std::string Runner::before_write(const Command& command, Range range)
{
    if (!shadow_->any(range, kStale))
        return {};
    Command acquire = command;
    acquire.op = Op::kAcquire;
    acquire.range = range;
    acquire.actor = 0;
    std::string wrong = agent_->execute(acquire);
    if (wrong.empty())
        shadow_->acquired(range);
    return wrong.empty() ? "" : "acquire before a write: " + wrong;
}

std::string Runner::target_write(const Command& c, bool& done)
{
    done = !shadow_->any(c.range, kDirty | kStale);
    if (!done)
        return {};
    if (options_.hand_over) {
        Command acquire = c;
        acquire.op = Op::kAcquire;
        std::string wrong = execute(acquire);
        if (!wrong.empty())
            return "an acquire before the target writes: " + wrong;
        update_model(acquire);
    }
    Command load = c;
    load.op = Op::kLoad;
    if (c.variant & 1) { // cached and mapped here when it changes there
        std::string wrong = execute(load);
        if (!wrong.empty())
            return wrong;
    }
    std::vector<std::uint8_t> bytes(c.range.length);
    fill(bytes.data(), c.value, c.range);
    target_->write(c.range.offset, bytes);
    shadow_->target_wrote(c.range, bytes.data());
    if (c.variant & 2) { // seen at once by whoever acquires, in either process and mapping
        Command acquire = c;
        acquire.op = c.variant & 4 ? Op::kAcquire : Op::kReopen;
        std::string wrong = execute(acquire);
        if (!wrong.empty())
            return wrong;
        update_model(acquire);
        load.actor = c.variant >> 3 & 1;
        load.view = c.variant >> 4 & 1;
        wrong = execute(load);
        return wrong.empty() ? "" : "after an acquire: " + wrong;
    }
    return {};
}

std::string Runner::system_knob(const Command& c)
{
    if (c.op == Op::kCompact)
        return write_knob("/proc/sys/vm/compact_memory", "1");
    // Page cache, names and inodes (3), without a line in the log (4 turns it off).
    std::string wrong = write_knob("/proc/sys/vm/drop_caches", "4");
    return wrong.empty() ? write_knob("/proc/sys/vm/drop_caches", "3") : wrong;
}

void Runner::update_model(const Command& c)
{
    Shadow& shadow = *shadow_;
    switch (c.op) {
    case Op::kStore:
    case Op::kPwrite:
    case Op::kForkStore:
    case Op::kMprotect:
    case Op::kVmWrite:
    case Op::kKill:
        fill(shadow.expected() + c.range.offset, c.value, c.range);
        break;
    case Op::kSelfCopy:
        std::memcpy(shadow.expected() + c.range.offset, shadow.expected() + c.other,
                    c.range.length);
        break;
    case Op::kDirectIn:
        std::memcpy(shadow.expected() + c.range.offset, shadow.scratch() + c.other, c.range.length);
        break;
    case Op::kDirectOut:
        std::memcpy(shadow.scratch() + c.other, shadow.expected() + c.range.offset, c.range.length);
        break;
    case Op::kDirectWrite:
        // Acknowledged when it returns; its pages are as dirty as they were before.
        fill(shadow.expected() + c.range.offset, c.value, c.range);
        shadow.acknowledged(c.range);
        return;
    case Op::kAcquire:
        shadow.acquired(c.range);
        return;
    case Op::kReopen:
    case Op::kRemapAll:
        shadow.acquired({0, shadow.size()});
        return;
    default:
        break;
    }
    if (Range range = written_range(c, shadow.size()); range.length > 0)
        shadow.written(range);
}

std::string Runner::compare_target(const std::vector<Range>& ranges)
{
    std::vector<Piece> pieces;
    std::uint64_t length = 0;
    const auto compare_pieces = [&]() -> std::string {
        auto begin = std::chrono::steady_clock::now();
        std::vector<std::vector<std::uint8_t>> all = target_->read_all(pieces);
        target_seconds_ += seconds_since(begin);
        for (std::size_t i = 0; i < pieces.size(); i++) {
            compared_bytes_ += pieces[i].length;
            std::string wrong =
                shadow_->check_remote(all[i].data(), {pieces[i].offset, pieces[i].length});
            if (!wrong.empty())
                return wrong;
        }
        pieces.clear();
        length = 0;
        return {};
    };
    for (Range range : ranges) {
        for (std::uint64_t at = range.offset; at < range.end();) {
            std::uint64_t part = std::min(range.end() - at, kPieceBytesMax - length);
            pieces.push_back({at, part});
            at += part;
            length += part;
            if (length < kPieceBytesMax)
                continue;
            if (std::string wrong = compare_pieces(); !wrong.empty())
                return wrong;
        }
    }
    return compare_pieces();
}

std::string Runner::compare_barrier(const Command& c)
{
    Range range = c.op == Op::kMsync ? c.range : Range{0, shadow_->size()};
    barriers_++;
    std::vector<Range> runs = shadow_->flushed(range);
    if (sabotage_due_ && options_.sabotage == Sabotage::kBarrier && !runs.empty()) {
        sabotage_due_ = false;
        std::uint8_t other = shadow_->remote()[runs[0].offset] ^ 0xff;
        target_->write(runs[0].offset, {&other, 1});
    }
    std::string wrong = compare_target(runs);
    if (!wrong.empty())
        return "on the target after a barrier: " + wrong;
    return barriers_ % kFullCompareEvery ? "" : compare_everything();
}

std::string Runner::compare_everything()
{
    std::string wrong = compare_target(shadow_->known_remote());
    return wrong.empty() ? "" : "on the target: " + wrong;
}

std::string Runner::step(const Command& c, bool& done)
{
    done = true;
    if (c.op == Op::kTargetWrite)
        return target_write(c, done);
    if (c.op == Op::kCompact || c.op == Op::kDropCaches)
        return system_knob(c);

    // The region's and the file's contents meet in one command: both must be known.
    std::string wrong;
    if (Range range = written_range(c, shadow_->size()); range.length > 0)
        wrong = before_write(c, range);
    if (wrong.empty() && c.op == Op::kSelfCopy)
        wrong = before_write(c, {c.other, c.range.length});
    if (wrong.empty() && c.op == Op::kDirectOut)
        wrong = before_write(c, c.range);
    if (!wrong.empty())
        return wrong;

    if (sabotage_due_ && options_.sabotage == Sabotage::kStore && c.op == Op::kStore &&
        c.actor == 0) {
        sabotage_due_ = false;
        agent_->lose_next_store();
        sabotaged_ = true;
    }
    if (sabotage_due_ && options_.sabotage == Sabotage::kClobber &&
        !shadow_->any(c.range, kDirty)) {
        sabotage_due_ = false;
        sabotaged_ = true;
        std::uint8_t other = shadow_->remote()[c.range.offset] ^ 0xff;
        target_->write(c.range.offset, {&other, 1});
    }
    wrong = execute(c);
    if (!wrong.empty())
        return wrong;
    update_model(c);
    if (c.op == Op::kMsync || c.op == Op::kFsync)
        return compare_barrier(c);
    if (c.op == Op::kDirectWrite) {
        wrong = compare_target({c.range});
        return wrong.empty() ? "" : "on the target after an O_DIRECT write: " + wrong;
    }
    if (options_.eager && (c.op == Op::kPwrite || c.op == Op::kSelfCopy)) {
        // Of the pages that it wrote to other bytes may still be owed.
        shadow_->acknowledged(c.range);
        wrong = compare_target({c.range});
        return wrong.empty() ? "" : "on the target after an eager write: " + wrong;
    }
    return {};
}

// All must be on the target after one last barrier, and be seen by a program that starts now.
std::string Runner::finish()
{
    Command last{};
    last.number = history_.size();
    last.range = {0, shadow_->size()};
    last.op = Op::kFsync;
    std::string wrong = execute(last);
    if (wrong.empty())
        wrong = compare_barrier(last);
    if (wrong.empty())
        wrong = compare_everything();
    last.op = Op::kRemapAll;
    if (wrong.empty())
        wrong = execute(last);
    shadow_->acquired(last.range);
    for (Op op : {Op::kPread, Op::kLoad}) {
        last.op = op;
        for (std::uint64_t at = 0; at < shadow_->size() && wrong.empty(); at += kPieceBytesMax) {
            last.range = {at, std::min(shadow_->size() - at, kPieceBytesMax)};
            wrong = execute(last);
        }
    }
    return wrong.empty() ? "" : "at the end: " + wrong;
}

void Runner::report(const Command& c, const std::string& wrong) const
{
    std::printf("MISMATCH seed %llu %s\n  %s\n", static_cast<unsigned long long>(options_.seed),
                describe(c).c_str(), wrong.c_str());
    // The commands that touched the page in question, oldest first.
    std::uint64_t at = c.range.offset;
    std::size_t where = wrong.find("offset ");
    if (where != std::string::npos)
        at = std::strtoull(wrong.c_str() + where + 7, nullptr, 10);
    std::vector<const Command*> touched;
    for (const Command& past : history_) {
        bool all = past.op == Op::kFsync || past.op == Op::kReopen || past.op == Op::kRemapAll ||
                   past.op == Op::kCompact || past.op == Op::kDropCaches;
        if (all || (past.range.offset < page_down(at) + kPageBytes &&
                    page_up(past.range.end()) > page_down(at)))
            touched.push_back(&past);
    }
    std::size_t skip = touched.size() > kReportMax ? touched.size() - kReportMax : 0;
    std::printf("  commands on page %s before it:\n", std::to_string(at / kPageBytes).c_str());
    for (std::size_t i = skip; i < touched.size(); i++)
        std::printf("    %s\n", describe(*touched[i]).c_str());
    std::printf("  repeat with: --seed %llu --ops %llu\n",
                static_cast<unsigned long long>(options_.seed),
                static_cast<unsigned long long>(c.number) + 1);
}

void Runner::progress(std::uint64_t done) const
{
    std::printf("model: %llu of %llu commands, %llu barriers, %llu MiB compared on the target, "
                "%.0f s\n",
                static_cast<unsigned long long>(done),
                static_cast<unsigned long long>(options_.ops),
                static_cast<unsigned long long>(barriers_),
                static_cast<unsigned long long>(compared_bytes_ >> 20), seconds_since(start_));
    std::fflush(stdout);
}

// Where the time went: a command that takes long is one that users would wait for, too.
void Runner::print_counts() const
{
    std::printf("  %-16s %9s %9s %9s\n", "command", "times", "seconds", "ms each");
    for (std::size_t i = 0; i < counts_.size(); i++)
        if (counts_[i])
            std::printf("  %-16s %9llu %9.1f %9.2f\n", op_name(static_cast<Op>(i)),
                        static_cast<unsigned long long>(counts_[i]), seconds_[i],
                        seconds_[i] * 1e3 / static_cast<double>(counts_[i]));
    std::printf("  asking the target took %.1f s of it\n", target_seconds_);
}

std::string Runner::check_counts(std::uint64_t commands) const
{
    for (std::size_t i = 0; i < counts_.size(); i++)
        if (counts_[i] == 0 && plan_->expected(static_cast<Op>(i), commands) >= kMissedAt)
            return std::string(op_name(static_cast<Op>(i))) + " was never done";
    return {};
}

int Runner::run()
{
    std::printf("model: seed %llu, region %s of %llu bytes, target %s\n",
                static_cast<unsigned long long>(options_.seed), options_.paths.region.c_str(),
                static_cast<unsigned long long>(shadow_->size()), options_.target.c_str());
    std::uint64_t number = 0;
    for (; number < options_.ops; number++) {
        if (sabotaged_) // later commands could cover it up
            break;
        if (options_.seconds_max > 0 && seconds_since(start_) > options_.seconds_max)
            break;
        if (options_.sabotage != Sabotage::kNone && number == options_.ops / 2)
            sabotage_due_ = true;
        Command command = plan_->next(number);
        if (options_.verbose)
            std::printf("%s\n", describe(command).c_str());
        auto begin = std::chrono::steady_clock::now();
        bool done = false;
        std::string wrong = step(command, done);
        seconds_[static_cast<std::size_t>(command.op)] += seconds_since(begin);
        if (!wrong.empty()) {
            report(command, wrong);
            return kRefuted;
        }
        counts_[static_cast<std::size_t>(command.op)] += done;
        if (history_.size() >= kHistoryMax)
            history_.erase(history_.begin(), history_.begin() + kHistoryMax / 2);
        history_.push_back(command);
        if ((number + 1) % kProgressEvery == 0)
            progress(number + 1);
    }
    std::string wrong = finish();
    if (!wrong.empty()) {
        report(history_.empty() ? Command{} : history_.back(), wrong);
        return kRefuted;
    }
    progress(number);
    print_counts();
    wrong = check_counts(number);
    if (!wrong.empty()) {
        std::printf("model: %s\n", wrong.c_str());
        return kUntested;
    }
    std::printf("model: passed, %llu commands, 0 mismatches\n",
                static_cast<unsigned long long>(number));
    return kPassed;
}

} // namespace smc::test
