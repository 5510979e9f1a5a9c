// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "proc_scan.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

namespace smc::ctl {
namespace {

namespace fs = std::filesystem;

template <class F>
void for_each_line(std::string_view text, F&& take)
{
    while (!text.empty()) {
        size_t end = std::min(text.find('\n'), text.size());
        take(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

// The next word; rest begins behind it.
std::string_view next_word(std::string_view& rest)
{
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
    rest.remove_prefix(word.size());
    return word;
}

bool parse_number(std::string_view text, uint64_t& out, int base)
{
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string trimmed(std::string text)
{
    text.erase(text.find_last_not_of(" \n\t") + 1);
    return text;
}

std::vector<std::string> entries(const std::string& directory)
{
    std::vector<std::string> names;
    std::error_code ec;
    for (fs::directory_iterator it(directory, ec), end; !ec && it != end; it.increment(ec))
        names.push_back(it->path().filename().string());
    return names;
}

void count_open_files(const std::string& process, const std::set<std::string>& mount_ids,
                      std::map<uint64_t, ProcessUse>& uses)
{
    if (mount_ids.empty())
        return;
    const std::string directory = process + "/fdinfo/";
    for (const auto& fd : entries(directory)) {
        std::string mount_id;
        uint64_t inode = 0;
        for_each_line(read_small_file(directory + fd), [&](std::string_view line) {
            std::string_view key = next_word(line);
            if (key == "mnt_id:")
                mount_id = next_word(line);
            else if (key == "ino:")
                parse_number(next_word(line), inode, 10);
        });
        if (inode != 0 && mount_ids.count(mount_id) != 0)
            uses[inode].open_files++;
    }
}

// The thread that waits for smcfs, if one does, else the first.
ProcessUse wait_state(const std::string& process)
{
    ProcessUse found;
    const std::string tasks = process + "/task/";
    for (const auto& task : entries(tasks)) {
        const std::string directory = tasks + task;
        char state = parse_stat_state(read_small_file(directory + "/stat"));
        std::string wchan = trimmed(read_small_file(directory + "/wchan"));
        if (wchan == "0")
            wchan.clear();
        bool waits = is_smcfs_wait(state, wchan);
        if (found.state == '?' || (waits && !found.waiting)) {
            found.state = state;
            found.wchan = wchan;
            found.waiting = waits;
        }
    }
    return found;
}

// Mount tables, read once per mount namespace.
class MountCache {
public:
    const SmcfsMounts& of(const std::string& process)
    {
        std::error_code ec;
        std::string ns = fs::read_symlink(process + "/ns/mnt", ec).string();
        if (ec)
            ns = process; // not readable: on its own
        auto [at, is_new] = tables_.try_emplace(ns);
        if (is_new)
            at->second = parse_mountinfo(read_small_file(process + "/mountinfo"));
        return at->second;
    }

private:
    std::map<std::string, SmcfsMounts> tables_;
};

void scan_process(const std::string& process, pid_t pid, MountCache& mounts,
                  std::vector<ProcessUse>& out)
{
    const SmcfsMounts& table = mounts.of(process);
    std::map<uint64_t, ProcessUse> uses; // by inode
    if (!table.devices.empty()) {
        for (const auto& mapped : parse_maps(read_small_file(process + "/maps"), table.devices))
            uses[mapped.inode].mapped_bytes = mapped.bytes;
        count_open_files(process, table.ids, uses);
    }
    ProcessUse wait = wait_state(process);
    if (uses.empty() && wait.wchan.starts_with("smcfs_"))
        uses[0]; // in open or stat of a region that is being bound
    for (auto& [inode, use] : uses) {
        use.pid = pid;
        use.command = trimmed(read_small_file(process + "/comm"));
        use.region_id = inode;
        use.state = wait.state;
        use.wchan = wait.wchan;
        use.waiting = wait.waiting;
        out.push_back(use);
    }
}

} // namespace

std::string read_small_file(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

SmcfsMounts parse_mountinfo(std::string_view text)
{
    SmcfsMounts mounts;
    for_each_line(text, [&](std::string_view line) {
        // id parent major:minor root point options [optional...] - type source options
        std::string id(next_word(line));
        next_word(line);
        std::string device(next_word(line));
        next_word(line);
        std::string point(next_word(line));
        size_t dash = line.find(" - ");
        if (dash == std::string_view::npos)
            return;
        line.remove_prefix(dash + 3);
        if (next_word(line) != "smcfs")
            return;
        mounts.ids.insert(id);
        mounts.devices.insert(device);
        mounts.points.insert(point);
    });
    return mounts;
}

std::vector<MappedBytes> parse_maps(std::string_view text, const std::set<std::string>& devices)
{
    // begin-end permissions offset major:minor inode path; the numbers of the device are hexadecimal
    // here, decimal in mountinfo.
    std::map<uint64_t, uint64_t> bytes;
    for_each_line(text, [&](std::string_view line) {
        std::string_view range = next_word(line);
        next_word(line);
        next_word(line);
        std::string_view device = next_word(line);
        std::string_view inode_text = next_word(line);
        size_t dash = range.find('-');
        size_t colon = device.find(':');
        uint64_t begin = 0;
        uint64_t end = 0;
        uint64_t major = 0;
        uint64_t minor = 0;
        uint64_t inode = 0;
        if (dash == std::string_view::npos || colon == std::string_view::npos ||
            !parse_number(range.substr(0, dash), begin, 16) ||
            !parse_number(range.substr(dash + 1), end, 16) ||
            !parse_number(device.substr(0, colon), major, 16) ||
            !parse_number(device.substr(colon + 1), minor, 16) ||
            !parse_number(inode_text, inode, 10) || end < begin)
            return;
        if (devices.count(std::to_string(major) + ":" + std::to_string(minor)) != 0)
            bytes[inode] += end - begin;
    });
    std::vector<MappedBytes> mapped;
    mapped.reserve(bytes.size());
    for (auto [inode, sum] : bytes)
        mapped.push_back({inode, sum});
    return mapped;
}

char parse_stat_state(std::string_view text)
{
    size_t close = text.rfind(')');
    return close != std::string_view::npos && close + 2 < text.size() ? text[close + 2] : '?';
}

bool is_smcfs_wait(char state, std::string_view wchan)
{
    if (wchan.starts_with("smcfs_"))
        return true;
    // Faults and write-back wait in the core, on the page that is in flight; killable, shown as D.
    return state == 'D' && (wchan.empty() || wchan.find("folio") != std::string_view::npos ||
                            wchan.find("filemap") != std::string_view::npos ||
                            wchan.find("wait_on_page") != std::string_view::npos);
}

std::vector<ProcessUse> scan_processes(const std::string& proc)
{
    std::vector<pid_t> pids;
    for (const auto& name : entries(proc)) {
        uint64_t pid = 0;
        if (parse_number(name, pid, 10))
            pids.push_back(static_cast<pid_t>(pid));
    }
    std::sort(pids.begin(), pids.end());
    MountCache mounts;
    std::vector<ProcessUse> uses;
    for (pid_t pid : pids)
        scan_process(proc + "/" + std::to_string(pid), pid, mounts, uses);
    return uses;
}

} // namespace smc::ctl
