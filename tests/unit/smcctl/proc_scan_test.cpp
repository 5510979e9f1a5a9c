// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "proc_scan.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

using namespace smc::ctl;

namespace {

constexpr const char* kMountinfo =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "61 22 0:45 / /smc rw,nosuid,nodev shared:30 master:2 - smcfs smcfs rw\n"
    "62 22 0:46 / /other\\040place rw - tmpfs smcfs rw\n"
    "63 22 0:45 /gpu3 /mnt/bound rw - smcfs smcfs rw\n";

constexpr const char* kMaps =
    "55d0c0000000-55d0c0001000 r-xp 00000000 08:01 1234                       /usr/bin/python3\n"
    "7f0000000000-7f0040000000 rw-s 00000000 00:2d 7                          "
    "/smc/gpu3/job/params\n"
    "7f0050000000-7f0050002000 r--s 00001000 00:2d 7                          "
    "/smc/gpu3/job/params\n"
    "7f0060000000-7f0060001000 rw-s 00000000 00:2d 9                          /smc/gpu3/a b "
    "(deleted)\n"
    "7f0070000000-7f0070001000 rw-p 00000000 00:00 0 \n"
    "not a line of maps\n";

// A /proc of the test's own.
class Proc {
public:
    Proc()
    {
        char pattern[] = "/tmp/smc-test-XXXXXX";
        REQUIRE(mkdtemp(pattern) != nullptr);
        root_ = pattern;
    }
    Proc(const Proc&) = delete;
    Proc& operator=(const Proc&) = delete;
    ~Proc() { std::filesystem::remove_all(root_); }

    void write(const std::string& path, const std::string& text) const
    {
        std::filesystem::path file = root_ + "/" + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    void add_process(const std::string& pid, const std::string& comm, char state,
                     const std::string& wchan) const
    {
        write(pid + "/comm", comm + "\n");
        write(pid + "/mountinfo", kMountinfo);
        write(pid + "/maps", "");
        write(pid + "/task/" + pid + "/stat", pid + " (" + comm + ") " + state + " 1 1 1");
        write(pid + "/task/" + pid + "/wchan", wchan);
    }
    [[nodiscard]] const std::string& root() const { return root_; }

private:
    std::string root_;
};

} // namespace

TEST_CASE("mounts of smcfs are found by type, not by name", "[proc]")
{
    SmcfsMounts mounts = parse_mountinfo(kMountinfo);
    CHECK(mounts.devices == std::set<std::string>{"0:45"});
    CHECK(mounts.ids == std::set<std::string>{"61", "63"});
    CHECK(mounts.points == std::set<std::string>{"/smc", "/mnt/bound"});
    CHECK(parse_mountinfo("").devices.empty());
    CHECK(parse_mountinfo("61 22 0:45 / /smc rw").devices.empty());
}

TEST_CASE("mappings of regions are summed by inode", "[proc]")
{
    auto mapped = parse_maps(kMaps, {"0:45"});
    REQUIRE(mapped.size() == 2);
    CHECK(mapped[0].inode == 7);
    CHECK(mapped[0].bytes == 0x40000000 + 0x2000);
    CHECK(mapped[1].inode == 9);
    CHECK(mapped[1].bytes == 0x1000);
    CHECK(parse_maps(kMaps, {}).empty());
}

TEST_CASE("a command cannot pass for a state", "[proc]")
{
    CHECK(parse_stat_state("12 (python3) S 1 12") == 'S');
    CHECK(parse_stat_state("12 (a) R (b) D 1 12") == 'D');
    CHECK(parse_stat_state("12 (never closed") == '?');
    CHECK(parse_stat_state("") == '?');
}

TEST_CASE("a wait for a page counts, other waits do not", "[proc]")
{
    CHECK(is_smcfs_wait('S', "smcfs_region_wait"));
    CHECK(is_smcfs_wait('D', "folio_wait_bit_common"));
    CHECK(is_smcfs_wait('D', "__folio_lock_killable"));
    CHECK_FALSE(is_smcfs_wait('S', "folio_wait_bit_common"));
    CHECK_FALSE(is_smcfs_wait('S', "do_poll.constprop.0"));
    CHECK_FALSE(is_smcfs_wait('D', "jbd2_log_wait_commit"));
    CHECK_FALSE(is_smcfs_wait('R', ""));
}

TEST_CASE("processes are told with what they map, hold open and wait for", "[proc]")
{
    Proc proc;
    proc.add_process("20", "idle", 'S', "do_poll");
    proc.add_process("100", "train (x) R", 'S', "do_poll");
    proc.write("100/maps", kMaps);
    proc.write("100/fdinfo/3", "pos:\t0\nflags:\t0100002\nmnt_id:\t61\nino:\t7\n");
    proc.write("100/fdinfo/4", "pos:\t0\nflags:\t0100002\nmnt_id:\t22\nino:\t7\n");
    proc.write("100/task/101/stat", "101 (train) D 1");
    proc.write("100/task/101/wchan", "folio_wait_bit_common");
    proc.add_process("30", "ls", 'D', "smcfs_region_wait_bound");
    proc.write("self/comm", "not a pid");

    auto uses = scan_processes(proc.root());
    REQUIRE(uses.size() == 3);
    CHECK(uses[0].pid == 30);
    CHECK(uses[0].region_id == 0);
    CHECK(uses[0].waiting);
    CHECK(uses[1].pid == 100);
    CHECK(uses[1].command == "train (x) R");
    CHECK(uses[1].region_id == 7);
    CHECK(uses[1].mapped_bytes == 0x40002000);
    CHECK(uses[1].open_files == 1);
    CHECK(uses[1].state == 'D');
    CHECK(uses[1].wchan == "folio_wait_bit_common");
    CHECK(uses[2].region_id == 9);
    CHECK(uses[2].open_files == 0);
}

TEST_CASE("the real /proc can be scanned, whoever comes and goes", "[proc]")
{
    for (const auto& use : scan_processes())
        CHECK(use.pid > 0);
    CHECK(scan_processes("/nonexistent").empty());
}
