// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "memory/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "memory/limits.hpp"
#include "memory/open_as.hpp"

using namespace smc;
using memory::Memory;

namespace {

constexpr Caller kRoot{0, 0};
constexpr Caller kNobody{65534, 65534};

class Directory {
public:
    Directory()
    {
        std::string name = "/tmp/memory-test-XXXXXX";
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path_ = name;
        std::filesystem::permissions(path_, std::filesystem::perms::all);
    }
    ~Directory() { std::filesystem::remove_all(path_); }
    std::string file(const std::string& name, std::size_t length, mode_t mode = 0600) const
    {
        auto path = path_ / name;
        std::ofstream(path) << std::string(length, 'x');
        REQUIRE(::chmod(path.c_str(), mode) == 0);
        return path;
    }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

int code(const Result<Memory>& result)
{
    return result ? 0 : result.error().code;
}

} // namespace

TEST_CASE("host memory is zero, sealed and as long as asked", "[memory]")
{
    auto memory = Memory::host({12345, false});
    REQUIRE(memory);
    CHECK(memory->size() == 12345);
    CHECK(memory->provider() == "host");
    CHECK(memory->writable());
    for (std::size_t i = 0; i < memory->size(); i++)
        if (memory->data()[i] != std::byte{0})
            FAIL("byte " << i << " is not zero");
    CHECK(::ftruncate(memory->fd(), 0) != 0);
    CHECK(::ftruncate(memory->fd(), 1 << 20) != 0);
    CHECK(::fcntl(memory->fd(), F_ADD_SEALS, F_SEAL_WRITE) != 0);
}

TEST_CASE("impossible sizes of host memory are refused by name", "[memory]")
{
    CHECK(code(Memory::host({0, false})) == EINVAL);
    CHECK(code(Memory::host({SMCFS_REGION_SIZE_MAX + 1, false})) == EFBIG);
    const auto much = Memory::host({SMCFS_REGION_SIZE_MAX, false});
    REQUIRE_FALSE(much);
    CHECK(much.error().code == ENOMEM);
    CHECK(much.error().what.find("available") != std::string::npos);
}

TEST_CASE("a file is exported whole or in part, never beyond its end", "[memory]")
{
    const Directory directory;
    const auto path = directory.file("f", 10000);
    const auto size = [&](std::uint64_t offset, std::uint64_t length) {
        const auto memory = Memory::file({path, offset, length}, kRoot, false);
        return memory ? static_cast<long>(memory->size()) : -memory.error().code;
    };
    CHECK(size(0, 0) == 10000);
    CHECK(size(1, 0) == 9999);
    CHECK(size(4096, 100) == 100);
    CHECK(size(0, 10000) == 10000);
    CHECK(size(0, 10001) == -EINVAL);
    CHECK(size(1, 10000) == -EINVAL);
    CHECK(size(10000, 0) == -EINVAL); // zero bytes
    CHECK(size(10001, 0) == -EINVAL);
    CHECK(size(UINT64_MAX, 2) == -EINVAL);
    CHECK(size(1, UINT64_MAX) == -EINVAL);
}

TEST_CASE("only regular files are exported, and the error names the path", "[memory]")
{
    const Directory directory;
    const auto fifo = directory.path() / "fifo";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    const std::vector<std::string> paths{fifo, directory.path(), "/dev/null", "/dev/zero"};
    for (const auto& path : paths) {
        CAPTURE(path);
        const auto memory = Memory::file({path, 0, 4096}, kRoot, false);
        REQUIRE_FALSE(memory);
        CHECK(memory.error().code == EINVAL);
        CHECK(memory.error().what.find(path) != std::string::npos);
    }
    CHECK(code(Memory::file({directory.path() / "absent", 0, 0}, kRoot, false)) == ENOENT);
    CHECK(code(Memory::file({"relative", 0, 0}, kRoot, false)) == EINVAL);
    CHECK(code(Memory::file({"", 0, 0}, kRoot, false)) == EINVAL);
    CHECK(code(Memory::file({directory.file("empty", 0), 0, 0}, kRoot, false)) == EINVAL);
}

TEST_CASE("the rights of the caller decide, not those of the daemon", "[memory]")
{
    if (::geteuid() != 0) {
        WARN("not run: needs root");
        return;
    }
    const Directory directory;
    const auto secret = directory.file("secret", 100, 0600);
    const auto readable = directory.file("readable", 100, 0644);
    CHECK(code(Memory::file({secret, 0, 0}, kRoot, false)) == 0);
    CHECK(code(Memory::file({secret, 0, 0}, kNobody, false)) == EACCES);
    CHECK(code(Memory::file({secret, 0, 0}, kNobody, true)) == EACCES);
    CHECK(code(Memory::file({readable, 0, 0}, kNobody, false)) == EACCES);
    CHECK(code(Memory::file({readable, 0, 0}, kNobody, true)) == 0);
    const auto refused = memory::open_as(kNobody, secret, O_RDONLY);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what.find("uid 65534") != std::string::npos);

    // Its group counts, and its own ownership.
    REQUIRE(::chown(secret.c_str(), 0, kNobody.gid) == 0);
    REQUIRE(::chmod(secret.c_str(), 0660) == 0);
    CHECK(code(Memory::file({secret, 0, 0}, kNobody, false)) == 0);
    REQUIRE(::chown(secret.c_str(), kNobody.uid, 0) == 0);
    REQUIRE(::chmod(secret.c_str(), 0600) == 0);
    CHECK(code(Memory::file({secret, 0, 0}, kNobody, false)) == 0);
    // And this thread is still the daemon's.
    CHECK(::access("/etc/shadow", R_OK) == 0);
    CHECK(memory::open_as(kRoot, "/etc/shadow", O_RDONLY));
}

TEST_CASE("memory of a read-only export is mapped for writing only where that is harmless",
          "[memory]")
{
    const Directory directory;
    const auto on_disk = Memory::file({directory.file("f", 100), 0, 0}, kRoot, true);
    REQUIRE(on_disk);
    Fd shared(::memfd_create("test", MFD_CLOEXEC));
    REQUIRE(::ftruncate(shared.get(), 100) == 0);
    const auto in_memory = Memory::descriptor({std::move(shared), 0, 0}, true);
    REQUIRE(in_memory);
    CHECK(in_memory->writable());
    CHECK(in_memory->provider() == "fd");
}

TEST_CASE("a passed descriptor must allow what the export needs", "[memory]")
{
    const Directory directory;
    const auto path = directory.file("f", 100);
    const auto with = [&](int flags, bool readonly) {
        return code(Memory::descriptor({Fd(::open(path.c_str(), flags)), 0, 0}, readonly));
    };
    CHECK(with(O_RDWR, false) == 0);
    CHECK(with(O_RDWR, true) == 0);
    CHECK(with(O_RDONLY, true) == 0);
    CHECK(with(O_RDONLY, false) == EACCES);
    CHECK(with(O_WRONLY, false) == EACCES);
    CHECK(with(O_PATH, true) == EACCES);
    CHECK(code(Memory::descriptor({Fd(), 0, 0}, true)) == EBADF);
    CHECK(code(Memory::descriptor({Fd(::open("/dev/null", O_RDWR)), 0, 4096}, false)) == EINVAL);
}

TEST_CASE("a field of the kernel's tables is found whole or not at all", "[memory]")
{
    const char* text = "VmPinned:\t 7 kB\nVmPin:\t      12 kB\nOther: x\nVmBad:\n";
    CHECK(memory::kilobyte_field(text, "VmPin") == 12 * 1024);
    CHECK(memory::kilobyte_field(text, "VmPinned") == 7 * 1024);
    CHECK_FALSE(memory::kilobyte_field(text, "Vm"));
    CHECK_FALSE(memory::kilobyte_field(text, "Other"));
    CHECK_FALSE(memory::kilobyte_field(text, "VmBad"));
    CHECK_FALSE(memory::kilobyte_field("", "VmPin"));
    CHECK(memory::available_memory_bytes().value_or(0) > 0);
    CHECK(memory::pinned_memory_bytes().has_value());
}
